"""Indexing photos with the program itself, beside bare decoding, a second time, and beside rclip and Transformers.

    python -m bench.indexing [--quick] [--rclip PROGRAM]

The photos are Flickr8k's, of 500 × 375 pixels, and the same enlarged to 4,000 × 3,000; the collection and the cache
of features start empty, and the start of the program is part of every run. Bare decoding is threads that read photos
at the size that networks need. rclip and Diptych are given one network, CLIP ViT-B/32 with random weights that
Transformers writes and Diptych exports: rclip finds it in place of what it would fetch from a hub, and points of both
are compared. Then the network alone reads the photographs that come with Diptych, beside Transformers, in one thread.
Where rclip or Transformers is missing there is nothing to compare.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import diptych
from bench.report import SpeedReport, installed, speed_parser
from diptych.arrays import unit_rows
from diptych.cluster import available_processors
from diptych.collection import Collection
from diptych.data import load_dataset
from diptych.encoders import EfficientNetLite, JointImageEncoder, export_folder

AGAIN_BAR = 50
LARGE_SIZE = (4000, 3000)
GRAIN = 4.0
REPEATS = 3
RCLIP_SIDE = 256
MIN_RCLIP_COSINE = 0.99
MIN_COSINE = 0.999
BATCH = 16
MODEL = "ViT-B-32-256-datacomp_s34b_b86k"
VOCABULARY = "tokenizer/bpe_simple_vocab_16e6.txt.gz"
CLIP_MEAN, CLIP_DEVIATION = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
QUERY = "a dog"
PHOTOGRAPHS = sorted((Path(diptych.__file__).parent / "data" / "photographs").rglob("*.jpg"))


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes by the clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Program:
    """Runs Diptych with a cache and a collection of its own."""

    def __init__(self, room: Path, *options: str) -> None:
        self._cache = room / "cache"
        self.collection = room / "collection"
        self._diptych = [sys.executable, "-P", "-m", "diptych"]
        self._options = options
        # Bytecode is written, as for an installed program.
        self._environment = {**os.environ, "XDG_CACHE_HOME": str(self._cache)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def first(self, photos: Path) -> float:
        """Index into an empty collection; networks that were exported before are there already."""
        shutil.rmtree(self.collection, ignore_errors=True)
        shutil.rmtree(self._cache / "diptych" / "features", ignore_errors=True)
        return self.again(photos)

    def again(self, photos: Path) -> float:
        """Bring the collection up to date."""
        return self._run("index", "--quiet", *self._options, str(photos), "--collection", str(self.collection))

    def search(self) -> float:
        """Ask one query."""
        return self._run("search", QUERY, "-k", "1", "--all", "-c", str(self.collection))

    def _run(self, *words: str) -> float:
        command = [*self._diptych, *words]
        return seconds(lambda: subprocess.run(command, check=True, env=self._environment, stdout=subprocess.DEVNULL))

    def points(self) -> dict[str, np.ndarray]:
        """Return the points of the photos by name."""
        with Collection.open(self.collection) as collection:
            ids, rows = collection.points("image")
            return {Path(collection[name].path).name: row for name, row in zip(ids, rows, strict=True)}


def copied(paths: list[Path], target: Path) -> Path:
    """Return a folder of copies of photos; rclip looks for files, not for links to them."""
    target.mkdir()
    for path in paths:
        shutil.copy(path, target / path.name)
    return target


def enlarged(paths: list[Path], target: Path) -> Path:
    """Return a folder of photos as large as a camera's, with its grain, for decoders take longer with detail."""
    target.mkdir()
    grain = np.random.default_rng(0).normal(scale=GRAIN, size=(*LARGE_SIZE[::-1], 1)).astype(np.int16)

    def enlarge(path: Path) -> None:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize(LARGE_SIZE, Image.Resampling.BICUBIC))
        Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8)).save(target / path.name, quality=90)

    with ThreadPoolExecutor(available_processors()) as pool:
        list(pool.map(enlarge, paths))
    return target


