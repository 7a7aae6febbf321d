from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from diptych import Retriever
from diptych.cli.commands.train import print_training_report
from diptych.collection import Collection
from diptych.models import Random, load_model
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
    assert "The new one is better by" in done.stdout
    assert "MAP on 30 held-out pictures" in done.stdout
    assert "more than luck" in done.stdout
    assert "The collection uses it now." in done.stdout
    learned = Retriever.load(tmp_path / "learned")
    assert fingerprint(badly_indexed) == learned.fingerprint != before
    found = json.loads(run("search", "a red car", "--all", "--format", "json", "-k", "60").stdout)
    scores = learned.similarity([answer["path"] for answer in found["answers"]], ["a red car"])[:, 0]
    assert [answer["score"] for answer in found["answers"]] == pytest.approx(scores.tolist(), abs=1e-4)


def test_a_worse_one_does_not_unless_forced(run: Run, world: World) -> None:
    before = fingerprint(world)
    refused = run("train", "--method", "random", "--json")
    numbers = json.loads(refused.stdout)
    assert numbers["new"] < numbers["old"]
    assert not numbers["taken"]
    assert fingerprint(world) == before
    assert json.loads(run("train", "--method", "random", "--json", "--force").stdout)["taken"]
    assert fingerprint(world) != before


def test_networks_of_pixels_and_words_take_the_place_of_the_encoders(run: Run, world: World, tmp_path: Path) -> None:
    sizes = {"image_side": 16, "image_widths": "[4]", "word_size": 4, "hidden_size": 4, "n_components": 3, "epochs": 1}
    options = [part for name, value in sizes.items() for part in ("--param", f"{name}={value}")]
    before = fingerprint(world)
    done = run("train", "--method", "mnil", *options, "--force", "--retriever-out", tmp_path / "networks")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("epoch 1: loss") == 2
    learned = Retriever.load(tmp_path / "networks")
    assert fingerprint(world) == learned.fingerprint != before
    # The encoders of the one before are no part of it.
    assert learned.image_encoder is None
    answers = json.loads(run("search", "a red car", "--all", "--format", "json", "-k", "5").stdout)["answers"]
    scores = learned.similarity([answer["path"] for answer in answers], ["a red car"])[:, 0]
    assert [answer["score"] for answer in answers] == pytest.approx(scores.tolist(), abs=1e-4)


def test_labels_are_words_where_there_are_no_captions(run: Run, world: World) -> None:
    with Collection.open(world.collection) as collection:
        for item in list(collection):
            collection.update(item.id, captions=[])
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


@pytest.fixture
def features(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    folder = tmp_path / "features"
    folder.mkdir()
    texts = rng.normal(size=(300, 4)).astype(np.float32)
    np.save(folder / "texts.npy", texts)
    np.save(folder / "images.npy", texts @ rng.normal(size=(4, 6)).astype(np.float32))
    return folder


def test_features_in_files_teach_a_method(run: Run, features: Path, tmp_path: Path) -> None:
    options = ("--features", features, "--method", "cca", "-p", "n_components=2", "--model-out", tmp_path / "model")
    plain = run("train", *options, "--jobs", "1")
    assert plain.exit_code == 0
    assert "cca has learned from 300 pairs of 6 and 4 features" in plain.stdout
    facts = json.loads(run("train", *options, "--json", "--quiet").stdout)
    assert (facts["method"], facts["pairs"], facts["image_features"]) == ("cca", 300, 6)
    model = load_model(tmp_path / "model")
    assert model.get_params()["n_components"] == 2
    assert model.score(np.load(features / "images.npy"), np.load(features / "texts.npy")) > 0.5


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--features", "here"], "needs a --method"),
        (["--features", "here", "--method", "cca", "--model-out", "m"], "here holds no features"),
        (["--features", "here", "--method", "cca", "--model-out", "m", "--captions", "c"], "nothing to do with"),
        (["--jobs", "2"], "belong to --features"),
    ],
)
def test_options_of_features_that_do_not_fit_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("train", *words)
    assert result.exit_code == 2
    assert hint in result.stderr


@pytest.mark.parametrize(
    ("new", "p_value", "is_dry_run", "verdict"),
    [
        (0.5, 0.0001, False, "The new one is better by 0.1000 (p < 0.001, more than luck)."),
        (0.5, 0.2, False, "The new one is better by 0.1000 (p = 0.200, may be luck)."),
        (0.4, 1.0, False, "The new one is the same. The present one stays; --force takes the new one anyway."),
        (0.3, 0.01, True, "The new one is worse by 0.1000 (p = 0.010, more than luck). Nothing was changed."),
    ],
)
def test_the_verdict_is_plain(
    capsys: pytest.CaptureFixture[str], new: float, p_value: float, is_dry_run: bool, verdict: str
) -> None:
    comparison = Comparison(
        n_held_out=30, new=new, chance=0.02, baseline="default", old=0.4, p_value=p_value, replaced=new > 0.4
    )
    print_training_report(comparison, is_taken=False, is_dry_run=is_dry_run, as_json=False)
    assert verdict in capsys.readouterr().out
