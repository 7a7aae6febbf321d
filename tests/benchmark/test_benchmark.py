"""The benchmark: published values, declared tasks, and a runner that keeps test data out of every choice."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from diptych.benchmark import Entry, Reference, Task, find_task, published_map, run_task, task_names
from diptych.benchmark.published import published_rows
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP
from diptych.models import CCA, SM, Preprocessed
from diptych.protocols import HoldOut, evaluate_model


def test_published_values_are_the_printed_ones():
    row = published_map("001", "Table 1", "Wikipedia", "Marginal SM")
    assert (row.image_query, row.text_query) == (0.3328, 0.2411)
    assert row.average == pytest.approx(0.28695)
    assert published_map("004", "Table IX", "Wikipedia", "SCM").average == pytest.approx(0.320)
    distance = published_map("004", "Table IV", "Wikipedia", "SM", "validation set; distance NCc")
    assert (distance.image_query, distance.text_query) == (0.354, 0.272)
    with pytest.raises(InvalidInputError, match="prints no MAP of PLS"):
        published_map("001", "Table 1", "Wikipedia", "PLS")


def test_the_published_file_holds_the_numbers_of_all_five_papers():
    rows = published_rows()
    # The 620 of the tables, and two that a text prints.
    assert len(rows) == 622
    assert {row["paper"] for row in rows} == {"000", "001", "002", "003", "004"}


@pytest.mark.parametrize("name", task_names())
def test_declared_tasks_name_settings_that_exist(name):
    task = find_task(name)
    names = [entry.name for entry in task.entries]
    assert len(set(names)) == len(names)
    for entry in task.entries:
        for part in entry.grid:
            entry.model.set_params(**{parameter: values[0] for parameter, values in part.items()})
        if entry.reference is not None:
            assert entry.reference.look_up().average > 0


def test_unknown_tasks_and_entries_get_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean 'wikipedia'"):
        find_task("wikpedia")
    with pytest.raises(UnknownNameError, match="did you mean"):
        run_task(find_task("scenes"), methods=["SMC"])


class SmallTask(Task):
    """A task on data that a test makes, instead of a registered data set."""

    splits: DatasetSplits

    def load(self) -> DatasetSplits:
        return self.splits


@pytest.fixture
def task():
    rng = np.random.default_rng(2)
    labels = np.arange(90) % 3
    meaning = rng.normal(size=(3, 3))[labels] + 0.4 * rng.normal(size=(90, 3))
    pairs = Pairs(meaning @ rng.normal(size=(3, 7)), meaning @ rng.normal(size=(3, 5)), labels=labels)
    entries = (
        Entry("CCA", Preprocessed(model=CCA()), [{"model__n_components": [1, 3]}], distances=True),
        Entry(
            "SM",
            Preprocessed(model=SM()),
            [{"model__C": [1e-6, 10.0]}],
            Reference("001", "Table 1", "Wikipedia", "SM"),
        ),
    )
    small = SmallTask("small", "A small task", "none", entries, protocol=HoldOut(repeats=2))
    object.__setattr__(small, "splits", DatasetSplits(train=pairs.select(range(60)), test=pairs.select(range(60, 90))))
    return small


def test_a_row_is_the_chosen_setting_on_the_test_pairs(task):
    titles = []

    @contextmanager
    def stage(title):
        titles.append(title)
        yield lambda done, total: None

    report = run_task(task, stage=stage)
    row = report.row("SM")
    assert row.parameters == {"model__C": 10.0}
    model = Preprocessed(model=SM(C=10.0)).fit(*task.splits.train.aligned())
    direct = evaluate_model(model, task.splits.test)
    assert row.average == pytest.approx(direct.average(AP()))
    assert report.chance == pytest.approx(direct.chance(AP()))
    assert row.interval[0] < row.average < row.interval[1]
    assert row.difference == pytest.approx(row.average - 0.26065)
    assert [distance.metric for distance in report.distances] == ["l1", "euclidean", "cosine", "pearson"]
    assert titles == ["loading and encoding", "tuning CCA", "comparing distances of CCA", "tuning SM"]


def test_choices_do_not_see_the_test_pairs(task):
    before = run_task(task, distances=True)
    shuffled = np.random.default_rng(0).permutation(30)
    test = task.splits.test
    object.__setattr__(task, "splits", replace(task.splits, test=test.with_features(images=test.images[shuffled])))
    after = run_task(task, distances=True)
    for one, two in zip(before.rows, after.rows, strict=True):
        assert (one.parameters, one.validation) == (two.parameters, two.validation)
        assert one.average != two.average
    assert before.distances == after.distances


def test_a_report_serialises(task):
    report = run_task(task, methods=["sm"])
    document = json.loads(json.dumps(report.as_json()))
    assert document["rows"][0]["average"] == report.row("SM").average
    assert document["rows"][0]["published"]["table"] == "Table 1"
    assert document["ties"] == "expected"
