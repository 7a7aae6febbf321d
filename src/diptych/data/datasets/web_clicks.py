"""Click logs to learn from: Clickture, a year of a search engine, and MIRFlickr, whose tags serve as clicks."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import BoolArray
from diptych.data.clicks.click_log import ClickLog
from diptych.data.clicks.click_reading import read_clicks
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.item_sequences import SelectedItems
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_lines, read_table
from diptych.errors import InvalidInputError, UnknownNameError

GRADES = {"Excellent": 3, "Good": 2, "Bad": 0}
"""What a judgement is worth in the NDCG of Dong et al., 2018."""
_CLICKS = "TrainClickLog.tsv"
_TRAIN_IMAGES = "TrainImageSet.tsv"
_LABELS = "DevSetLabel.tsv"
_DEV_IMAGES = "DevSetImage.tsv"


class PackedPictures(Sequence[Any]):
    """The uint8 pictures of a table with a key, a tab and a base64 file per line; only keys and places are kept."""

    def __init__(self, path: Path, row_of: dict[str, int], starts: NDArray[np.int64]) -> None:
        self.path = path
        self.row_of = row_of
        self._starts = starts

    @classmethod
    def read(cls, path: Path) -> PackedPictures:
        """Find the lines of a table; keys must be unique."""
        row_of: dict[str, int] = {}
        starts: list[int] = []
        place = 0
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                key, tab, _ = line.partition(b"\t")
                name = key.decode("utf-8", "replace").strip()
                if line.strip() and (not tab or name in row_of):
                    problem = "is there twice" if tab else "has no tab"
                    raise InvalidInputError(f"{path}: line {number} ({name[:40]}) {problem}; get a fresh copy")
                if tab:
                    row_of[name] = len(starts)
                    starts.append(place)
                place += len(line)
        return cls(path, row_of, np.array(starts, dtype=np.int64))

    def select(self, keys: Sequence[str]) -> SelectedItems:
        """Return the pictures of the given keys."""
        return SelectedItems(self, [self.row_of[key] for key in keys])

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> SelectedItems: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return SelectedItems(self, np.arange(len(self))[index])
        from PIL import Image, UnidentifiedImageError

        with self.path.open("rb") as stream:
            stream.seek(int(self._starts[index]))
            key, _, content = stream.readline().partition(b"\t")
        try:
            with Image.open(io.BytesIO(base64.b64decode(content.strip(), validate=True))) as picture:
                return np.asarray(picture.convert("RGB"))
        except (binascii.Error, UnidentifiedImageError, OSError) as error:
            name = key.decode("utf-8", "replace")
            raise InvalidInputError(
                f"{self.path}: the picture of {name} cannot be unpacked; get a fresh copy"
            ) from error

    def __repr__(self) -> str:
        return f"<{len(self):,} pictures of {self.path.name}>"


@dataclass(frozen=True)
class WebJudgement:
    """How well an image answers a query: Excellent, Good or Bad."""

    query: str
    image_id: str
    label: str

    @property
    def grade(self) -> int:
        """3, 2 or 0."""
        return GRADES[self.label]


def load_clickture() -> DatasetSplits:
    """Load images of the click log to learn from, and the judged images of the development set to rank.

    The text of a training image is the query with the most clicks on it, that of a judged image the first query it was
    judged for. ``extra("clicks")`` is the whole log, a :class:`~diptych.data.clicks.ClickLog`, and
    ``extra("judgements")`` the tuple of :class:`WebJudgement`. An image that its table lacks is left out of the pairs.
    """
    folder = CLICKTURE.folder()
    log = read_clicks(folder / _CLICKS, layout="clickture")
    judgements = _read_judgements(folder / _LABELS)
    first_query: dict[str, str] = {}
    for judgement in judgements:
        first_query.setdefault(judgement.image_id, judgement.query)
    pictures = PackedPictures.read(folder / _DEV_IMAGES)
    missing = [key for key in first_query if key not in pictures.row_of]
    if missing:
        raise InvalidInputError(f"{folder / _DEV_IMAGES} lacks {len(missing)} judged images, the first is {missing[0]}")
    test = Pairs(pictures.select(list(first_query)), list(first_query.values()), ids=list(first_query))
    extras = {"clicks": lambda: log, "judgements": lambda: judgements}
    return DatasetSplits(train=_training_pairs(folder, log), test=test, extras=extras)


def _training_pairs(folder: Path, log: ClickLog) -> Pairs:
    pictures = PackedPictures.read(folder / _TRAIN_IMAGES)
    keys = list(log.images)
    kept = [row for row, key in enumerate(keys) if key in pictures.row_of]
    if not kept:
        raise InvalidInputError(f"{folder / _TRAIN_IMAGES} holds no image of {_CLICKS}; get fresh copies of both")
    # Last write wins: after sorting by clicks, the last triad of an image is its heaviest.
    heaviest = np.zeros(len(keys), dtype=np.int64)
    order = np.argsort(log.clicks, kind="stable")
    heaviest[log.image_ids[order]] = log.query_ids[order]
    chosen = [keys[row] for row in kept]
    return Pairs(pictures.select(chosen), list(log.queries[heaviest[kept]]), ids=chosen)


def _read_judgements(path: Path) -> tuple[WebJudgement, ...]:
    judgements = []
    for row, (query, image, label) in enumerate(read_table(path, columns=3), start=1):
        tidy = label.strip().capitalize()
        if tidy not in GRADES:
            raise InvalidInputError(f"{path}: row {row} is judged {label!r}, expected {', '.join(GRADES)}")
        judgements.append(WebJudgement(query.strip(), image.strip(), tidy))
    return tuple(judgements)


CLICKTURE = Dataset(
    name="clickture",
    summary="Clickture-Lite: 23 million triads of query, web image and clicks; 79,926 judged pairs of 1,000 queries",
    homepage="https://www.microsoft.com/en-us/research/project/clickture/",
    citation='X.-S. Hua et al., "Clickage: towards bridging semantic and intent gaps via mining click logs of search '
    'engines", ACM MM 2013',
    licence="research use under Microsoft's terms; images belong to their owners; not redistributed by Diptych",
    splits="the click log to learn from, the judged development set to rank",
    files=(_CLICKS, _TRAIN_IMAGES, _LABELS, _DEV_IMAGES),
    loader=load_clickture,
    steps="Ask for Clickture-Lite and the development set at its homepage, and name the four tables as listed: clicks "
    "and judgements are tables of words, images have a key, a tab and a JPEG file in base64 per line.",
)

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
