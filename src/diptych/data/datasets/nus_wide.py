"""NUS-WIDE: 269,648 Flickr pictures with tags and 81 concepts, of which the ten most frequent are used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_lines
from diptych.errors import InvalidInputError, UnknownNameError

N_CONCEPTS = 10
"""How many of the concepts are kept, the most frequent first."""
PUBLISHED_IMAGES = 67_994
"""Pictures in the subset of Liu et al."""

_IMAGE_LIST = "ImageList/Imagelist.txt"
_PART_LISTS = {"Train": "ImageList/TrainImagelist.txt", "Test": "ImageList/TestImagelist.txt"}
_LABELS = "Groundtruth/AllLabels"
_TAGS = "NUS_WID_Tags/AllTags1k.txt"
_FEATURES = "Low_Level_Features"
# Name of the option and of the files: words, colour, edges, texture.
_KINDS = {"bow": "BoW", "ch": "CH", "corr": "CORR", "edh": "EDH", "wt": "WT", "cm55": "CM55"}


def load_nus_wide(
    *, features: str = "bow", labels: str = "single", test_size: float | int = 0.4, seed: int = 0
) -> DatasetSplits:
    """Load the ten most frequent concepts, with low-level features and tags, and split at random.

    Liu et al. keep the ten most frequent concepts, and count 67,994 pictures; 60 % are the database and 40 % queries.
    How they came to that number is not said. ``labels="single"`` keeps pictures of exactly one of the ten with at least
    one of the 1,000 tags, which is our reading; another number than theirs gets a warning. ``"multi"`` keeps pictures
    with at least one of the ten, and all their labels of these. Texts are the tags, 0 or 1.
    """
    if features not in _KINDS:
        raise UnknownNameError("features of nus_wide", features, _KINDS)
    if labels not in ("single", "multi"):
        raise UnknownNameError("labels of nus_wide", labels, ("single", "multi"))
    folder = NUS_WIDE.folder()
    names = _read_names(folder / _IMAGE_LIST)
    concepts, indicator = _frequent_concepts(folder / _LABELS, len(names))
    tagged = _tagged(folder / _TAGS, len(names))
    kept = tagged & ((indicator.sum(axis=1) == 1) if labels == "single" else indicator.any(axis=1))
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise InvalidInputError(f"{folder}: no picture has a tag and a label of the {N_CONCEPTS} concepts")
    if labels == "single" and len(rows) != PUBLISHED_IMAGES:
        warnings.warn(
            f"{len(rows):,} pictures of NUS-WIDE have one of the {N_CONCEPTS} most frequent concepts and a tag; "
            f"Liu et al. count {PUBLISHED_IMAGES:,} in theirs, so that numbers are not quite comparable",
            stacklevel=2,
        )
    own = indicator[rows]
    pairs = Pairs(
        _read_features(folder, features, names, kept),
        _rows_of(folder / _TAGS, kept),
        labels=own.astype(np.int32) if labels == "multi" else [concepts[column] for column in own.argmax(axis=1)],
        ids=[names[row] for row in rows],
        text_ids=[f"{names[row]}#tags" for row in rows],
        class_names=concepts,
    )
    train, test = pairs.split(test_size, seed=seed)
    return DatasetSplits(train=train, test=test)


def _read_names(path: Path) -> list[str]:
    names = [line.strip().replace("\\", "/") for line in read_lines(path)]
    if len(set(names)) != len(names):
        raise InvalidInputError(f"{path} lists a picture more than once; get a fresh copy")
    return names


def _frequent_concepts(folder: Path, n_images: int) -> tuple[list[str], BoolArray]:
    """Return the most frequent concepts, those with more pictures first, and which picture has which."""
    files = sorted(folder.glob("Labels_*.txt"))
    if len(files) < N_CONCEPTS:
        raise InvalidInputError(f"{folder} has {len(files)} files Labels_<concept>.txt, at least {N_CONCEPTS} expected")
    columns = {path.stem.removeprefix("Labels_"): _read_labels(path, n_images) for path in files}
    concepts = sorted(columns, key=lambda name: (-int(columns[name].sum()), name))[:N_CONCEPTS]
    return concepts, np.column_stack([columns[name] for name in concepts])


def _read_labels(path: Path, n_images: int) -> BoolArray:
    values = [line.strip() for line in read_lines(path)]
    if len(values) != n_images or not set(values) <= {"0", "1"}:
        raise InvalidInputError(
            f"{path} must hold 0 or 1 for each of the {n_images} pictures of {_IMAGE_LIST}, has {len(values)} lines; "
            "get a fresh copy"
        )
    return np.array([value == "1" for value in values])


def _tagged(path: Path, n_images: int) -> BoolArray:
    """Say which pictures have a tag."""
    with path.open(encoding="utf-8") as file:
        found = np.array(["1" in line for line in file if line.strip()])
    if len(found) != n_images:
        raise InvalidInputError(f"{path} has {len(found)} lines, expected {n_images}; get a fresh copy")
    return found


def _read_features(folder: Path, features: str, names: list[str], kept: BoolArray) -> FloatArray:
    """Return the rows that are kept, from one file in the order of all pictures or from the two of the parts."""
    kind = _KINDS[features]
    whole = folder / _FEATURES / f"Normalized_{kind}.dat"
    if features != "bow" and whole.exists():
        return _rows_of(whole, kept)
    pattern = "BoW_{}_int.dat" if features == "bow" else f"{{}}_Normalized_{kind}.dat"
    files = {part: f"{_FEATURES}/{pattern.format(part)}" for part in _PART_LISTS}
    NUS_WIDE.folder(*_PART_LISTS.values(), *files.values())
    position = {name: row for row, name in enumerate(names)}
    blocks, places = [], []
    for part, listed in _PART_LISTS.items():
        rows = _positions(folder / listed, position)
        blocks.append(_rows_of(folder / files[part], kept[rows]))
        places.append(rows[kept[rows]])
    order = np.concatenate(places)
    if not np.array_equal(np.sort(order), np.flatnonzero(kept)):
        raise InvalidInputError(f"{folder}: the lists of training and test pictures do not share out {_IMAGE_LIST}")
    return np.concatenate(blocks)[np.argsort(order)]


def _positions(path: Path, position: dict[str, int]) -> IntArray:
    listed = _read_names(path)
    unknown = [name for name in listed if name not in position]
    if unknown:
        raise InvalidInputError(f"{path} lists {unknown[0]!r}, which {_IMAGE_LIST} does not; get a fresh copy")
    return np.array([position[name] for name in listed], dtype=np.int64)


def _rows_of(path: Path, kept: BoolArray) -> FloatArray:
    """Read the lines that are kept, numbers with white space between them."""
    rows: list[AnyArray] = []
    lines = _lines(path)
    for number, (keep, line) in enumerate(zip(kept.tolist(), islice(lines, len(kept)), strict=False), start=1):
        if not keep:
            continue
        try:
            rows.append(np.array(line.split(), dtype=np.float32))
        except ValueError:
            raise InvalidInputError(f"{path}: line {number} holds something that is no number") from None
        if len(rows[-1]) != len(rows[0]):
            raise InvalidInputError(f"{path}: line {number} has {len(rows[-1])} numbers, those before {len(rows[0])}")
    if len(rows) != int(kept.sum()) or next(lines, None) is not None:
        raise InvalidInputError(f"{path} must have {len(kept)} lines, one for each picture; get a fresh copy")
    return np.array(rows, dtype=np.float32)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        yield from (line for line in file if line.strip())


NUS_WIDE = Dataset(
    name="nus_wide",
    summary="Flickr pictures of the ten most frequent of 81 concepts, low-level features and 1,000 tags",
    homepage="https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html",
    citation='T.-S. Chua et al., "NUS-WIDE: a real-world web image database from National University of Singapore", '
    "CIVR 2009; the subset: Liu et al., extendable cross-media retrieval",
    licence="research use; pictures under the terms of Flickr, and Diptych does not redistribute them",
    splits="60 % database and 40 % queries, seeded; the subset of Liu et al. has 67,994 pictures",
    files=(_IMAGE_LIST, _LABELS, _TAGS, _FEATURES),
    options={
        "features": "'bow', 'ch', 'corr', 'edh', 'wt' or 'cm55'",
        "labels": "'single': exactly one of the ten concepts; 'multi': at least one",
        "test_size": "number or share of pictures that ask",
        "seed": "of the split",
    },
    loader=load_nus_wide,
    steps="1. Get the archives of the image list, the ground truth, the tags and the low-level features from the "
    "homepage.\n"
    "2. Unpack them side by side, so that there are the folders ImageList, Groundtruth, NUS_WID_Tags and "
    "Low_Level_Features.",
)
