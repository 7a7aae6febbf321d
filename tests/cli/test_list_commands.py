from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from diptych.cli.arguments import encoder_classes
from diptych.data import describe_datasets
from diptych.models import model_classes
from tests.cli.command_line import Run

METHODS = {**model_classes(), **model_classes("items"), **model_classes("clicks")}


def test_methods_as_json_say_what_the_classes_declare(run: Run) -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("methods", "--json").stdout)}
    assert listed.keys() == METHODS.keys()
    for name, cls in METHODS.items():
        assert set(listed[name]["needs"]) == cls.needs
        assert listed[name]["when_to_use"] == cls.when_to_use


@pytest.mark.parametrize("name", METHODS)
def test_every_method_explains_every_parameter(run: Run, name: str) -> None:
    card = json.loads(run("methods", name, "--json").stdout)
    signature = inspect.signature(METHODS[name]).parameters
    # JSON has no tuples.
    defaults = {
        each.name: list(each.default) if isinstance(each.default, tuple) else each.default
        for each in signature.values()
    }
    assert {entry["name"]: entry["default"] for entry in card["parameters"]} == defaults
    assert card["summary"].endswith(".")
    shown = run("methods", name).stdout
    for entry in card["parameters"]:
        assert entry["meaning"], f"{name} does not document {entry['name']}"
        assert entry["name"] in shown


def test_inherited_parameters_are_explained_where_they_are_explained_best(run: Run) -> None:
    methods = ("sm", "scm", "warp", "bi-cmsrm")
    cards = {method: json.loads(run("methods", method, "--json").stdout) for method in methods}
    meanings = {
        method: {entry["name"]: entry["meaning"] for entry in card["parameters"]} for method, card in cards.items()
    }
    assert meanings["scm"]["C"] == meanings["sm"]["C"]
    assert "subspace" not in meanings["scm"]["max_iter"]
    assert meanings["bi-cmsrm"]["epochs"] == meanings["warp"]["epochs"]


def test_datasets_say_what_is_here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    states = {entry["name"]: entry["state"] for entry in json.loads(run("datasets", "--json").stdout)}
    assert states["scenes"] == "built in"
    assert states["wikipedia"] == "missing"
    assert str(tmp_path) in run("datasets").stdout
    for dataset in describe_datasets():
        for file in dataset.files:
            (tmp_path / dataset.name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / dataset.name / file).touch()
    states = {entry["name"]: entry["state"] for entry in json.loads(run("datasets", "--json").stdout)}
    assert states["wikipedia"] == "found"


@pytest.mark.parametrize("name", [dataset.name for dataset in describe_datasets()])
def test_a_dataset_in_detail(run: Run, name: str) -> None:
    dataset = next(dataset for dataset in describe_datasets() if dataset.name == name)
    detail = json.loads(run("datasets", "show", name, "--json").stdout)
    assert detail["citation"] == dataset.citation
    assert {option: entry["default"] for option, entry in detail["options"].items()} == dataset.defaults
    shown = run("datasets", "show", name).stdout
    for text in (dataset.homepage, dataset.licence, dataset.citation, dataset.splits, *dataset.defaults):
        assert text in shown


def test_every_encoder_is_listed_with_its_side(run: Run) -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("encoders", "--json").stdout)}
    assert listed.keys() == encoder_classes().keys() >= {"ColourEdgeHistograms", "EfficientNetLite", "SentenceEncoder"}
    assert listed["ColourEdgeHistograms"]["encodes"] == "pictures"
    assert listed["LdaTopics"]["encodes"] == "texts"
    for entry in listed.values():
        assert entry["summary"].endswith(".")


@pytest.mark.parametrize("name", ["ColourEdgeHistograms", "TfidfTopics"])
def test_an_encoder_in_detail(run: Run, name: str) -> None:
    card = json.loads(run("encoders", name.lower(), "--json").stdout)
    signature = inspect.signature(encoder_classes()[name]).parameters
    assert [entry["name"] for entry in card["parameters"]] == list(signature)
    shown = run("encoders", name).stdout
    for entry in card["parameters"]:
        assert entry["meaning"], f"{name} does not document {entry['name']}"
        assert entry["name"] in shown
