"""The papers' own settings run from files in the published layout to a table, and on data made here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from diptych.benchmark import Catalogue, declared_tasks
from diptych.benchmark.papers.dong import click_tables
from diptych.benchmark.reporting import group_records, sample_sheets
from diptych.benchmark.reporting.code_observations import check_code_observations
from diptych.benchmark.results import Record
from diptych.cli.app import app
from diptych.space import DIRECTIONS
from tests.benchmark.made_up_records import make_record
from tests.data.clicks.test_web_datasets import packed
from tests.data.test_nus_wide import Folder
from tests.encoders.image.test_resnet50 import shelf, weights

__all__ = ["shelf", "weights"]

TASKS = {task.name: task for task in declared_tasks()}


def run(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bench", "run", *words, "-j", "1", "-q", "--json"])
    told: dict[str, Any] = json.loads(done.stdout)
    assert not told["failed"], told["failed"]
    return told


@pytest.mark.filterwarnings("ignore:.*pictures of NUS-WIDE:UserWarning")
def test_nus_wide_goes_from_its_files_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    Folder(tmp_path, n_images=400)
    words = ("-t", "published-nus-wide-*", "-m", "random,cca,ts,cvh-8", "--folds", "1")
    told = run(*words, "-r", str(tmp_path / "results"))
    assert {(unit["task"], unit["method"]) for unit in told["units"]} == {
        (f"published-nus-wide-{setting}", method)
        for setting in ("seen", "unseen")
        for method in ("random", "cca", "ts", "cvh-8")
    }


def test_the_published_settings_have_as_many_dimensions_as_training_classes() -> None:
    for data, n_classes in (("wikipedia", 5), ("pascal", 10), ("nus-wide", 5)):
        task = TASKS[f"published-{data}-unseen"]
        assert task.method("cca").grid[0]["model__n_components"] == [n_classes]
        assert len({method.name.rpartition("-")[0] for method in task.methods if method.n_bits}) == 8
        assert {method.n_bits for method in task.methods} == {None, 8, 16, 32}


def write_coco_2014(root: Path, n_images: int = 24) -> None:
    """Write both parts of COCO 2014 as they are published: photographs, captions and instances."""
    folder = root / "coco_2014"
    (folder / "annotations").mkdir(parents=True)
    rng = np.random.default_rng(0)
    categories = [{"id": 1, "name": "cat", "supercategory": "animal"}, {"id": 2, "name": "car", "supercategory": "x"}]
    for first, part in ((0, "train2014"), (1000, "val2014")):
        (folder / part).mkdir()
        images = [{"id": row, "file_name": f"COCO_{part}_{row:012}.jpg"} for row in range(n_images)]
        for image in images:
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / part / str(image["file_name"]))
        captions = [
            {"id": first + 5 * row + k, "image_id": row, "caption": f"a {'cat' if row % 2 else 'car'} number {k}"}
            for row in range(n_images)
            for k in range(2)
        ]
        # The last photograph holds nothing that was annotated.
        instances = [{"id": row, "image_id": row, "category_id": 1 + row % 2} for row in range(n_images - 1)]
        for kind, listed in (("captions", captions), ("instances", instances)):
            content = {"images": images, "annotations": listed, "categories": categories}
            (folder / "annotations" / f"{kind}_{part}.json").write_text(json.dumps(content))


def write_flickr30k(root: Path, n_images: int = 20) -> None:
    """Write photographs, captions and the lists of Flickr30k Entities."""
    folder = root / "flickr30k"
    (folder / "flickr30k-images").mkdir(parents=True)
    rng = np.random.default_rng(1)
    for row in range(n_images):
        pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "flickr30k-images" / f"{row}.jpg")
    lines = [f"{row}.jpg#{k}\tthing {row} number {k} ." for row in range(n_images) for k in range(5)]
    (folder / "results_20130124.token").write_text("\n".join(lines) + "\n")
    (folder / "dataset_flickr30k.json").write_text(json.dumps({"dataset": "flickr30k", "images": []}))
    for part, rows in {"train": range(14), "val": range(14, 16), "test": range(16, n_images)}.items():
        (folder / f"{part}.txt").write_text("\n".join(map(str, rows)) + "\n")


def test_a_paper_takes_a_folder_of_data_sets(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On narrow weights of ResNet-50 that are made here, as the package of the real ones has them."""
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path / "elsewhere"))
    write_coco_2014(tmp_path / "sets")
    write_flickr30k(tmp_path / "sets")
    told = run("--paper", "002", "--data", str(tmp_path / "sets"), "-m", "cca,random", "--folds", "2", "--quick")
    assert {unit["task"] for unit in told["units"]} == {"draws-coco-2014", "draws-flickr30k", "neural-flickr30k"}
    assert {"AP()", "R@1"} <= {name for unit in told["units"] for name in unit["measures"]}
    assert any("neural-coco," in unit for unit in told["skipped"])


