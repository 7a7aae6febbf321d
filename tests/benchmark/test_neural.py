"""Ranking methods and networks compared: measured as the parts measure, never twice, beside what the paper prints."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from diptych.benchmark import neural
from diptych.benchmark.neural import (
    NEURAL_TASKS,
    Illustration,
    NeuralData,
    NeuralMethod,
    NeuralReport,
    NeuralTask,
    fit_key,
    neural_journal,
    neural_methods,
    run_neural,
)
from diptych.benchmark.published import published_scores
from diptych.benchmark.task import find_by_name
from diptych.cli import app
from diptych.cli.bench.neural import draw_neural, print_neural
from diptych.cli.console.output import results
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, RecallAtK
from diptych.models import CCA, MNiL, Preprocessed
from diptych.protocols import evaluate_model

KINDS = ("boat", "cat", "tree")


@dataclass(frozen=True)
class SmallTask(NeuralTask):
    """A task on data that a test makes."""

    made: Any = field(default=None, repr=False)

    def load(self) -> NeuralData:
        loaded: NeuralData = self.made
        return loaded


def small_data(*, with_labels: bool = True, words: bool = True, several: bool = False) -> NeuralData:
    """Pictures of 8 pixels, two captions each; features of both sides."""
    rng = np.random.default_rng(2)
    labels = np.arange(48) % 3
    owners = np.repeat(np.arange(48), 2)
    meaning = 2 * np.eye(3)[labels] + 0.3 * rng.normal(size=(48, 3))
    images = meaning @ rng.normal(size=(3, 6)) + 0.2 * rng.normal(size=(48, 6))
    texts = meaning[owners] @ rng.normal(size=(3, 5)) + 0.2 * rng.normal(size=(96, 5))
    truth: Any = np.array(KINDS)[labels]
    if several:
        truth = np.eye(3, dtype=int)[labels]
        truth[::9] = 0
    carried = {"labels": truth if with_labels else None, "owners": owners}
    if several:
        carried["class_names"] = KINDS
    features = Pairs(images, texts, **carried)
    pixels = [np.full((8, 8, 3), 80 * label + row % 40, dtype=np.uint8) for row, label in enumerate(labels)]
    captions = [f"a {KINDS[labels[owner]]} number {owner % 7}" for owner in owners]
    items = Pairs(pixels, captions, **carried) if words else features
    parts = (range(24), range(24, 48))
    return NeuralData(*(DatasetSplits(pairs.select(parts[0]), pairs.select(parts[1])) for pairs in (items, features)))


def small_task(**options: Any) -> SmallTask:
    classes = options.get("with_labels", True)
    return SmallTask("small", "Small", dataset="none", has_classes=classes, made=small_data(**options))


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture(scope="module")
def report(task: SmallTask) -> NeuralReport:
    with pytest.MonkeyPatch.context() as patch:
        # So few words need no memory of hundreds of cells, which takes a hundred times as long.
        patch.setitem(neural._FEATURES, "hidden_size", 32)
        return run_neural(task, methods=["warp", "cca", "mnil"], seeds=2, epochs=2)


def test_every_method_and_seed_is_there_in_the_order_of_the_paper(report: NeuralReport) -> None:
    assert report.measured == ("mnil", "cca", "warp")
    assert [(result.method, result.seed) for result in report.results] == [
        ("mnil", 0),
        ("mnil", 1),
        ("cca", 0),
        ("warp", 0),
        ("warp", 1),
    ]
    assert [method.name for method in report.shown][:6] == [
        "Bi-CMSRM",
        "PL-ranking",
        "LDSP",
        "MNiL(I→T)",
        "MNiL(T→I)",
        "MNiL",
    ]


def test_a_result_is_what_the_parts_measure(task: SmallTask, report: NeuralReport) -> None:
    measures = [AP(), AP(50, "retrieved"), AP(50, "total")]
    model = Preprocessed(model=CCA(), images="l2", texts="l2").fit(*task.made.features.train.aligned())
    by_hand = evaluate_model(model, task.made.features.test, measures)
    (result,) = report.select("cca")
    for measure in measures:
        for way in ("image_query", "text_query"):
            assert result.measures[measure.label][way] == pytest.approx(by_hand[way].mean[measure])
            assert result.chance[measure.label][way] == pytest.approx(by_hand[way].chance[measure])
    assert result.scopes == [10, 20]
    assert result.relevant_share["image_query"] == pytest.approx(1 / 3)


def test_networks_read_words_and_features_of_pictures(task: SmallTask, report: NeuralReport) -> None:
    train, test = task.made.parts("words")
    assert (train.texts, test.texts) == (task.made.items.train.texts, task.made.items.test.texts)
    for result in report.select("mnil"):
        # Words that say the class are what it learns from in so few steps.
        assert result.measures["MAP"]["text_query"] > result.chance["MAP"]["text_query"]
        assert "MNiL(" in result.model
        assert "epochs=2" in result.model
    assert "random_state=1" in report.select("mnil")[1].model


def test_without_classes_recall_of_the_own_picture_counts() -> None:
    task = small_task(with_labels=False)
    report = run_neural(task, methods=["cca", "scm"], seeds=1)
    model = Preprocessed(model=CCA(), images="l2", texts="l2").fit(*task.made.features.train.aligned())
    by_hand = evaluate_model(model, task.made.features.test, [RecallAtK(5)])
    assert report.score("cca", "R@5", "text_query") == (pytest.approx(by_hand.text_query.mean[RecallAtK(5)]), 0.0)
    assert report.left_out == {"scm": "learns from labels, of which there are none"}
    assert report.task.published_table == "Table 2"


def test_without_classes_pl_ranking_takes_each_picture_and_its_texts_for_one() -> None:
    task = small_task(with_labels=False)
    report = run_neural(task, methods=["pl-ranking"], seeds=1, epochs=2)
    assert not report.left_out
    train = task.made.features.train
    images, texts, _ = train.aligned()
    model = neural_methods()["pl-ranking"].build("l2", "l2", epochs=2).fit(images, texts, train.owners)
    by_hand = evaluate_model(model, task.made.features.test, [RecallAtK(5)])
    assert report.score("pl-ranking", "R@5", "image_query") == (
        pytest.approx(by_hand.image_query.mean[RecallAtK(5)]),
        0,
    )


def test_words_that_are_not_there_are_not_read() -> None:
    report = run_neural(small_task(words=False), methods=["mnil", "mnil-pixels", "cca"], seeds=1)
    assert report.left_out["mnil"] == "reads words, but the texts come as features"
    assert report.measured == ("cca",)


def test_several_classes_and_none() -> None:
    made = small_data(several=True)
    assert not np.asarray(made.items.train.labels).any(axis=1).all()
    report = run_neural(SmallTask("several", "Several", dataset="none", made=made), methods=["cca"], seeds=1)
    assert 0 < report.results[0].chance["MAP"]["image_query"] < 0.5
    inside = Illustration.of(report.task, made, report.methods["cca"])
    rows, classes = inside.map_rows()
    assert set(classes) == set(KINDS)
    assert np.asarray(made.items.test.labels)[rows].any(axis=1).all()


def test_the_values_of_the_paper_stand_under_our_labels(report: NeuralReport) -> None:
    table = published_scores("Table 1")
    assert table["MNiL"]["MAP@50 (retrieved)"] == {"text_query": 0.5341, "image_query": 0.4642}
    assert set(table) == set(published_scores("Table 2")) == {method.published for method in report.shown} - {""}
    assert report.published(report.methods["ldsp"], "MAP", "image_query") == 0.3536
    assert report.published(report.methods["ldsp"], "MAP@50 (total)", "image_query") is None
    assert report.published(report.methods["cca"], "MAP", "image_query") is None


def test_a_run_goes_on_where_it_stopped(task: SmallTask, tmp_path: Path) -> None:
    whole = run_neural(task, methods=["warp"], seeds=2, epochs=1, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    first, second = file.read_text(encoding="utf-8").splitlines()
    marked = first.replace('"fit_seconds": ', '"fit_seconds": 1')
    file.write_text(f"{marked}\n{second[:50]}", encoding="utf-8")
    again = run_neural(task, methods=["warp"], seeds=2, epochs=1, folder=tmp_path)
    # The first fit is the noted one, whose seconds were changed; the second was cut off and is measured again.
    assert again.results[0].fit_seconds == pytest.approx(float(f"1{whole.results[0].fit_seconds}"))
    assert [found.measures for found in again.results] == [found.measures for found in whole.results]
    journal = neural_journal(tmp_path, task, task.made)
    assert journal.known(fit_key(whole.methods["warp"], 1, 1)) is not None
    assert journal.known(fit_key(whole.methods["warp"], 1, 2)) is None
    assert journal.known(fit_key(NeuralMethod("warp", "WARP", CCA()), 1, 1)) is None


def test_other_words_have_a_journal_of_their_own(task: SmallTask, tmp_path: Path) -> None:
    changed = small_data()
    texts = ["something else", *changed.items.train.texts[1:]]
    train = Pairs(
        changed.items.train.images, texts, labels=changed.items.train.labels, owners=changed.items.train.owners
    )
    other = NeuralData(DatasetSplits(train, changed.items.test), changed.features)
    assert neural_journal(tmp_path, task, other).path != neural_journal(tmp_path, task, task.made).path


def test_what_cannot_be_run_is_refused(task: SmallTask) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ldsp'"):
        run_neural(task, methods=["ldps"])
    with pytest.raises(InvalidInputError, match="seeds must be at least 1"):
        run_neural(task, seeds=0)
    with pytest.raises(InvalidInputError, match="epochs must be at least 1"):
        run_neural(task, epochs=0)
    with pytest.raises(UnknownNameError, match="did you mean 'flickr8k'"):
        find_by_name("data set", "flicker8k", NEURAL_TASKS)


def test_pixels_are_read_when_asked_for() -> None:
    assert not any(method.reads == "pixels" for method in neural_methods().values())
    from_pixels = neural_methods(pixels=True)["mnil-t-i-pixels"]
    model = from_pixels.build("l2", "l2", seed=3)
    assert isinstance(model, MNiL)
    assert (model.image_tower, model.direction, model.random_state) == ("resnet50", "text_query", 3)
    assert from_pixels.published == "MNiL(T->I)"


def test_an_illustration_answers_as_the_space_does(task: SmallTask, report: NeuralReport) -> None:
    inside = Illustration.of(task, task.made, report.methods["cca"])
    test = task.made.features.test
    scores = inside.model.similarity(test.images, test.texts)
    found, right = inside.answers("image_query", 5)
    assert found.tolist() == np.argsort(-scores[5], kind="stable")[:4].tolist()
    assert right.tolist() == [test.text_labels[text] == test.labels[5] for text in found]
    found, right = inside.answers("text_query", 7)
    assert found.tolist() == np.argsort(-scores[:, 7], kind="stable")[:4].tolist()
    rows, classes = inside.map_rows()
    assert classes.tolist() == test.labels[rows].tolist()
    stages = inside.stages(rows)
    assert [points[0].shape == points[1].shape for points in stages.values()] == [True, True]


def test_everything_is_shown(
    report: NeuralReport, task: SmallTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_neural(report, results())
    shown = capsys.readouterr().out
    mean, deviation = report.score("warp", "MAP", "image_query") or (0.0, 0.0)
    assert f"{mean:.4f} ± {deviation:.4f}" in shown
    assert shown.count("chance") == 2
    for line in (line for line in shown.splitlines() if line.startswith("LDSP")):
        assert "–" in line
    assert "0.4430" in shown
    assert "2 epochs" in shown
    content = json.loads(json.dumps(report.as_json()))
    rows = {row["method"]: row for row in content["methods"]}
    assert rows["ldsp"]["measures"]["MAP"]["image_query"]["mean"] is None
    assert rows["warp"]["seeds"] == [0, 1]
    assert rows["mnil"]["measures"]["MAP"]["text_query"]["published"] == 0.3563
    files = draw_neural(report, Illustration.of(task, task.made, report.methods["cca"]), tmp_path)
    assert [file.name for file in files] == [
        f"neural-small-{name}.png" for name in ("precision-scope", "map", "examples")
    ]
    assert all(file.stat().st_size > 5000 for file in files)


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    nothing = CliRunner().invoke(app, ["bench", "neural"], prog_name="diptych")
    assert "none of the data sets of this benchmark" in nothing.stderr
    assert [task.name for task in NEURAL_TASKS[-3:]] == ["flickr30k", "coco", "coco-pairs"]
    wrong = CliRunner().invoke(app, ["bench", "neural", "-d", "pasacl"], prog_name="diptych")
    assert "did you mean 'pascal'" in wrong.stderr
    other = ["bench", "neural", "-d", "pascal", "-m", "cca", "--inside", "ccca", "--save", str(tmp_path / "models")]
    assert "unknown method to look into 'ccca'; did you mean 'cca'" in CliRunner().invoke(app, other).stderr


@pytest.mark.data("coco_pairs", "coco_val2014_labels")
def test_a_slice_of_coco_by_the_rule_of_the_paper() -> None:
    """Photographs without a label are left out, and what shares one is relevant; cheap encoders take the place."""
    declared = find_by_name("data set", "coco-pairs", NEURAL_TASKS)
    items = declared.load_items()
    few = replace(items, train=items.train.select(np.arange(50)), test=items.test.select(np.arange(40)), dev=None)

    class Slice(NeuralTask):
        def load_items(self) -> DatasetSplits:
            return few

    encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    task = Slice(**{**vars(declared), **encoders})
    report = run_neural(task, methods=["cca", "gmlda"])
    labelled = few.test.labels[few.test.labels.any(axis=1)]
    shares = (labelled @ labelled.T) > 0
    assert report.results[0].relevant_share["image_query"] == pytest.approx(shares.mean())
    assert [method.key for method in report.shown if method.key in report.measured] == ["cca", "gmlda"]
    assert report.published(report.methods["mnil"], "MAP@50 (retrieved)", "text_query") == 0.5341


@pytest.mark.data("wikipedia")
def test_wikipedia_through_the_command(tmp_path: Path) -> None:
    words = ["bench", "neural", "-d", "wikipedia", "-m", "cca", "--fresh", "-o", str(tmp_path / "numbers.json")]
    run = CliRunner().invoke(app, [*words, "--save", str(tmp_path / "models"), "-q"], prog_name="diptych")
    assert run.exit_code == 0, run.output
    (content,) = json.loads((tmp_path / "numbers.json").read_text())
    assert content["provenance"]["versions"]["numpy"] == np.__version__
    (cca,) = [row for row in content["methods"] if row["method"] == "cca"]
    assert cca["measures"]["MAP"]["image_query"]["mean"] == pytest.approx(0.2657, abs=2e-3)
    assert (tmp_path / "models" / "wikipedia-cca" / "model.json").is_file()
