"""COCO: photographs of val2017 and of 2014 with captions and categories, and 18,000 small ones with one caption."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, choose_captions, photograph_pairs
from diptych.data.downloads import Download
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_json_object, read_table
from diptych.errors import InvalidInputError, UnknownNameError

_PICTURES = "val2017"
_CAPTIONS = "annotations/captions_val2017.json"
_INSTANCES = "annotations/instances_val2017.json"
_PARTS_2014 = ("train2014", "val2014")
_KINDS = ("captions", "instances")
_ASKED_2014 = 5000
_LABELS = {"category": "name", "supercategory": "supercategory"}


def load_coco(
    *,
    label: str = "category",
    captions: str | int = "all",
    test_size: float | int = 1000,
    dev_size: float | int = 0,
    seed: int = 0,
) -> DatasetSplits:
    """Load the validation part of COCO 2017 and split it by a seeded draw.
    Labels are an indicator of what is in a photograph: the 80 categories, or the 12 kinds they belong to. A few
    photographs hold nothing that was annotated, and their rows are zero.
    """
    if label not in _LABELS:
        raise UnknownNameError("label of coco", label, _LABELS)
    pairs = choose_captions(_read_pairs(COCO.folder(), _LABELS[label]), captions)
    rest, test = pairs.split(test_size, seed=seed)
    if not dev_size:
        return DatasetSplits(train=rest, test=test)
    train, dev = rest.split(dev_size, seed=seed)
    return DatasetSplits(train=train, test=test, dev=dev)


def _read_pairs(folder: Path, name_key: str, part: str = _PICTURES) -> Pairs:
    captions_file, instances_file = (folder / f"annotations/{kind}_{part}.json" for kind in _KINDS)
    described, annotated = _read(captions_file, "caption"), _read(instances_file, "category_id")
    files = {entry["id"]: entry["file_name"] for entry in described["images"]}
    captions: dict[Any, list[tuple[int, str]]] = {image: [] for image in files}
    for entry in described["annotations"]:
        _of(captions, entry["image_id"], captions_file).append((entry["id"], " ".join(entry["caption"].split())))
    # The files list captions in no order; by id they are as they were collected.
    images = sorted((image for image in files if captions[image]), key=lambda image: files[image])
    listed = {image: sorted(captions[image]) for image in images}
    indicator, names = _labels(images, annotated, name_key, instances_file)
    return photograph_pairs(
        folder / part,
        {files[image]: [caption for _, caption in listed[image]] for image in images},
        labels=indicator,
        class_names=names,
        text_ids=[str(number) for image in images for number, _ in listed[image]],
    )


def _read(path: Path, annotation: str) -> dict[str, Any]:
    content = read_json_object(path)
    wanted = {"images": ("id", "file_name"), "annotations": ("id", "image_id", annotation)}
    for name, keys in wanted.items():
        entries = content.get(name)
        if not isinstance(entries, list) or not entries:
            raise InvalidInputError(f"{path} has no list {name!r}; get a fresh copy")
        for number, entry in enumerate(entries, start=1):
            if not isinstance(entry, dict) or not all(key in entry for key in keys):
                raise InvalidInputError(f"{path}: entry {number} of {name} needs {', '.join(keys)}; get a fresh copy")
    return content


def _labels(
    images: list[Any], annotated: dict[str, Any], name_key: str, path: Path
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    names = {entry["id"]: str(entry[name_key]) for entry in annotated.get("categories", [])}
    columns = {name: column for column, name in enumerate(dict.fromkeys(names.values()))}
    rows = {image: row for row, image in enumerate(images)}
    indicator = np.zeros((len(images), len(columns)), dtype=np.uint8)
    for entry in annotated["annotations"]:
        name = _of(names, entry["category_id"], path)
        if entry["image_id"] in rows:
            indicator[rows[entry["image_id"]], columns[name]] = 1
    return indicator, tuple(columns)


def _of(known: dict[Any, Any], key: Any, path: Path) -> Any:
    if key not in known:
        raise InvalidInputError(f"{path}: an annotation refers to {key!r}, which the file does not list")
    return known[key]


COCO = Dataset(
    name="coco",
    summary="5,000 everyday photographs (the validation part of 2017) with five captions each and the 80 categories "
    "of the things in them",
    homepage="https://cocodataset.org/#download",
    citation='T.-Y. Lin et al., "Microsoft COCO: common objects in context", ECCV 2014; X. Chen et al., "Microsoft '
    'COCO captions: data collection and evaluation server", arXiv 1504.00325, 2015',
    licence="annotations CC BY 4.0; photographs under the terms of Flickr, not redistributed by Diptych",
    splits="seeded: 4,000 training and 1,000 test photographs; the official test part has no public captions",
    files=(_CAPTIONS, _INSTANCES, _PICTURES),
    options={
        "label": "'category' (80 of them) or 'supercategory' (12)",
        "captions": CAPTIONS_HELP,
        "test_size": "number or share of test photographs",
        "dev_size": "number or share of the others for development; 0 for none",
        "seed": "of the split",
    },
    loader=load_coco,
    downloads=(
        Download(
            "http://images.cocodataset.org/annotations/annotations_trainval2017.zip",
            size=252_907_541,
            sha256="113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268",
            members=(_CAPTIONS, _INSTANCES),
            unpacked_size=30_000_000,
        ),
        Download(
            "http://images.cocodataset.org/zips/val2017.zip",
            size=815_585_330,
            sha256="4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05",
            members=(f"{_PICTURES}/*.jpg",),
            unpacked_size=820_000_000,
        ),
    ),
)


def load_coco_2014(*, label: str = "category", captions: str | int = "all", seed: int = 0) -> DatasetSplits:
    """Load the photographs of train2014 with a label to learn from, and 5,000 each of val2014 for development and test.

    These are the data of Zhang et al. (2017), who count 82,081 photographs to learn from; which 10,000 of val2014 they
    took is not known, and the draw is ours. Labels are those of :func:`load_coco`.
    """
    if label not in _LABELS:
        raise UnknownNameError("label of coco_2014", label, _LABELS)
    train, rest = (
        pairs.select(np.asarray(pairs.labels).any(axis=1))
        for pairs in (
            choose_captions(_read_pairs(COCO_2014.folder(), _LABELS[label], part), captions) for part in _PARTS_2014
        )
    )
    asked = min(_ASKED_2014, rest.n_images // 2)
    rest, test = rest.split(asked, seed=seed)
    dev = rest.split(asked, seed=seed)[1] if rest.n_images > asked else rest
    return DatasetSplits(train=train, test=test, dev=dev)


COCO_2014 = Dataset(
    name="coco_2014",
    summary="122,218 everyday photographs of 2014 with five captions each and the 80 categories of the things in them",
    homepage="https://cocodataset.org/#download",
    citation=COCO.citation,
    licence=COCO.licence,
    splits="82,081 training photographs; 5,000 development and 5,000 test photographs, seeded",
    files=(*(f"annotations/{kind}_{part}.json" for part in _PARTS_2014 for kind in _KINDS), *_PARTS_2014),
    options={
        "label": "'category' (80 of them) or 'supercategory' (12)",
        "captions": CAPTIONS_HELP,
        "seed": "of the development and test photographs",
    },
    loader=load_coco_2014,
    steps="Unpack annotations_trainval2014.zip, train2014.zip and val2014.zip of its homepage into the folder of the "
    "data set.",
)

_PAIR_CAPTIONS = "captions.tsv"
_PARTS = ("train", "dev", "test")
_PAIR_LABELS = ("none", "category")
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
    if label not in _PAIR_LABELS:
        raise UnknownNameError("label of coco_pairs", label, _PAIR_LABELS)
    folder = COCO_PAIRS.folder() if label == "none" else COCO_PAIRS.folder(_ARCHIVE)
    rows = read_table(folder / _PAIR_CAPTIONS, columns=3)[1:]
    parts: dict[str, dict[str, list[str]]] = {part: {} for part in _PARTS}
    for number, (name, part, caption) in enumerate(rows, start=2):
        if part not in parts:
            raise InvalidInputError(
                f"{folder / _PAIR_CAPTIONS}: row {number} says part {part!r}; use {', '.join(_PARTS)}"
            )
        parts[part].setdefault(name, []).append(caption.strip())
    known = {} if label == "none" else _read_labels(folder / _ARCHIVE)
    pairs = {
        part: photograph_pairs(
            folder / "images",
            listed,
            labels=None if label == "none" else _indicator([*listed], known),
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
    files=(_PAIR_CAPTIONS, "images"),
    options={"label": "'none', or 'category' for the 81 labels of Zhang et al. (2017), several to a photograph"},
    loader=load_coco_pairs,
    steps="1. Take photographs of COCO's val2014 and one caption of each.\n"
    "2. Save them as images/<file name>, in any format that Pillow reads; squares of 240 pixels are enough.\n"
    "3. Write captions.tsv: a header, then file name, part (train, dev or test) and caption in three columns with tabs "
    "between.\n"
    "4. For label='category', put coco_val_file.tar.gz, which the authors publish with their code, into a folder "
    "coco_val2014_labels beside that of the data set.",
)