def decode(photos: Path) -> None:
    """Decode photos at the size that networks need, and nothing else."""
    side = EfficientNetLite().reading_side

    def decoded(path: Path) -> None:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            image.load()

    with ThreadPoolExecutor(available_processors()) as pool:
        list(pool.map(decoded, sorted(photos.iterdir())))


def beside_decoding(report: SpeedReport, work: str, program: Program, photos: Path) -> list[float]:
    """Index in turns with bare decoding; return the seconds of indexing."""
    count = sum(1 for _ in photos.iterdir())
    turns = [(program.first(photos), seconds(lambda: decode(photos))) for _ in range(REPEATS)]
    ours, bare = ([count / taken for taken in side] for side in zip(*turns, strict=True))
    report.compare(f"{work}, {count:,} photos", ours, bare, limit="bare decoding", unit="photos/s")
    return [taken for taken, _ in turns]


def indexing(report: SpeedReport, paths: list[Path], n_large: int, room: Path) -> None:
    """Measure indexing of small and of large photos, a second run, and the size on disk."""
    program = Program(room)
    # Networks are exported once.
    program.first(copied(paths[:8], room / "few"))
    photos = copied(paths, room / "photos")
    first = beside_decoding(report, "indexing, 500 × 375 pixels", program, photos)
    again = [program.again(photos) for _ in range(REPEATS)]
    report.compare(f"indexing {len(paths):,} photos again", again, first, limit="the first time", bar=AGAIN_BAR)
    size = sum(file.stat().st_size for file in program.collection.rglob("*") if file.is_file())
    report.cost("a collection on disk, for each photo", [size / len(paths) / 1e3], unit="kB")
    beside_decoding(report, "indexing, 4,000 × 3,000 pixels", program, enlarged(paths[:n_large], room / "large"))


def write_clip(folder: Path, side: int) -> Callable[[list[Path]], np.ndarray]:
    """Write CLIP ViT-B/32 at random, and return how Transformers encodes pictures with it."""
    import torch
    from transformers import AutoImageProcessor, CLIPConfig, CLIPModel, CLIPTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz"))
    marks = ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: number for number, piece in enumerate([*letters, *(f"{one}</w>" for one in letters), *marks])}
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=[])
    text = {"vocab_size": len(vocabulary), "bos_token_id": vocabulary[marks[0]], "eos_token_id": vocabulary[marks[1]]}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config={"image_size": side})).eval()
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    size = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
    steps = {"do_resize": True, "do_center_crop": True, "do_rescale": True, "do_normalize": True, "resample": 3}
    scale = {"rescale_factor": 1 / 255, "image_mean": CLIP_MEAN, "image_std": CLIP_DEVIATION}
    config = {"image_processor_type": "CLIPImageProcessor", "do_convert_rgb": True, **size, **steps, **scale}
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    # Pillow's filters, which are there without torchvision.
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")

    def encoded(paths: list[Path]) -> np.ndarray:
        rows = []
        for start in range(0, len(paths), BATCH):
            photos = [Image.open(path).convert("RGB") for path in paths[start : start + BATCH]]
            found: Any = model.get_image_features(**processor(photos, return_tensors="pt"))
            rows.append(getattr(found, "pooler_output", found).detach().numpy())
        return unit_rows(np.concatenate(rows))

    return encoded


