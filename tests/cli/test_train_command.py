from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from diptych import Retriever
from diptych.cli.commands.train import print_training_report
from diptych.collection import Collection
from diptych.collection.learning import LearningRecord, TrainingReport
from diptych.models import Random
from diptych.retriever import Comparison
from tests.cli.command_line import Run, World


@pytest.fixture
def world(indexed: World, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    copy = indexed.copied(nothing_indexed / "pictures")
    monkeypatch.chdir(copy.pictures)
    return copy


@pytest.fixture
def badly_indexed(scenery: World, nothing_indexed: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> World:
    """The scenes with a retriever that ranks by luck, so that anything learned is better."""
    copy = scenery.copied(nothing_indexed / "pictures")
    luck = Retriever.load(scenery.retriever).set_params(name="luck")
    entries = json.loads(scenery.captions.read_text())
    images = luck.image_features([copy.pictures / entry["file"] for entry in entries])
    texts = luck.text_features([entry["captions"][0] for entry in entries])
    luck.model_ = Random().fit(images, texts)
    luck.save(nothing_indexed / "luck")
    result = run("index", copy.pictures, "--captions", copy.captions, "--retriever", nothing_indexed / "luck")
    assert result.exit_code == 0
    monkeypatch.chdir(copy.pictures)
    return copy


def fingerprint(world: World) -> str:
    with Collection.open(world.collection) as collection:
        return collection.status().fingerprint


def test_a_better_retriever_takes_over(run: Run, badly_indexed: World, tmp_path: Path) -> None:
    before = fingerprint(badly_indexed)
    dry = run("train", "--method", "cca", "--param", "n_components=16", "--dry-run")
    assert dry.exit_code == 0
    assert "Nothing was changed." in dry.stdout
    assert fingerprint(badly_indexed) == before
    options = ("--method", "cca", "--param", "n_components=16", "--held-out", "0.5")
    done = run("train", *options, "--retriever-out", tmp_path / "learned")
    assert done.exit_code == 0
    assert "60 held-out pictures, none of which was learned from" in done.stdout
    assert "It is better on held-out pictures by more than luck, and nothing else is lost." in done.stdout
    assert "The collection uses 'trained cca' now; `diptych rollback` goes back to 'luck'." in done.stdout
    learned = Retriever.load(tmp_path / "learned")
    assert fingerprint(badly_indexed) == learned.fingerprint != before
    found = json.loads(run("search", "a red car", "--all", "--json", "-k", "60").stdout)
    scores = learned.similarity([answer["path"] for answer in found["answers"]], ["a red car"])[:, 0]
    assert [answer["score"] for answer in found["answers"]] == pytest.approx(scores.tolist(), abs=1e-3)


def test_a_worse_one_does_not_unless_forced(run: Run, world: World) -> None:
    before = fingerprint(world)
    refused = run("train", "--method", "random", "--json")
    numbers = json.loads(refused.stdout)
    assert numbers["new"] < numbers["old"]
    assert not numbers["taken"]
    assert fingerprint(world) == before
    assert json.loads(run("train", "--method", "random", "--json", "--anyway").stdout)["taken"]
    assert fingerprint(world) != before
    told = run("history").stdout
    assert told.count("train") >= 2
    assert "not better on held-out" in " ".join(told.split())
    steps = json.loads(run("history", "--json").stdout)["steps"]
    assert [(step["action"], step["gate"]["forced"]) for step in steps] == [
        ("kept", False),
        ("promoted", True),
    ]
    assert run("rollback").exit_code == 0
    assert fingerprint(world) == before


def test_networks_of_pixels_and_words_take_the_place_of_the_encoders(run: Run, world: World, tmp_path: Path) -> None:
    sizes = {"image_side": 16, "image_widths": "[4]", "word_size": 4, "hidden_size": 4, "n_components": 3, "epochs": 1}
    options = [part for name, value in sizes.items() for part in ("--param", f"{name}={value}")]
    before = fingerprint(world)
    done = run("train", "--method", "mnil", *options, "--anyway", "--retriever-out", tmp_path / "networks")
    assert done.exit_code == 0, done.output
    # Five folds, and all pictures.
    assert done.stderr.count("epoch 1: loss") == 6
    learned = Retriever.load(tmp_path / "networks")
    assert fingerprint(world) == learned.fingerprint != before
    # The encoders of the one before are no part of it.
    assert learned.image_encoder is None
    answers = json.loads(run("search", "a red car", "--all", "--json", "-k", "5").stdout)["answers"]
    scores = learned.similarity([answer["path"] for answer in answers], ["a red car"])[:, 0]
    assert [answer["score"] for answer in answers] == pytest.approx(scores.tolist(), abs=1e-3)


def test_pictures_without_captions_are_learned_from_and_some_are_named_to_describe_next(run: Run, world: World) -> None:
    with Collection.open(world.collection) as collection:
        undescribed = {item.path: item.id for item in list(collection)[30:]}
        collection.update_all({item_id: {"captions": [], "labels": []} for item_id in undescribed.values()})
    result = run("train", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["learned_from"].startswith("30 pictures with captions or labels, 30 pictures without")
    assert not told["taken"]
    assert len(set(told["next_pictures"])) == 12
    assert set(told["next_pictures"]) <= set(undescribed)
    assert told["advice"].startswith("describe these next")


def test_labels_are_words_where_there_are_no_captions(run: Run, world: World) -> None:
    with Collection.open(world.collection) as collection:
        collection.update_all({item.id: {"captions": []} for item in collection})
    result = run("train", "--method", "cca", "--param", "n_components=4", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "labels are the words" in result.stderr


def test_a_caption_file_can_teach_as_well(run: Run, world: World) -> None:
    rows = [(entry["file"], entry["captions"][0]) for entry in json.loads(world.captions.read_text())]
    with Path("words.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("file", "caption"), *rows])
    result = run("train", "--captions", "words.csv", "--method", "cca", "--param", "n_components=4", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "captions: 60 pictures, 60 captions" in result.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--method", "cac"], "or 'cca'"),
        (["--param", "n_components=4"], "name it with --method"),
        (["--method", "cca", "--param", "components=4"], "unknown parameter"),
        (["--captions", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_a_mistake_costs_one_line(run: Run, world: World, words: list[str], hint: str) -> None:
    result = run("train", *words)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert result.stdout == ""


def test_nothing_to_learn_from_is_said(run: Run, scenery: World, nothing_indexed: Path) -> None:
    copy = scenery.copied(nothing_indexed / "pictures")
    run("index", copy.pictures, "--retriever", copy.retriever)
    result = run("train", "--collection", copy.pictures)
    assert result.exit_code == 2
    assert "neither captions nor labels" in result.stderr


GATE = {"chance": 0.02, "baseline": "default", "old": 0.4, "low": -0.01, "high": 0.2, "replaced": False}
REST = {"rest_old": 0.7, "n_rest": 42, "refused_old": 0.9, "refused_new": 0.9, "n_absent": 150, "answered_old": 0.9}


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ({"new": 0.5, "p_value": 0.694}, "to +0.200, 95 % sure (p = 0.694, and below 0.01 is asked for). The present"),
        (
            {"new": 0.3, "p_value": 1e-4, "low": -0.2, "high": -0.1},
            "It is not better on held-out pictures. The present search model stays.",
        ),
        ({"new": 0.9, "p_value": 0.0001, "n_held_out": 12}, "Only 12 pictures have captions or labels, and 20 are"),
        ({"new": 0.5, "p_value": 0.0001, "rest_new": 0.3, "rest_low": -0.5, **REST}, "may forget too much"),
        (
            {"new": 0.5, "p_value": 0.0001, "rest_new": 0.7, "rest_low": 0.0, "answered_new": 0.5, **REST},
            "To refuse nonsense as before, it would answer fewer of your own captions and words (90% → 50%).",
        ),
    ],
)
def test_the_verdict_is_plain(capsys: pytest.CaptureFixture[str], numbers: dict[str, float], verdict: str) -> None:
    comparison = Comparison(**{"n_held_out": 60, "answered_new": 0.9, **GATE, **numbers})
    record = LearningRecord("", "kept", *("default", "f") * 2, reason=comparison.reason)
    print_training_report(TrainingReport(comparison, record), is_dry_run=False, as_json=False)
    told = " ".join(capsys.readouterr().out.split())
    assert verdict in told
    assert "--anyway takes the new one in spite of it." in told
    assert not comparison.passes
    print_training_report(TrainingReport(comparison, record), is_dry_run=True, as_json=False)
    tried = " ".join(capsys.readouterr().out.split()).lower()
    assert f"nothing was changed. {comparison.advice}." in tried
