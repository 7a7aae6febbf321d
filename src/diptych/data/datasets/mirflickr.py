"""MIRFlickr: 25,000 Flickr photographs with the tags of their owners and 24 or 14 annotated concepts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.arrays import BoolArray
from diptych.data.clicks.click_log import ClickLog
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_lines
from diptych.errors import InvalidInputError, UnknownNameError

_IMAGES = "mirflickr"
_TAGS = "mirflickr/meta/tags"
_ANNOTATIONS = "mirflickr25k_annotations_v080"
_RELEVANT = "_r1"
_SPLITS = ("fifths", "first")


def load_mirflickr(*, annotations: str = "relevant", split: str = "fifths") -> DatasetSplits:
    """Load photographs, tags and annotations in the layout of the two published archives.

    A text is the tags of a photograph, perhaps none. Labels are an indicator: ``annotations="relevant"`` reads the
    concepts whose files end in ``_r1``, which are a subject of the photograph, ``"potential"`` those visible at all.

    Dong et al., 2018, learn from 15,000 photographs and rank 10,000 for each of the 14 relevant concepts as a query of
    one tag, by MAP. Which photographs are which is not in the archives: ``split="fifths"`` takes the first three of
    every five to learn from, ``"first"`` the first three fifths; both are our choice.

    ``extra("tags_as_clicks")`` is a :class:`~diptych.data.clicks.ClickLog` of the training part in which every tag of a
    photograph is a query that led to one click on it; ``extra("queries")`` are the concepts as words.
    """
    if annotations not in ("relevant", "potential"):
        raise UnknownNameError("annotations of mirflickr", annotations, ("relevant", "potential"))
    if split not in _SPLITS:
        raise UnknownNameError("split of mirflickr", split, _SPLITS)
    folder = MIRFLICKR.folder()
    numbers = _numbers(folder / _IMAGES)
    concepts, indicator = _read_annotations(folder / _ANNOTATIONS, numbers, annotations == "relevant")
    tags = [_read_tags(folder / _TAGS / f"tags{number}.txt") for number in numbers]
    pairs = Pairs(
        [folder / _IMAGES / f"im{number}.jpg" for number in numbers],
        [" ".join(listed) for listed in tags],
        labels=indicator.astype(np.int32),
        ids=[f"im{number}.jpg" for number in numbers],
        class_names=concepts,
    )
    places = np.arange(len(numbers))
    is_train = places % 5 < 3 if split == "fifths" else places < 3 * len(numbers) // 5
    train, test = (np.flatnonzero(is_train), np.flatnonzero(~is_train))
    extras = {
        "tags_as_clicks": lambda: _as_clicks([pairs.ids[row] for row in train], [tags[row] for row in train]),
        "queries": lambda: tuple(name.replace("_", " ") for name in concepts),
    }
    return DatasetSplits(train=pairs.select(train), test=pairs.select(test), extras=extras)


def _numbers(folder: Path) -> list[int]:
    names = (path.stem.removeprefix("im") for path in folder.glob("im*.jpg"))
    numbers = sorted(int(name) for name in names if name.isdigit())
    if len(numbers) < 5:
        raise InvalidInputError(f"{folder} holds {len(numbers)} photographs im<number>.jpg; unpack mirflickr25k.zip")
    return numbers


def _read_tags(path: Path) -> list[str]:
    return [line.strip() for line in read_lines(path)] if path.exists() else []


def _read_annotations(folder: Path, numbers: list[int], relevant: bool) -> tuple[list[str], BoolArray]:
    files = {path.stem: path for path in sorted(folder.glob("*.txt")) if path.stem.lower() != "readme"}
    chosen = {
        name.removesuffix(_RELEVANT): path for name, path in files.items() if name.endswith(_RELEVANT) == relevant
    }
    if not chosen:
        raise InvalidInputError(
            f"{folder} holds no files such as dog{_RELEVANT if relevant else ''}.txt; unpack {_ANNOTATIONS}.zip"
        )
    row_of = {number: row for row, number in enumerate(numbers)}
    indicator = np.zeros((len(numbers), len(chosen)), dtype=bool)
    for column, path in enumerate(chosen.values()):
        for line, entry in enumerate(read_lines(path), start=1):
            if not entry.strip().isdigit() or int(entry) not in row_of:
                raise InvalidInputError(f"{path}: line {line} holds {entry!r}, expected the number of a photograph")
            indicator[row_of[int(entry)], column] = True
    return list(chosen), indicator


def _as_clicks(ids: list[str], tags: list[list[str]]) -> ClickLog:
    rows = [(tag, name) for name, listed in zip(ids, tags, strict=True) for tag in dict.fromkeys(listed)]
    return ClickLog.from_triads([tag for tag, _ in rows], [name for _, name in rows], np.ones(len(rows)))


MIRFLICKR = Dataset(
    name="mirflickr",
    summary="25,000 Flickr photographs with the tags of their owners and annotations of 24 visible and 14 relevant "
    "concepts",
    homepage="https://press.liacs.nl/mirflickr/",
    citation='M. J. Huiskes and M. S. Lew, "The MIR Flickr retrieval evaluation", MIR 2008',
    licence="each photograph under its own Creative Commons licence, listed in the archive",
    splits="15,000 training and 10,000 test photographs; which are which is our choice",
    files=(_TAGS, _ANNOTATIONS),
    options={
        "annotations": "'relevant' (14 concepts that are a subject) or 'potential' (24 that are visible)",
        "split": "'fifths' (the first three of every five to learn from) or 'first' (the first three fifths)",
    },
    loader=load_mirflickr,
    steps="1. Get mirflickr25k.zip and mirflickr25k_annotations_v080.zip from https://press.liacs.nl/mirflickr/.\n"
    "2. Unpack the first into the folder of the data set, where it makes the folder 'mirflickr'.\n"
    "3. Unpack the second into a folder 'mirflickr25k_annotations_v080' beside it.",
)
