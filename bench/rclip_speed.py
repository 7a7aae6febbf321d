"""Indexing and a first search beside rclip, both as the programs that people run, with one and the same network.

    python -m bench.rclip_speed [--quick] [--rclip PROGRAM]

rclip fetches its networks, CLIP ViT-B/32 of 256 pixels, from a hub. Here it finds in their place what PyTorch exports
of that architecture with random weights, the weights that Diptych reads from their folder.
The photos are Flickr8k's; both programs use all cores, and times are by the clock. Points of both are compared; rclip
rounds a crop and a resize otherwise. Without Transformers, or without rclip on the search path or named, there is
nothing to compare.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from bench.index_folder import HERE, Indexing, linked, measured
from bench.joint_speed import clip_folder
from bench.speed_report import SpeedReport, installed, speed_parser
from diptych.collection import Collection
from diptych.data import load_dataset

REPEATS, SIDE, LEAST_COSINE = 3, 256, 0.99
MODEL, VOCABULARY = "ViT-B-32-256-datacomp_s34b_b86k", "tokenizer/bpe_simple_vocab_16e6.txt.gz"
QUERY = "a dog"


class Rclip:
    """The program with files of its own: the networks of a folder of CLIP."""

    def __init__(self, program: str, clip: Path, room: Path) -> None:
        self._program, self._data = program, room / "rclip"
        model = self._data / MODEL
        for folder in (model, (self._data / VOCABULARY).parent):
            folder.mkdir(parents=True)
        _export(clip, model)
        # The first line is a title.
        (self._data / VOCABULARY).write_bytes(gzip.compress(b"#version\nd o\n"))

    def first(self, photos: Path) -> float:
        """Index into an empty database and search; return the seconds."""
        (self._data / "db.sqlite3").unlink(missing_ok=True)
        environment = {**os.environ, "RCLIP_DATADIR": str(self._data)}
        environment.pop("PYTHONPATH", None)
        started = time.perf_counter()
        command = [self._program, QUERY, "--top", "1"]
        subprocess.run(command, check=True, env=environment, cwd=photos, capture_output=True)
        return time.perf_counter() - started

    def points(self) -> dict[str, np.ndarray]:
        """Return the points of the photos by name."""
        with sqlite3.connect(self._data / "db.sqlite3") as database:
            rows = database.execute("SELECT filepath, vector FROM images").fetchall()
        return {Path(path).name: np.frombuffer(vector, dtype=np.float32) for path, vector in rows}


def _export(clip: Path, folder: Path) -> None:
    """Write both sides of a folder's network under the names that rclip asks for."""
    import torch
    from transformers import CLIPModel

    model = CLIPModel.from_pretrained(clip).eval().requires_grad_(False)

    class Side(torch.nn.Module):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            # The few words that the folder knows stand for rclip's many.
            words = input % model.config.text_config.vocab_size
            found = model.get_image_features(input) if input.ndim == 4 else model.get_text_features(words)
            return getattr(found, "pooler_output", found)

    examples = {"visual": torch.zeros(1, 3, SIDE, SIDE), "textual": torch.zeros((1, 77), dtype=torch.long)}
    with warnings.catch_warnings():
        # Of the export, in favour of one that needs further packages.
        warnings.simplefilter("ignore")
        for name, example in examples.items():
            names = {"input_names": ["input"], "output_names": ["output"]}
            sizes = {"dynamic_axes": {"input": {0: "items"}, "output": {0: "items"}}}
            torch.onnx.export(Side(), (example,), folder / f"{name}.onnx", dynamo=False, **names, **sizes)


class Diptych:
    """The program with the same folder as its search model."""

    def __init__(self, clip: Path, room: Path) -> None:
        self._collection = room / "collection"
        self._indexing = Indexing(room, HERE, ["--retriever", str(clip)])
        self._search = [sys.executable, "-P", "-m", "diptych", "search", QUERY, "-k", "1", "--all", "--local", "-c"]

    def first(self, photos: Path) -> float:
        """Index into an empty collection and search; return the seconds."""
        indexed = self._indexing.first(photos)
        environment, command = self._indexing.environment, [*self._search, str(self._collection)]
        searched = measured(lambda: subprocess.run(command, check=True, env=environment, capture_output=True))
        return indexed.seconds + searched.seconds

    def points(self) -> dict[str, np.ndarray]:
        """Return the points of the photos by name."""
        with Collection.open(self._collection) as collection:
            ids, rows = collection.points("image")
            return {Path(collection[name].path).name: row for name, row in zip(ids, rows, strict=True)}


def agreement(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> float:
    """Return the least cosine of two points of one photo."""
    assert first.keys() == second.keys()
    return min(
        float(first[name] @ second[name] / np.linalg.norm(first[name]) / np.linalg.norm(second[name])) for name in first
    )


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--rclip", default="rclip", metavar="PROGRAM")
    options = parser.parse_args()
    report, program = SpeedReport(__file__, options), shutil.which(options.rclip)
    count = 100 if options.quick else 1_000
    work = f"CLIP ViT-B/32 of {count:,} photos, indexed and searched"
    if program is None or not installed("transformers"):
        print(f"{'rclip' if program is None else 'Transformers'} is not installed; there is nothing to compare")
        return report.finish()
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        clip_folder(room / "clip", SIDE)
        rclip, diptych = Rclip(program, room / "clip", room), Diptych(room / "clip", room)
        paths = [Path(path) for path in load_dataset("flickr8k").train.images[:count]]
        few, photos = linked(paths[:4], room / "few"), room / "photos"
        photos.mkdir()
        for path in paths:
            # rclip looks for files, not for links to them.
            shutil.copy(path, photos)
        # Networks are written down once.
        diptych.first(few)
        turns = [(diptych.first(photos), rclip.first(photos)) for _ in range(REPEATS)]
        ours, theirs = map(list, zip(*turns, strict=True))
        least = agreement(diptych.points(), rclip.points())
    report.hold(f"{work}: points as rclip's", least >= LEAST_COSINE, f"least cosine {least:.4f}")
    report.compare(work, ours, theirs, peer="rclip", unit="s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