def test_splits_of_the_draws_are_those_of_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    write_coco_2014(tmp_path)
    splits = TASKS["draws-coco-2014"].load_items()
    assert splits.dev is not None
    assert (splits.train.n_images, splits.dev.n_images, splits.test.n_images) == (23, 11, 11)
    assert splits.train.n_texts == 23
    assert not set(splits.dev.ids) & set(splits.test.ids)
    assert TASKS["draws-coco-2014"].protocol.n_folds == 10
    mnil = TASKS["draws-pascal"].method("mnil-sgd").method
    settings = {"optimizer": "sgd", "momentum": 0.9, "map_factor": 10.0, "texts_per_picture": 5, "max_words": 20}
    assert {name: getattr(mnil, name) for name in settings} == settings


CODES = {"scm-orth": (0.30, 0.20, 0.30, 0.40), "cvh": (0.35, 0.30, 0.30, 0.45), "imh": (0.40, 0.38, 0.20, 0.25)}


def code_record(stem: str, bits: int, setting: str, fold: int) -> Record:
    """Return a record whose MAP falls and whose rank-1 accuracy rises with the length of the code."""
    falls, low, first, right = CODES[stem]
    level, hit = (falls, first) if bits == 8 else (low, right)
    spread = 1.0 if setting == "seen" else 0.2
    base = make_record("cvh-8", setting, fold)
    map_value, rank_value = 0.2 + spread * (level - 0.2) + fold / 1000, 0.2 + spread * (hit - 0.2) + fold / 1000
    values = {"AP()": dict.fromkeys(DIRECTIONS, map_value), "CMC@1": dict.fromkeys(DIRECTIONS, rank_value)}
    hits = (np.arange(24) < round(24 * rank_value)).astype(float).tolist()
    per_query = {**base.per_query, "CMC@1": dict.fromkeys(DIRECTIONS, hits)}
    return replace(base, method=f"{stem}-{bits}", n_bits=bits, measures=values, per_query=per_query)


def test_observations_on_codes_that_were_built_in() -> None:
    records = [
        code_record(stem, bits, setting, fold)
        for stem in CODES
        for bits in (8, 32)
        for setting in ("seen", "unseen")
        for fold in range(5)
    ]
    found = {(one.claim[:6], one.where): one for one in check_code_observations(group_records(records))}
    assert found["Longer", "Wikipedia, seen classes"].verdict == "not confirmed"
    assert "0 of 3 methods have a higher MAP" in found["Longer", "Wikipedia, seen classes"].evidence
    assert found["Codes ", "Wikipedia, seen classes"].verdict == "confirmed"
    assert found["Codes ", "Wikipedia, seen classes"].p_value == pytest.approx(1 / 32)
    assert found["Method", "Wikipedia, codes"].verdict == "confirmed"
    assert found["Method", "Wikipedia, real-valued methods"].verdict == "not testable"
    backwards = [replace(one, measures={**one.measures, "AP()": one.measures["CMC@1"]}) for one in records]
    turned = {(one.claim[:6], one.where): one for one in check_code_observations(group_records(backwards))}
    assert turned["Codes ", "Wikipedia, seen classes"].verdict == "not confirmed"
    assert turned["Longer", "Wikipedia, seen classes"].evidence.startswith("With 32 bits 3 of 3")


