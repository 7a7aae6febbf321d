from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diptych.benchmark.evaluation import BY_INSTANCE, BY_LABEL
from diptych.benchmark.runner import measure_key
from diptych.cli.arguments import build_encoder
from diptych.data import DatasetSplits, load_dataset
from diptych.data.datasets.scenes import make_scene
from diptych.encoders import ColourEdgeHistograms, Concatenated, TfidfTopics, encode_splits
from diptych.errors import InvalidInputError
from diptych.metrics import AP, CMC, bootstrap_interval, category_means
from diptych.models import CCA, SCM, Preprocessed, load_model
from diptych.protocols import HoldOut, evaluate_model, tune
from diptych.space import DIRECTIONS
from tests.cli.command_line import SMALL_SCENES, Program, Run

# Two processes may round sums differently in the last bit, which an iterative fit carries along.
OPTIMISER = 1e-6


@pytest.fixture
def splits() -> DatasetSplits:
    return encode_splits(load_dataset("scenes", n_train=60, n_test=24, size=32))


def written(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def average(content: dict[str, Any], measure: str = "AP()") -> float:
    return sum(content["measures"][measure].values()) / 2


def test_the_program_equals_the_library(program: Program, tmp_path: Path, splits: DatasetSplits) -> None:
    """End to end in a process of its own: every number of the file is what the library computes."""
    output = tmp_path / "new" / "results.json"
    result = program("evaluate", *SMALL_SCENES, "-m", "cca", "-p", "n_components=5", "--output", output)
    assert result.returncode == 0, result.stderr
    model = Preprocessed(model=CCA(n_components=5)).fit(*splits.train.aligned())
    expected = evaluate_model(model, splits.test, BY_LABEL)
    content = written(output)

    assert list(content["measures"]) == [measure_key(measure) for measure in BY_LABEL]
    for key, measure in zip(content["measures"], BY_LABEL, strict=True):
        for way in DIRECTIONS:
            assert content["measures"][key][way] == pytest.approx(expected[way].mean[measure], abs=1e-12)
            assert content["chance"][key][way] == pytest.approx(expected[way].chance[measure], abs=1e-12)
        assert f"{average(content, key):.4f}" in result.stdout

    for way, labels in zip(DIRECTIONS, (splits.test.labels, splits.test.text_labels), strict=True):
        values = expected[way].values[AP()]
        assert content["per_query"]["AP()"][way] == pytest.approx(values.tolist(), abs=1e-6)
        assert content["intervals"][way]["low"] == pytest.approx(bootstrap_interval(values).low, abs=1e-12)
        means = category_means(values, labels)
        assert {row["name"]: row[way]["map"] for row in content["categories"]} == pytest.approx(means, abs=1e-12)
        assert np.array(content["confusion"][way]["counts"]).sum() == len(labels)

    assert "n_components=5" in content["model"]
    assert content["seconds"].keys() == {"tune", "fit", "encode", "evaluate"}
    assert content["versions"]["numpy"] == np.__version__


def test_a_method_inside_a_method(run: Run, tmp_path: Path, splits: DatasetSplits) -> None:
    output = tmp_path / "results.json"
    parameters = ("--param", "C=1", "-p", "correlation__n_components=5", "-p", "correlation=cca")
    assert run("evaluate", *SMALL_SCENES, "-m", "scm", *parameters, "-o", output).exit_code == 0
    content = written(output)
    assert "correlation=CCA(n_components=5)" in content["model"]
    model = Preprocessed(model=SCM(C=1, correlation=CCA(n_components=5))).fit(*splits.train.aligned())
    expected = evaluate_model(model, splits.test).average(AP())
    assert average(content) == pytest.approx(expected, abs=OPTIMISER)


def test_results_and_progress_do_not_mix(program: Program, run: Run) -> None:
    loud = program("evaluate", *SMALL_SCENES, "--method", "cca")
    quiet = run("evaluate", *SMALL_SCENES, "--method", "cca", "--quiet")
    assert loud.returncode == quiet.exit_code == 0
    assert loud.stdout == quiet.stdout
    assert quiet.stderr == ""
    assert "fitting cca" in loud.stderr
    assert "fitting" not in loud.stdout
    assert "\x1b" not in loud.stdout
    assert "\x1b" not in loud.stderr


def test_chance_levels_by_category_average_to_the_overall_chance(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    assert run("evaluate", *SMALL_SCENES, "--method", "random", "--output", output).exit_code == 0
    content = written(output)
    for way, side in zip(DIRECTIONS, ("images", "texts"), strict=True):
        chances = [row[way]["chance"] for row in content["categories"]]
        sizes = [row[side] for row in content["categories"]]
        assert np.average(chances, weights=sizes) == pytest.approx(content["chance"]["AP()"][way], abs=1e-12)


def test_instance_relevance_reports_recall_and_ranks(run: Run, tmp_path: Path, splits: DatasetSplits) -> None:
    output = tmp_path / "results.json"
    words = ["evaluate", *SMALL_SCENES, "-m", "cca", "--relevant", "instance", "--images", "none"]
    result = run(*words, "-o", output)
    assert json.loads(run(*words, "--json", "-q").stdout)["measures"] == written(output)["measures"]
    model = Preprocessed(model=CCA(), images="none").fit(*splits.train.aligned())
    expected = evaluate_model(model, splits.test, BY_INSTANCE, relevant="instance")
    for measure in BY_INSTANCE:
        assert average(written(output), measure_key(measure)) == pytest.approx(expected.average(measure), abs=1e-12)
        assert measure.label in result.stdout


def test_several_labels_per_image(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    result = run("evaluate", *SMALL_SCENES, "--dataset-option", "label=kinds", "-m", "sm", "-o", output)
    assert result.exit_code == 0
    content = written(output)
    assert content["confusion"] is None
    assert sum(row["images"] for row in content["categories"]) > 24


def test_ties_and_scaling_are_passed_on(run: Run, tmp_path: Path) -> None:
    averages = {}
    for ties in ("pessimistic", "expected", "optimistic"):
        output = tmp_path / f"{ties}.json"
        run("evaluate", *SMALL_SCENES, "-m", "sm", "-p", "C=1e-12", "--texts", "l1", "--ties", ties, "-o", output)
        content = written(output)
        assert content["ties"] == ties
        assert "texts='l1'" in content["model"]
        averages[ties] = average(content)
    assert averages["pessimistic"] <= averages["expected"] <= averages["optimistic"]


def test_tuning_equals_the_library(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    # Twenty fits each are soon done where features are few.
    few = ("--image-encoder", "ColourEdgeHistograms:size=16,levels=[1]")
    raw = load_dataset("scenes", n_train=60, n_test=24, size=32)
    splits = encode_splits(raw, ColourEdgeHistograms(size=16, levels=(1,)))
    choices = ("--tune", "n_components=[2, 9]", "--tune", 'images=["l2", "hellinger"]')
    result = run("evaluate", *SMALL_SCENES, *few, "-m", "cca", *choices, "--seed", "3", "-o", output)
    assert result.exit_code == 0, result.stderr
    grid = {"model__n_components": [2, 9], "images": ["l2", "hellinger"]}
    expected = tune(Preprocessed(model=CCA()), splits.train, grid, HoldOut(seed=3))
    content = written(output)
    assert content["validation"]["trials"] == 4
    assert content["validation"]["mean"] == pytest.approx(expected.best.mean)
    best = {name.removeprefix("model__"): value for name, value in expected.best.parameters.items()}
    assert content["parameters"] == best
    assert "best of 4 settings" in result.stdout


def test_the_seed_goes_to_a_method_that_draws(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    for words, seed in ((["--seed", "7"], 7), (["--seed", "7", "-p", "random_state=1"], 1)):
        assert run("evaluate", *SMALL_SCENES, "-m", "random", *words, "-o", output).exit_code == 0
        assert f"random_state={seed}" in written(output)["model"]


def test_a_saved_model_loads_and_scores_the_same(run: Run, tmp_path: Path, splits: DatasetSplits) -> None:
    folder, output = tmp_path / "model", tmp_path / "results.json"
    assert run("evaluate", *SMALL_SCENES, "-m", "cca", "--save", folder, "-o", output).exit_code == 0
    again = evaluate_model(load_model(folder), splits.test, [CMC(1)])
    assert average(written(output), "CMC@1") == pytest.approx(again.average(CMC(1)), abs=1e-12)


def test_plots_are_drawn_and_the_same_every_time(run: Run, tmp_path: Path) -> None:
    names = {"precision-recall-11-point", "precision-recall", "cmc", "categories", "confusion", "map"}
    for folder in ("first", "second"):
        result = run("evaluate", *SMALL_SCENES, "-m", "cca", "--plots", tmp_path / folder, "--format", "svg")
        assert result.exit_code == 0
    for name in names:
        first, second = (tmp_path / folder / f"{name}.svg" for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
    assert {file.stem for file in (tmp_path / "first").iterdir()} == names


def test_places_that_cannot_be_written_are_found_before_the_work(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for words, hint in (
        (("--output", tmp_path), "is a folder"),
        (("--output", file / "results.json"), "cannot write"),
        (("--plots", file), "is a file"),
    ):
        result = run("evaluate", *SMALL_SCENES, "-m", "cca", *words)
        assert result.exit_code == 2
        assert hint in result.stderr
        assert "loading" not in result.stderr


@pytest.fixture
def unlabelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flickr8k in its own layout, with a handful of scenes for photographs: pairs without any label."""
    folder = tmp_path / "data" / "flickr8k"
    (folder / "images").mkdir(parents=True)
    captions = []
    for part, numbers in {"train": range(30), "dev": range(30, 34), "test": range(34, 44)}.items():
        for number in numbers:
            scene = make_scene(number)
            Image.fromarray(scene.render(32)).save(folder / "images" / f"{number}.jpg")
            captions += [f"{number}.jpg#{place}\t{caption}" for place, caption in enumerate(scene.captions)]
        listed = "\n".join(f"{number}.jpg" for number in numbers)
        (folder / f"Flickr_8k.{part}Images.txt").write_text(listed + "\n")
    for name in ("Flickr8k.token.txt", "Flickr8k.lemma.token.txt"):
        (folder / name).write_text("\n".join(captions) + "\n")
    monkeypatch.setenv("DIPTYCH_DATA", str(folder.parent))


@pytest.mark.usefixtures("unlabelled")
def test_pairs_without_labels(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    result = run("evaluate", "-d", "flickr8k", "-m", "cca", "-o", output, "--plots", tmp_path / "plots")
    assert result.exit_code == 0, result.stderr
    content = written(output)
    assert content["relevant"] == "instance"
    assert list(content["measures"]) == [measure_key(measure) for measure in BY_INSTANCE]
    assert content["categories"] == []
    assert "category" not in result.stdout
    drawn = sorted(file.stem for file in (tmp_path / "plots").iterdir())
    assert drawn == ["cmc", "precision-recall", "precision-recall-11-point"]

    needs = run("evaluate", "-d", "flickr8k", "-m", "scm")
    assert needs.exit_code == 2
    assert re.search(
        r"error: scm learns from labels, but flickr8k has none; methods without: .*\bcca, cfa", needs.stderr
    )
    assert "encoding" not in needs.stderr
    wants = run("evaluate", "-d", "flickr8k", "-m", "cca", "--relevant", "label")
    assert wants.exit_code == 2
    assert "use relevant=instance" in wants.stderr


@pytest.mark.usefixtures("unlabelled")
def test_encoders_are_chosen_by_name(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    images = "ColourEdgeHistograms:levels=[1, 2],size=32+colouredgehistograms"
    texts = "TfidfTopics:n_components=7,min_documents=1"
    options = ("--image-encoder", images, "--text-encoder", texts, "-o", output)
    result = run("evaluate", "-d", "flickr8k", "-m", "cca", "-p", "n_components=3", *options)
    assert result.exit_code == 0, result.stderr
    parts = (ColourEdgeHistograms(levels=(1, 2), size=32), ColourEdgeHistograms())
    encoders = (Concatenated(encoders=parts), TfidfTopics(n_components=7, min_documents=1))
    splits = encode_splits(load_dataset("flickr8k"), *encoders, cache=False)
    model = Preprocessed(model=CCA(n_components=3)).fit(*splits.train.aligned())
    expected = evaluate_model(model, splits.test, BY_INSTANCE)
    content = written(output)
    assert content["encoders"] == {"images": encoders[0].identity, "texts": encoders[1].identity}
    for measure in BY_INSTANCE:
        assert average(content, measure_key(measure)) == pytest.approx(expected.average(measure), abs=1e-9)
    assert encoders[1].identity in result.stdout


@pytest.mark.usefixtures("unlabelled")
def test_captions_of_ones_own_picture_are_measured_by_recall_and_rank(run: Run, tmp_path: Path) -> None:
    """Ten pictures with five captions each: what chance gives is known exactly."""
    output = tmp_path / "results.json"
    result = run("evaluate", "-d", "flickr8k", "-m", "cca", "-o", output)
    chance = written(output)["chance"]
    for label in ("R@1", "R@5", "R@10", "median rank"):
        assert label in result.stdout
    assert chance["R@1"]["text_query"] == pytest.approx(1 / 10)
    assert chance["R@5"]["text_query"] == pytest.approx(5 / 10)
    assert chance["R@1"]["image_query"] == pytest.approx(5 / 50)
    none_in_five = math.comb(45, 5) / math.comb(50, 5)
    assert chance["R@5"]["image_query"] == pytest.approx(1 - none_in_five)


@pytest.mark.parametrize(
    ("option", "typed", "hint"),
    [
        ("--image-encoder", "ColourEdgeHistogram", "did you mean 'ColourEdgeHistograms'"),
        ("--image-encoder", "TfidfTopics", "unknown encoder of pictures 'TfidfTopics'"),
        ("--text-encoder", "TfidfTopics:n_component=3", "did you mean 'n_components'"),
        (
            "--text-encoder",
            "TfidfTopics:n_components=many",
            "'n_components' of TfidfTopics cannot be 'many'",
        ),
        ("--text-encoder", "TfidfTopics:n_components=true", "cannot be True"),
        ("--text-encoder", "TfidfTopics:n_components", "--text-encoder takes name=value"),
        ("--text-encoder", "TfidfTopics+", "unknown encoder of texts 'TfidfTopics+'"),
    ],
)
def test_a_mistyped_encoder_costs_one_line(run: Run, option: str, typed: str, hint: str) -> None:
    result = run("evaluate", *SMALL_SCENES, "-m", "cca", option, typed)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert "loading" not in result.stderr


@given(
    st.dictionaries(
        st.sampled_from(["n_components", "min_documents", "stop_words"]),
        st.none() | st.integers() | st.text(max_size=9),
    )
)
def test_parameters_are_read_as_they_are_written(values: dict[str, Any]) -> None:
    typed = ",".join(f"{name}={json.dumps(value)}" for name, value in values.items())
    fits = {"n_components": int, "min_documents": int, "stop_words": (str, NoneType)}
    spec = "TfidfTopics:" + typed
    if all(isinstance(value, fits[name]) for name, value in values.items()):
        assert build_encoder(spec, "text", "-").get_params() == TfidfTopics(**values).get_params()
    else:
        with pytest.raises(InvalidInputError, match="cannot be"):
            build_encoder(spec, "text", "-")


@pytest.mark.data("wikipedia")
def test_features_need_no_encoder(run: Run) -> None:
    result = run("evaluate", "-d", "wikipedia", "-m", "cca", "--text-encoder", "TfidfTopics")
    assert result.exit_code == 2
    assert "come as features, so TfidfTopics has nothing to encode; leave out the text encoder" in result.stderr


@pytest.mark.data("wikipedia")
def test_wikipedia_end_to_end(program: Program, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    result = program("evaluate", "--dataset", "wikipedia", "--method", "scm", "--output", output)
    assert result.returncode == 0, result.stderr
    content = written(output)
    splits = load_dataset("wikipedia")
    expected = evaluate_model(Preprocessed(model=SCM()).fit(*splits.train.aligned()), splits.test, [AP()])
    chance = content["chance"]["AP()"]["image_query"]
    assert average(content) == pytest.approx(expected.average(AP()), abs=OPTIMISER)
    assert average(content) > 2 * chance
    assert chance == pytest.approx(0.118, abs=5e-4)
    assert [row["images"] for row in content["categories"]] == [34, 88, 96, 85, 65, 58, 51, 41, 71, 104]
    assert f"{average(content):.4f}" in result.stdout


def test_models_of_words_and_of_clicks_take_part(run: Run, tmp_path: Path) -> None:
    """A click model learns from captions, each clicked once on its picture, and is saved as what it is."""
    small = ["--dataset-option", "n_train=60", "--dataset-option", "n_test=20", "--dataset-option", "size=32"]
    words = ["evaluate", "-d", "scenes", "-m", "text2image", *small, "-q", "--save", str(tmp_path / "model")]
    done = run(*words, "-o", str(tmp_path / "numbers.json"))
    assert done.exit_code == 0, done.stderr
    document = json.loads((tmp_path / "numbers.json").read_text())
    assert document["method"] == "text2image"
    assert average(document) > sum(document["chance"]["AP()"].values()) / 2 + 0.1
    assert load_model(tmp_path / "model").answers("a boat")


def test_a_plugin_is_measured_and_its_rankings_are_written_like_any_method(run: Run, tmp_path: Path) -> None:
    plugin, output = tmp_path / "mine.py", tmp_path / "results.json"
    plugin.write_text(
        "from diptych.models import CCA\n\nclass Mine(CCA):\n    when_to_use = 'Never.'\n    n_components = 3\n"
    )
    words = ["--dataset-option", "n_train=60", "--dataset-option", "n_test=24", "--dataset-option", "size=32"]
    done = run("evaluate", "-d", "scenes", *words, "-m", "mine", "--plugin", plugin, "-o", output)
    assert done.exit_code == 0, done.stderr
    assert written(output)["method"] == "mine"
    assert average(written(output)) > sum(written(output)["chance"]["AP()"].values()) / 2
    files = ["bench", "trec", "export", "-d", "scenes", *words, "-m", "mine", "--plugin", plugin, "-o", tmp_path / "r"]
    assert run(*files).exit_code == 0
    assert (tmp_path / "r" / "text_query.run").is_file()
