"""Splits as files: what a fold says is what methods get, and digests are of the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from diptych.benchmark import declared_tasks
from diptych.benchmark.exchange import export_splits
from diptych.benchmark.task import find_by_name
from diptych.cli.app import app


def test_files_hold_what_methods_learn_from_and_are_asked(tmp_path: Path) -> None:
    task = find_by_name("task", "extendable-scenes-unseen", declared_tasks())
    export_splits([task], tmp_path, features=True, folds=1)
    found = json.loads((tmp_path / task.name / "0.json").read_text())
    fold = task.fold(task.load(), 0)
    assert found["train"]["images"] == fold.training.pairs.ids.tolist()
    assert found["train_classes"] == list(fold.train_classes)
    assert not set(found["train"]["classes"]) & set(found["queries"]["classes"])
    held_out = found["hold_outs"][0]
    assert set(held_out["train"]) < set(found["train"]["images"])
    assert not set(held_out["train"]) & {*held_out["queries"], *held_out["gallery"]}
    with np.load(tmp_path / task.name / "0.npz") as arrays:
        np.testing.assert_array_equal(arrays["queries_texts"], fold.retrieval.queries.texts)


def test_the_command_writes_the_same_files_every_time_with_their_digests(tmp_path: Path) -> None:
    words = ["bench", "export-splits", "-t", "extendable-scenes-*", "--folds", "2", "-q"]
    for folder in ("first", "second"):
        assert CliRunner().invoke(app, [*words, str(tmp_path / folder)]).exit_code == 0
    sums = (tmp_path / "first" / "SHA256SUMS").read_text()
    assert sums == (tmp_path / "second" / "SHA256SUMS").read_text()
    assert len(sums.splitlines()) == 4
    for line in sums.splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "first" / name).read_bytes()).hexdigest() == digest
