"""The annotation files of COCO: captions of images, or the categories of things in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.columns import plain
from diptych.errors import InvalidInputError


def is_coco(content: Any) -> bool:
    """Say whether parsed JSON has the layout of COCO."""
    return isinstance(content, dict) and all(isinstance(content.get(key), list) for key in ("images", "annotations"))


def read_coco(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield a record per image, with its captions and, from an instances file, the categories in it as labels.

    Lin et al., "Microsoft COCO: common objects in context", ECCV 2014, with the layout of https://cocodataset.org.
    """
    if not is_coco(content):
        raise InvalidInputError(f"{path} is not in COCO's layout: it needs the lists 'images' and 'annotations'")
    categories = _categories(path, content.get("categories", []))
    captions: dict[Any, list[str]] = {_value(path, "image", image, "id"): [] for image in content["images"]}
    labels: dict[Any, dict[str, None]] = {}
    for number, annotation in enumerate(content["annotations"], start=1):
        image = _value(path, f"annotation {number}", annotation, "image_id")
        if image not in captions:
            raise InvalidInputError(f"{path}: annotation {number} is of image {image!r}, which 'images' does not list")
        if "caption" in annotation:
            captions[image].append(_text(path, number, annotation["caption"]))
        elif "category_id" in annotation:
            labels.setdefault(image, {})[_category(path, number, annotation["category_id"], categories)] = None
    for number, image in enumerate(content["images"], start=1):
        file = _text(path, number, _value(path, f"image {number}", image, "file_name"))
        known = {name: plain(value) for name, value in image.items() if name != "file_name" and value is not None}
        yield CaptionRecord(
            file, tuple(captions[image["id"]]), f"{path}: image {number}", tuple(labels.get(image["id"], ())), known
        )


def _categories(path: Path, listed: list[Any]) -> dict[Any, str]:
    return {_value(path, "category", entry, "id"): str(_value(path, "category", entry, "name")) for entry in listed}


def _category(path: Path, number: int, category: Any, categories: dict[Any, str]) -> str:
    if category not in categories:
        raise InvalidInputError(f"{path}: annotation {number} has category {category!r}, which 'categories' lacks")
    return categories[category]


def _value(path: Path, place: str, entry: Any, name: str) -> Any:
    if not isinstance(entry, dict) or name not in entry:
        raise InvalidInputError(f"{path}: {place} has no {name!r}; get a fresh copy of the file")
    return entry[name]


def _text(path: Path, number: int, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{path}: entry {number} must hold text, got {value!r}; get a fresh copy of the file")
    return value