def test_samples_of_named_methods_come_from_every_task_that_has_them() -> None:
    options = {"n_train": 60, "n_test": 30, "size": 32, "captions": "join"}
    declared = [
        replace(Catalogue().task(f"extendable-scenes-{setting}"), options=options) for setting in ("seen", "unseen")
    ]
    records = [
        replace(make_record(method, task.protocol.setting, 0), task=task.name, dataset="scenes", parameters={})
        for task in declared
        for method in ("cfa", "sm", "ts")
    ]
    sheets = sample_sheets(group_records(records), declared, methods=("sm", "cfa"))
    assert [set(sheet.samples[0].answers) for sheet in sheets] == [{"SM", "CFA"}] * 2
    for sample in (one for sheet in sheets for one in sheet.samples):
        # Points of SM are probabilities of the training classes; those of CFA are not.
        assert sample.likeliest["CFA"] == ""
        listed = [sample.likeliest["SM"], *(shown.likeliest for shown, _ in sample.answers["SM"])]
        for likeliest in listed:
            values = [float(part.rpartition(" ")[2]) for part in likeliest.split(", ")]
            assert values == sorted(values, reverse=True)
            assert 0 < sum(values) <= 1.01
    assert sample_sheets(group_records(records), declared, methods=("cca",)) == ()


def write_clickture(root: Path) -> None:
    """Write Clickture's four tables with a few pictures of two kinds."""
    folder = root / "clickture"
    folder.mkdir()
    words, colours = ("red car", "green tree"), ((255, 0, 0), (0, 255, 0))
    clicks, pictures, judged, asked = [], [], [], []
    for row in range(8):
        clicks.append(f"{words[row % 2]} {row}\tk{row}\t{2 + row}\n")
        pictures.append(f"k{row}\t{packed(colours[row % 2])}\n")
        judged.append(f"d{row}\t{packed(colours[row % 2])}\n")
    clicks.append("lost\tk99\t3\n")
    for query in range(10):
        for row in range(4):
            grade = "Excellent" if (row + query) % 2 == 0 else "Bad"
            asked.append(f"{words[query % 2]} number{query}\td{row}\t{grade}\n")
    for name, lines in (
        ("TrainClickLog", clicks),
        ("TrainImageSet", pictures),
        ("DevSetLabel", asked),
        ("DevSetImage", judged),
    ):
        (folder / f"{name}.tsv").write_text("".join(lines))


def write_mirflickr(root: Path) -> None:
    """Write photographs, tags and annotations of two concepts as the archives have them."""
    folder = root / "mirflickr"
    tags, annotations = folder / "mirflickr" / "meta" / "tags", folder / "mirflickr25k_annotations_v080"
    tags.mkdir(parents=True)
    annotations.mkdir()
    for number in range(1, 31):
        colour = (255, 0, 0) if number % 2 else (0, 255, 0)
        Image.new("RGB", (32, 32), colour).save(folder / "mirflickr" / f"im{number}.jpg")
        (tags / f"tags{number}.txt").write_text(f"{'dog' if number % 2 else 'sea'}\nday{number}\n")
    for first, name in ((1, "dog"), (2, "sea")):
        (annotations / f"{name}_r1.txt").write_text("".join(f"{number}\n" for number in range(first, 31, 2)))


@pytest.mark.parametrize("data", ["clickture", "mirflickr"])
def test_click_data_go_from_their_files_to_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    {"clickture": write_clickture, "mirflickr": write_mirflickr}[data](tmp_path)
    words = ["bench", "clicks", "--data", data, "-m", "text2image", "-m", "image2text", "-q"]
    done = CliRunner().invoke(app, [*words, "--seeds", "1", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    (name,) = {"experts", "words"} & set(document["lists"])
    found = document["lists"][name]
    assert found["queries"] == {"clickture": 8, "mirflickr": 2}[data]
    assert list(found["means"]["text2image"]) == ["lite2", "lite0", "lite1", "feature fusion"]
    # Colours and words go together: what is learned from clicks finds them.
    assert found["means"]["text2image"]["feature fusion"] > found["random"]
    assert found["means"]["text2image"]["feature fusion"] > 0.9 * found["upper_bound"]
    tables = click_tables(document)
    assert f"queries-{name}" in tables
    if data == "clickture":
        assert {"ranks", "grades", "answers", "groups", "neighbours", "people"} <= set(tables)
        assert document["ranks"]["text2image"]["1"] >= document["ranks"]["random"]["1"]
        assert sum(map(sum, document["experts"]["grades"].values())) == found["judged"]
        first = document["answers"][0]["answers"]["text2image"][0]
        assert first[1] == 3
