"""Codes by their length: what is measured is what the parts measure, nothing is measured twice, everything is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from diptych import figures
from diptych.benchmark.experiment import hash_code_facts
from diptych.benchmark.hashing import (
    HASHING_TASKS,
    BitBudgetReport,
    HashingTask,
    code_journal,
    fit_key,
    hashing_methods,
    measure_fold,
    measure_storage,
    run_bit_budget,
)
from diptych.benchmark.runner import spread
from diptych.cli.bench.hashing import draw_bit_budgets, print_bit_budget
from diptych.cli.bench.studies import bench_hashing
from diptych.cli.console.output import results
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import available_tasks
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.figures.parameter_curves import BitBudgetLine
from diptych.metrics import AP
from diptych.models import CCA, CVH, Preprocessed, SCMOrth
from diptych.protocols import Extendable, evaluate_retrieval


@dataclass(frozen=True)
class SmallTask(HashingTask):
    """A task on data that a test makes."""

    splits: Any = field(default=None, repr=False)

    def load(self) -> DatasetSplits:
        loaded: DatasetSplits = self.splits
        return loaded


def small_splits(n_texts: int = 1, with_labels: bool = True) -> DatasetSplits:
    rng = np.random.default_rng(3)
    labels = np.arange(96) % 4
    meaning = 2 * np.eye(4)[labels] + 0.3 * rng.normal(size=(96, 4))
    owners = np.repeat(np.arange(96), n_texts)
    images = meaning @ rng.normal(size=(4, 9)) + 0.2 * rng.normal(size=(96, 9))
    texts = (meaning @ rng.normal(size=(4, 7)))[owners] + 0.2 * rng.normal(size=(96 * n_texts, 7))
    pairs = Pairs(images, texts, labels=labels if with_labels else None, owners=owners)
    return DatasetSplits(train=pairs.select(range(64)), test=pairs.select(range(64, 96)))


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return SmallTask(name="small", title="Small, half of 4 classes learned", dataset="none", splits=small_splits())


@pytest.fixture(scope="module")
def report(task: SmallTask) -> BitBudgetReport:
    return run_bit_budget(task, bits=(8, 4), methods=["scm-orth", "cvh"], folds=2, n_searched=500)


def test_every_public_hashing_method_is_found() -> None:
    assert {"cvh", "scm-orth", "scm-seq", "cmfh"} <= hashing_methods().keys()
    assert "cca" not in hashing_methods()


def test_every_fit_is_there_in_every_setting(report: BitBudgetReport) -> None:
    assert report.methods == ("scm-orth", "cvh")
    assert report.bits == (4, 8)
    assert report.supervised == ("scm-orth",)
    assert len(report.results) == 2 * 2 * 2 * 2
    assert {result.setting for result in report.results} == {"seen", "unseen"}
    assert [cost.n_bits for cost in report.storage] == [4, 8]


def test_a_result_is_what_the_parts_measure(task: SmallTask, report: BitBudgetReport) -> None:
    fold = Extendable().class_fold(task.splits, 1)
    model = Preprocessed(model=SCMOrth(n_bits=8, random_state=1), images="l2", texts="l2").fit(*fold.train.aligned())
    view = evaluate_retrieval(model, fold.unseen)
    unified = evaluate_retrieval(model, fold.unseen, gallery="unified")
    result = next(found for found in report.select("unseen", "scm-orth", 8) if found.fold == 1)
    assert result.measures["MAP"]["image_query"] == pytest.approx(view.image_query.mean[AP()])
    assert result.chance["MAP"]["text_query"] == pytest.approx(view.text_query.chance[AP()])
    assert result.unified_map["text_query"] == pytest.approx(unified.text_query.mean[AP()])
    assert result.statistics["texts"]["n_items"] == fold.unseen.gallery.n_texts
    assert len(result.lookup_recall["image_query"]) == 9
    assert result.lookup_recall["image_query"][-1] == 1.0
    assert 0 <= result.precision_radius_2["image_query"] <= 1


def test_learned_classes_are_found_above_chance(report: BitBudgetReport) -> None:
    for result in report.select("seen"):
        assert result.measures["MAP"]["image_query"] > result.chance["MAP"]["image_query"] + 0.1


def test_without_classes_fold_k_learns_from_caption_k_and_pairs_alone() -> None:
    splits = small_splits(n_texts=2, with_labels=False)
    task = SmallTask(name="captions", title="Captions", dataset="none", has_classes=False, cmc_rank=10, splits=splits)
    train, asked = task.fold(splits, 1)
    np.testing.assert_array_equal(train.texts, np.asarray(splits.train.texts)[1::2])
    assert task.fold(splits, 2)[0].texts[0].tolist() == np.asarray(splits.train.texts)[0].tolist()
    assert asked["captions"].gallery.n_texts == 64
    report = run_bit_budget(task, bits=(8,), methods=["cvh", "scm-seq"], folds=1, n_searched=50)
    assert report.methods == ("cvh",)
    assert "labels" in report.left_out["scm-seq"]
    result = report.results[0]
    assert result.measures["MAP"]["text_query"] > result.chance["MAP"]["text_query"]


def test_a_run_goes_on_where_it_stopped(task: SmallTask, tmp_path: Path) -> None:
    whole = run_bit_budget(task, bits=(8,), methods=["cvh"], folds=2, n_searched=50, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    first, second = file.read_text(encoding="utf-8").splitlines()
    marked = first.replace('"fit_seconds": ', '"fit_seconds": 1')
    file.write_text(f"{marked}\n{second[:50]}", encoding="utf-8")
    again = run_bit_budget(task, bits=(8,), methods=["cvh"], folds=2, n_searched=50, folder=tmp_path)
    # The first fit is the noted one, whose seconds were changed; the second was cut off and is measured again.
    assert again.results[0].fit_seconds == pytest.approx(float(f"1{whole.results[0].fit_seconds}"))
    assert [found.measures for found in again.results] == [found.measures for found in whole.results]
    assert code_journal(tmp_path, task, task.splits).known(fit_key(CVH(), 8, 1)) is not None
    assert code_journal(tmp_path, task, task.splits).known(fit_key(CVH(regularization=0.5), 8, 1)) is None


def test_more_processes_measure_the_same(task: SmallTask, report: BitBudgetReport) -> None:
    alone = measure_fold(task, task.splits, CVH(), 8, 0)
    assert [found.measures for found in alone] == [
        found.measures for found in report.results if (found.method, found.n_bits, found.fold) == ("cvh", 8, 0)
    ]


def test_storage_is_whole_bytes_and_searches_are_timed() -> None:
    cost = measure_storage(12, n_items=300)
    assert (cost.bytes_per_item, cost.megabytes_per_million) == (2, 2.0)
    assert cost.queries_per_second > 0


def test_what_cannot_be_run_is_refused(task: SmallTask) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'scm-seq'"):
        run_bit_budget(task, methods=["scm-sek"])
    with pytest.raises(InvalidInputError, match="at least 1"):
        run_bit_budget(task, bits=(0,))
    with pytest.raises(InvalidInputError, match="folds"):
        run_bit_budget(task, folds=0)
    with pytest.raises(UnknownNameError, match="did you mean 'pascal'"):
        available_tasks(["pascall"], "data set", HASHING_TASKS, Stages(quiet=True))
    with pytest.raises(InvalidInputError, match="nothing was measured"):
        spread([])


def test_the_document_is_plain_and_holds_means(report: BitBudgetReport) -> None:
    document = json.loads(json.dumps(report.as_json(), allow_nan=False))
    row = next(row for row in document["means"] if (row["setting"], row["method"], row["n_bits"]) == ("seen", "cvh", 4))
    values = [found.measures["MAP"]["image_query"] for found in report.select("seen", "cvh", 4)]
    assert row["image_query"]["map"] == pytest.approx(np.mean(values))
    assert row["image_query"]["deviation"] == pytest.approx(np.std(values, ddof=1))
    assert document["denominator"] == "all relevant items"


def test_the_table_shows_codes_chance_and_costs(report: BitBudgetReport, capsys: pytest.CaptureFixture[str]) -> None:
    print_bit_budget(report, results())
    printed = capsys.readouterr().out
    mean, deviation = spread([found.measures["MAP"]["text_query"] for found in report.select("unseen", "cvh", 8)])
    assert f"{mean:.4f} ± {deviation:.4f}" in printed
    for words in ("classes that were not learned", "chance: MAP", "distinct", "counts as zero", "MB per million"):
        assert words in printed


def test_figures_have_a_panel_for_each_setting_and_direction(report: BitBudgetReport, tmp_path: Path) -> None:
    files = draw_bit_budgets([report], tmp_path)
    assert [file.name for file in files] == ["hashing-small-map.png", "hashing-small-cmc.png"]
    assert all(file.stat().st_size > 10_000 for file in files)
    line = BitBudgetLine([0.2, 0.3], [0.0, 0.0])
    both = {"image_query": line, "text_query": line}
    figure = figures.bit_budget(
        [8, 16],
        {"cvh": {"seen": both}, "dch": {"seen": both}},
        {"seen": {"image_query": 0.1, "text_query": 0.1}},
        supervised=["dch"],
        costs=["1 B", "2 B"],
    )
    # Lines that end in one point still have names that do not cover each other.
    heights = sorted(text.xyann[1] for text in figure.axes[0].texts)
    assert len(heights) == 3
    assert min(np.diff(heights)) > 0.04
    assert figure.axes[0].get_xticklabels()[1].get_text() == "16\n2 B"
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        figures.bit_budget([8], {}, {})


def test_codes_are_described_behind_scaling_and_only_for_hashing() -> None:
    splits = small_splits()
    model = Preprocessed(model=CVH(n_bits=6)).fit(*splits.train.aligned())
    facts = hash_code_facts(model, splits.test, "label")
    assert facts is not None
    assert (facts.images.n_bits, facts.images.n_items) == (6, 32)
    assert json.loads(json.dumps(facts.as_json()))["lookup"]["image_query"]["radius"] == 2
    figure = figures.radius_precision_recall(facts.lookups)
    curve = facts.lookups["image_query"].mean_curve()
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xydata()[-1], (1.0, curve.y[-1]))
    by_instance = hash_code_facts(model, splits.test, "instance")
    assert by_instance is not None
    assert by_instance.lookups["image_query"].n_relevant.tolist() == [1] * 32
    assert facts.lookups["image_query"].n_relevant.tolist() == [8] * 32
    assert hash_code_facts(CCA(n_components=2).fit(*splits.train.aligned()), splits.test, "label") is None


@pytest.mark.data("wikipedia")
def test_the_command_measures_wikipedia(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(bench_hashing)
    output = tmp_path / "codes.json"
    arguments = ["--data", "wikipedia", "-m", "cvh", "--bits", "8", "--folds", "1", "--jobs", "1", "--fresh", "--quick"]
    run = CliRunner().invoke(app, [*arguments, "--output", str(output)])
    assert run.exit_code == 0, run.output
    (document,) = json.loads(output.read_text(encoding="utf-8"))
    assert document["task"] == "wikipedia"
    assert len(document["results"]) == 2
    assert "Wikipedia" in run.stdout
