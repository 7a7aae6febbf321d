"""COCO val2017: 5,000 photographs with five captions and the categories of the things in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, check_photographs, choose_captions
from diptych.data.downloads import Download
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_json_object
from diptych.errors import InvalidInputError, UnknownNameError

_PICTURES = "val2017"
_CAPTIONS = "annotations/captions_val2017.json"
_INSTANCES = "annotations/instances_val2017.json"
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


def _read_pairs(folder: Path, name_key: str) -> Pairs:
    described, annotated = _read(folder / _CAPTIONS, "caption"), _read(folder / _INSTANCES, "category_id")
    files = {entry["id"]: entry["file_name"] for entry in described["images"]}
    check_photographs(folder / _PICTURES, sorted(files.values()))
    captions: dict[Any, list[tuple[int, str]]] = {image: [] for image in files}
    for entry in described["annotations"]:
        _of(captions, entry["image_id"], folder / _CAPTIONS).append((entry["id"], " ".join(entry["caption"].split())))
    # The files list captions in no order; by id they are as they were collected.
    images = sorted((image for image in files if captions[image]), key=lambda image: files[image])
    listed = {image: sorted(captions[image]) for image in images}
    indicator, names = _labels(images, annotated, name_key, folder / _INSTANCES)
    return Pairs(
        [folder / _PICTURES / files[image] for image in images],
        [caption for image in images for _, caption in listed[image]],
        labels=indicator,
        ids=[files[image] for image in images],
        class_names=names,
        owners=[row for row, image in enumerate(images) for _ in listed[image]],
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
