"""MNiL on Flickr8k with packaged features of the photos, beside LDSP: the same photos, features and split.

    python -m bench.ldsp_flickr8k --pack FOLDER --views lite2 lite0
    python -m bench.mnil_features --pack FOLDER
    python -m bench.mnil_features --features FOLDER [--settings 1 2] [--chosen 3] [--seeds 3]

``--pack`` adds the vectors with which MiniLM begins, of the words of the training captions, to what LDSP's script has
packed; ``--features`` needs no data set, and of the encoders that of sentences alone, for settings with tokens. It is
meant for a machine with a graphics card. Each setting learns from the 6,000 training photos and is asked on the 1,000
development photos; the one with the best mean of R@1, R@5 and R@10 over both directions, or the ``--chosen`` one, is
then asked on the 1,000 test photos with all their captions, once with each seed. Nothing is chosen on the test photos.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.ldsp_flickr8k import FILE, MEASURES, PARTS, line, recalls
from diptych.arrays import unit_rows
from diptych.models import MNiL
from diptych.models.neural.mnil._data import Vocabulary

WORDS = "words.npz"
GOAL = {"image query R@1": 0.30, "text query R@1": 0.25}
_COMMON: dict[str, Any] = {
    "image_tower": "features",
    "hidden_size": 1024,
    "margin": 0.1,
    "learning_rate": 3e-4,
    "map_factor": 1.0,
    "batch_size": 512,
    "max_words": 24,
    "min_texts": 2,
    "train_words": False,
}
_TOKENS: dict[str, Any] = {"text_tower": "minilm", "max_words": 32, "epochs": 20}
_WIDE: dict[str, Any] = {"n_components": 1024, "image_hidden": 2048, "dropout": 0.6, **_TOKENS}
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("no layer, dropout 0.5", {"n_components": 1024, "dropout": 0.5, "epochs": 20}),
    ("1,024 units, dropout 0.5", {"n_components": 512, "image_hidden": 1024, "dropout": 0.5, "epochs": 20}),
    ("2,048 units, dropout 0.6", {"n_components": 1024, "image_hidden": 2048, "dropout": 0.6, "epochs": 25}),
    ("2,048 units, dropout 0.7", {"n_components": 1024, "image_hidden": 2048, "dropout": 0.7, "epochs": 30}),
    (
        "2,048 units, other captions",
        {"n_components": 1024, "image_hidden": 2048, "dropout": 0.7, "epochs": 30, "texts_per_picture": 2},
    ),
    (
        "words drawn, 1,024 units",
        {"n_components": 512, "image_hidden": 1024, "dropout": 0.5, "epochs": 20, "train_words": True},
    ),
    ("tokens, 2,048 units, dropout 0.6", _WIDE),
    ("tokens, 2,048 units, dropout 0.7", {**_WIDE, "dropout": 0.7}),
    ("tokens, dropout 0.6, margin 0.2", {**_WIDE, "margin": 0.2}),
    ("tokens, dropout 0.6, other captions", {**_WIDE, "texts_per_picture": 2}),
)


def pack(folder: Path) -> None:
    """Write the vectors of the words that the training captions hold."""
    from diptych.encoders import load_word_vectors

    with np.load(folder / FILE, allow_pickle=False) as archive:
        words = Vocabulary.learned(archive["captions.train"].tolist(), _COMMON["min_texts"]).words
    table = load_word_vectors("minilm")
    rows = table.rows(words)
    known = rows >= 0
    np.savez_compressed(folder / WORDS, words=np.array(words)[known], vectors=table.vectors[rows[known]])
    print(f"{WORDS}: {known.sum():,} of {len(words):,} words")


def read(folder: Path) -> dict[str, tuple[np.ndarray, list[str], np.ndarray]]:
    """Return (photos, captions, the photo of each caption) of each part; all views of a photo stand side by side."""
    found = {}
    with np.load(folder / FILE, allow_pickle=False) as archive:
        names = [name.removesuffix(".low") for name in archive.files if name.endswith(".low")]
        views = [name for name in names if name not in ("sentence", "words")]
        for part in PARTS:
            rows = [archive[f"{view}.{part}"].T * archive[f"{view}.step"] + archive[f"{view}.low"] for view in views]
            photos = np.hstack([unit_rows(view) for view in rows]).astype(np.float32)
            found[part] = photos, archive[f"captions.{part}"].tolist(), archive[f"owners.{part}"]
    print(f"photos: {', '.join(views)}, {found['train'][0].shape[1]:,} features", flush=True)
    return found


def asked(number: int, seed: int, data: dict[str, Any], part: str, folder: Path) -> np.ndarray:
    """Learn with a setting and a seed, ask a part, print a line and return the recalls."""
    name, parameters = SETTINGS[number - 1]
    started = time.perf_counter()
    words = None if parameters.get("train_words") or "text_tower" in parameters else str(folder / WORDS)
    model = MNiL(**{**_COMMON, **parameters}, word_vectors=words, random_state=seed)
    photos, captions, owners = data["train"]
    model.fit(photos[owners], captions)
    photos, captions, owners = data[part]
    found = recalls(model.encode_images(photos), model.encode_texts(captions), owners)
    violating = model.history_[-1][model.history_columns_.index("violating")]
    spent = f"{time.perf_counter() - started:6.0f} s, {violating:.0%} of anchors violate"
    print(line(f"{part}, {number} {name}, seed {seed}"[:40], found), spent, flush=True)
    return found


def run(folder: Path, options: argparse.Namespace) -> int:
    """Choose on the development photos, ask the test photos with each seed, and hold that against the goal."""
    data = read(folder)
    print(f"{'':<40}" + "".join(f"{way} {m.label}"[:8].rjust(8) for way in ("i", "t") for m in MEASURES), flush=True)
    chosen = options.chosen
    if chosen is None:
        judged = {number: asked(number, 0, data, "dev", folder).mean() for number in options.settings}
        chosen = max(judged, key=lambda number: judged[number])
    if not options.seeds:
        return 0
    found = np.array([asked(chosen, seed, data, "test", folder) for seed in range(options.seeds)])
    print(line("test, mean", found.mean(axis=0)))
    print(line("test, deviation", found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(6)))
    reached = dict(zip(GOAL, found.mean(axis=0)[[0, 3]].tolist(), strict=True))
    for name, wanted in GOAL.items():
        print(f"{name}: {reached[name]:.3f}, goal {wanted:.2f}: {'held' if reached[name] >= wanted else 'missed'}")
    return 0 if all(reached[name] >= wanted for name, wanted in GOAL.items()) else 1


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job = parser.add_mutually_exclusive_group(required=True)
    job.add_argument("--pack", type=Path, metavar="FOLDER")
    job.add_argument("--features", type=Path, metavar="FOLDER")
    numbers = list(range(1, len(SETTINGS) + 1))
    parser.add_argument("--settings", type=int, nargs="+", choices=numbers, default=numbers)
    parser.add_argument("--chosen", type=int, choices=numbers)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.pack is not None:
        pack(options.pack)
        return 0
    return run(options.features, options)


if __name__ == "__main__":
    sys.exit(main())