def least_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Return the least cosine of two points of one photo."""
    return float((unit_rows(first) * unit_rows(second)).sum(axis=1).min())


def beside_transformers(report: SpeedReport, room: Path) -> None:
    """Compare the network alone."""
    theirs = write_clip(room / "clip", 224)
    made = export_folder(room / "clip", room / "exported")
    ours = JointImageEncoder(folder=str(made.folder), batch_size=BATCH, n_threads=1).transform
    least = least_cosine(ours(PHOTOGRAPHS), theirs(PHOTOGRAPHS))
    report.hold("points as Transformers'", least >= MIN_COSINE, f"least cosine {least:.6f}")
    work, peers = f"CLIP ViT-B/32 of {len(PHOTOGRAPHS)} photographs", {"Transformers": lambda: theirs(PHOTOGRAPHS)}
    report.race(work, lambda: ours(PHOTOGRAPHS), peers, REPEATS, bars={"Transformers": 1.0})


class Rclip:
    """The program with files of its own: the networks of a folder of CLIP."""

    def __init__(self, program: str, clip: Path, room: Path) -> None:
        self._program, self._data = program, room / "rclip"
        model = self._data / MODEL
        for folder in (model, (self._data / VOCABULARY).parent):
            folder.mkdir(parents=True)
        export(clip, model)
        # The first line is a title.
        (self._data / VOCABULARY).write_bytes(gzip.compress(b"#version\nd o\n"))

    def first(self, photos: Path) -> float:
        """Index into an empty database and search."""
        (self._data / "db.sqlite3").unlink(missing_ok=True)
        environment = {**os.environ, "RCLIP_DATADIR": str(self._data)}
        environment.pop("PYTHONPATH", None)
        command = [self._program, QUERY, "--top", "1"]
        run: dict[str, Any] = {"check": True, "env": environment, "cwd": photos, "capture_output": True}
        return seconds(lambda: subprocess.run(command, **run))

    def points(self) -> dict[str, np.ndarray]:
        """Return the points of the photos by name."""
        with sqlite3.connect(self._data / "db.sqlite3") as database:
            rows = database.execute("SELECT filepath, vector FROM images").fetchall()
        return {Path(path).name: np.frombuffer(vector, dtype=np.float32) for path, vector in rows}


def export(clip: Path, folder: Path) -> None:
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

    examples = {
        "visual": torch.zeros(1, 3, RCLIP_SIDE, RCLIP_SIDE),
        "textual": torch.zeros((1, 77), dtype=torch.long),
    }
    with warnings.catch_warnings():
        # Of the export, in favour of one that needs further packages.
        warnings.simplefilter("ignore")
        for name, example in examples.items():
            names = {"input_names": ["input"], "output_names": ["output"]}
            sizes = {"dynamic_axes": {"input": {0: "items"}, "output": {0: "items"}}}
            torch.onnx.export(Side(), (example,), folder / f"{name}.onnx", dynamo=False, **names, **sizes)


def beside_rclip(report: SpeedReport, program: str, paths: list[Path], room: Path) -> None:
    """Compare indexing and a first search, with all cores and by the clock."""
    write_clip(room / "clip", RCLIP_SIDE)
    made = export_folder(room / "clip", room / "exported")
    rclip, ours = Rclip(program, room / "clip", room), Program(room, "--retriever", str(made.folder))
    photos = copied(paths, room / "photos")
    ours.first(copied(paths[:4], room / "few"))
    turns = [(ours.first(photos) + ours.search(), rclip.first(photos)) for _ in range(REPEATS)]
    mine, theirs = ours.points(), rclip.points()
    assert mine.keys() == theirs.keys()
    # rclip rounds a crop and a resize otherwise.
    least = least_cosine(*(np.vstack([points[name] for name in mine]) for points in (mine, theirs)))
    report.hold("points as rclip's", least >= MIN_RCLIP_COSINE, f"least cosine {least:.4f}")
    work = f"CLIP ViT-B/32 of {len(paths):,} photos, indexed and searched"
    report.compare(work, *map(list, zip(*turns, strict=True)), peer="rclip")


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--rclip", default="rclip", metavar="PROGRAM")
    options = parser.parse_args()
    report, rclip = SpeedReport(__file__, options), shutil.which(options.rclip)
    count, n_large, n_rclip = (100, 20, 50) if options.quick else (4000, 200, 1000)
    paths = [Path(path) for path in load_dataset("flickr8k").train.images[:count]]
    with tempfile.TemporaryDirectory() as scratch:
        rooms = [Path(scratch) / name for name in ("indexing", "network", "rclip")]
        for room in rooms:
            room.mkdir()
        indexing(report, paths, n_large, rooms[0])
        if installed("transformers"):
            beside_transformers(report, rooms[1])
            if rclip is not None:
                beside_rclip(report, rclip, paths[:n_rclip], rooms[2])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
