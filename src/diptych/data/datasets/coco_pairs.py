"""COCO pairs: 18,000 everyday photographs of COCO with one caption each, squashed to small squares."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_table
from diptych.errors import InvalidInputError, UnknownNameError

_CAPTIONS = "captions.tsv"
_PARTS = ("train", "dev", "test")
_LABELS = ("none", "category")
_ARCHIVE = "../coco_val2014_labels/coco_val_file.tar.gz"
_MEMBER = "coco_val_file/val_label_mat.txt"
# The file names no column; captions tell which is which: a category's word is nowhere as frequent as in its column.
_NAMES = (
    "toilet,hair drier,bicycle,kite,skateboard,skis,bus,donut,snowboard,carrot,motorcycle,oven,keyboard,potted plant,"
    "scissors,chair,bench,mouse,baseball glove,airplane,apple,sheep,horse,sandwich,(none),tv,backpack,toaster,bowl,"
    "traffic light,microwave,couch,book,teddy bear,baseball bat,tennis racket,orange,tie,laptop,knife,pizza,fork,sink,"
    "frisbee,umbrella,banana,cell phone,cup,zebra,bear,vase,toothbrush,spoon,train,fire hydrant,handbag,bird,broccoli,"
    "dining table,sports ball,parking meter,remote,surfboard,cow,car,clock,wine glass,dog,bed,cat,person,boat,giraffe,"
    "truck,bottle,suitcase,cake,stop sign,elephant,refrigerator,hot dog"
)
_CATEGORIES = tuple(_NAMES.split(","))


def load_coco_pairs(*, label: str = "none") -> DatasetSplits:
    """Load the three parts; a caption is relevant to its own photograph.

    With ``label="category"`` photographs carry the 81 labels of Zhang et al. (2017), in the order of their file: COCO's
    80 categories, and a column without any photograph. About one in ninety photographs is not in the file, and its
    row is zero. ``extra("all_labels")`` are the rows of all 40,137 photographs in the file.
    """
    if label not in _LABELS:
        raise UnknownNameError("label of coco_pairs", label, _LABELS)
    folder = COCO_PAIRS.folder() if label == "none" else COCO_PAIRS.folder(_ARCHIVE)
    rows = read_table(folder / _CAPTIONS, columns=3)[1:]
    present = {path.name for path in (folder / "images").iterdir()}
    parts: dict[str, list[tuple[str, str]]] = {part: [] for part in _PARTS}
    for number, (name, part, caption) in enumerate(rows, start=2):
        if part not in parts:
            raise InvalidInputError(f"{folder / _CAPTIONS}: row {number} says part {part!r}; use {', '.join(_PARTS)}")
        if name not in present:
            raise InvalidInputError(f"{folder / _CAPTIONS} lists {name}, which is not in {folder / 'images'}")
        parts[part].append((name, caption.strip()))
    known = {} if label == "none" else _read_labels(folder / _ARCHIVE)
    pairs = {
        part: Pairs(
            [folder / "images" / name for name, _ in listed],
            [text for _, text in listed],
            labels=None if label == "none" else _indicator([name for name, _ in listed], known),
            ids=[*dict(listed)],
            class_names=() if label == "none" else _CATEGORIES,
        )
        for part, listed in parts.items()
    }
    extras = {"all_labels": lambda: _indicator([*known], known)} if known else {}
    return DatasetSplits(train=pairs["train"], test=pairs["test"], dev=pairs["dev"], extras=extras)


def _read_labels(path: Path) -> dict[str, list[str]]:
    """Return the columns of each photograph, by the twelve digits of its name."""
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile(_MEMBER)
            lines = [] if member is None else member.read().decode("ascii").splitlines()
    except (OSError, EOFError, KeyError, ValueError, tarfile.TarError) as error:
        raise InvalidInputError(f"{path} holds no readable {_MEMBER} ({error}); get a fresh copy") from None
    known = {}
    for number, line in enumerate(lines, start=1):
        name, *columns = line.split()
        if len(columns) != len(_CATEGORIES) or not {*columns} <= {"0", "1"}:
            raise InvalidInputError(f"{path}: line {number} of {_MEMBER} needs a name and 81 times 0 or 1")
        known[_digits(name)] = columns
    return known


def _indicator(names: Sequence[str], known: dict[str, list[str]]) -> NDArray[np.uint8]:
    nothing = ["0"] * len(_CATEGORIES)
    return np.array([known.get(_digits(name), nothing) for name in names], dtype=np.uint8)


def _digits(name: str) -> str:
    return Path(name).stem.rpartition("_")[2]


COCO_PAIRS = Dataset(
    name="coco_pairs",
    summary="18,000 everyday photographs of COCO with one caption each, squashed to squares of 240 pixels; 81 labels",
    homepage="https://cocodataset.org",
    citation='T.-Y. Lin et al., "Microsoft COCO: common objects in context", ECCV 2014; labels of L. Zhang et al., '
    '"Multi-networks joint learning for large-scale cross-modal retrieval", ACM Multimedia 2017',
    licence="captions CC BY 4.0, photographs under the terms of Flickr; not redistributed by Diptych",
    splits="16,000 training, 1,000 development and 1,000 test photographs, drawn at random",
    files=(_CAPTIONS, "images"),
    options={"label": "'none', or 'category' for the 81 labels of Zhang et al. (2017), several to a photograph"},
    loader=load_coco_pairs,
    steps="1. Take photographs of COCO's val2014 and one caption of each.\n"
    "2. Save them as images/<file name>, in any format that Pillow reads; squares of 240 pixels are enough.\n"
    "3. Write captions.tsv: a header, then file name, part (train, dev or test) and caption in three columns with tabs "
    "between.\n"
    "4. For label='category', put coco_val_file.tar.gz, which the authors publish with their code, into a folder "
    "coco_val2014_labels beside that of the data set.",
)
