"""Few captions: what the engine measures on made-up towers, and the tables that are made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from diptych.benchmark import Catalogue, Features, Method, Record, ResultFolder, Unit, runner
from diptych.benchmark.papers.alignment import ALIGNMENT, BUDGETS, MAIN, MEASURES, TOWERS
from diptych.benchmark.reporting.few_captions import MAKERS, curve_chart, difference, rows_of, what_to_use
from diptych.benchmark.reporting.reproduction import StoredResults
from diptych.benchmark.runner import measure_unit
from diptych.benchmark.task import Task
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.models import CCA, Procrustes, WassersteinProcrustes
from diptych.protocols import FewPairs, Retrieval

METHODS = (
    Method("cca", "CCA", CCA()),
    Method("procrustes", "Procrustes", Procrustes(), [{"n_components": [1, 4]}]),
)
UNPAIRED = (Method("wasserstein", "Wasserstein", WassersteinProcrustes(n_centres=10, n_restarts=5, rounds=10)),)


def made_splits() -> DatasetSplits:
    rng = np.random.default_rng(0)
    texts = 3 * rng.exponential(size=(12, 8))[rng.integers(12, size=400)] + 0.3 * rng.normal(size=(400, 8))
    images = texts @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    owners = np.repeat(np.arange(60), 2)
    train = Pairs(images[:300], texts[:300])
    dev, test = (Pairs(images[a : a + 60], texts[a : a + 60][owners], owners=owners) for a in (300, 340))
    return DatasetSplits(train=train, dev=dev, test=test)


class AskedElsewhere(Task):
    def fold(self, splits, number, reads="features"):
        return replace(super().fold(splits, number, reads), elsewhere={"COCO": Retrieval(splits.dev, splits.dev)})


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Return what two draws give with 0 and 20 pairs, and with unpaired rows."""
    splits, found = made_splits(), []
    source = Dataset("made", "", "", "", "", "", loader=lambda: splits)
    patch = pytest.MonkeyPatch()
    for pairs, unpaired, methods in ((20, False, METHODS), (20, True, UNPAIRED), (0, True, UNPAIRED)):
        name = f"align-flickr8k-{MAIN}-{pairs}{'-unpaired' * unpaired}"
        protocol = FewPairs(pairs, unpaired)
        task = AskedElsewhere(
            name,
            name,
            "made",
            source=source,
            features=Features("made"),
            protocol=protocol,
            methods=methods,
            measures=MEASURES,
            is_brief=True,
            seeds_by_fold=True,
        )
        patch.setattr(Catalogue, "task", lambda self, name, task=task: task)
        runner._splits.cache_clear()
        runner._fold.cache_clear()
        found += [measure_unit(Catalogue(), Unit(name, fold, one.name)) for one in methods for fold in (0, 1)]
    patch.undo()
    return found


def test_a_brief_record_has_what_tables_need_and_no_curves(records: list[Record]) -> None:
    for record in records:
        assert set(record.measures) == {"R@10", "R@1", "R@5", "median rank", "FOSCTTM", "R@10, COCO", "AP(), COCO"}
        assert list(record.per_query) == ["R@10"]
        assert len(record.per_query["R@10"]["text_query"]) == 120
        assert not record.curves
        assert 0 < record.validation["mean"] <= 1
        assert record.chance["FOSCTTM"]["text_query"] == 0.5
    assert {record.parameters.get("n_components") for record in records if record.method == "procrustes"} == {4}
    assert {record.n_train for record in records} == {0, 20}


def test_settings_are_chosen_by_the_development_part(records: list[Record]) -> None:
    splits = made_splits()
    record = next(record for record in records if record.method == "cca")
    training = FewPairs(20).fold(splits, 0).training
    model = training.fit(CCA())
    again = runner.evaluate_model(model, splits.dev, [MEASURES[0]]).average(MEASURES[0])
    assert record.validation["mean"] == pytest.approx(again)


def test_tables_are_made_of_stored_records(records: list[Record], tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    for record in records:
        folder.write(record)
    results = StoredResults(tmp_path)
    found = rows_of(results, "flickr8k", MAIN, 20)
    assert set(found) == {"cca", "procrustes", "wasserstein+"}
    table = what_to_use(results)
    assert [row[0] for row in table.rows] == ["0", "20"]
    best = max(found.values(), key=lambda row: row.development)
    assert table.rows[1][1] == best.title
    values = found["procrustes"].by_photograph()
    assert values.shape == (2, 60)
    assert values.mean() == pytest.approx(found["procrustes"].mean())
    compared = difference(found["procrustes"], found["cca"])
    assert compared.difference == pytest.approx(found["procrustes"].mean() - found["cca"].mean())
    words = {"align-curve": ("flickr8k", MAIN, "median~rank", "image"), "align-towers": ("cca",)}
    for name in ("align-curve", "align-gains", "align-zero", "align-costs", "align-towers"):
        assert MAKERS[name](results, *words.get(name, ())).rows


def test_curves_are_drawn_of_stored_records(records: list[Record], tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    for record in records:
        folder.write(record)
    drawing = ElementTree.fromstring(curve_chart(StoredResults(tmp_path)))
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert {"CCA", "Procrustes", "Wasserstein, unpaired rows", "20"} <= set(texts)


def test_every_budget_of_every_tower_pair_is_declared_with_and_without_unpaired_rows() -> None:
    tasks = [task for task in ALIGNMENT if (task.towers, task.dataset) == (MAIN, "flickr8k")]
    wanted = {(pairs, unpaired) for pairs in BUDGETS for unpaired in (False, True)} - {(0, False), (6000, True)}
    assert {(task.pairs, task.protocol.unpaired) for task in tasks} == wanted
    assert {task.towers for task in ALIGNMENT} == set(TOWERS)
    for task in ALIGNMENT:
        for method in task.methods:
            assert task.pairs or "pairs" not in getattr(method.model, "model", method.model).needs
