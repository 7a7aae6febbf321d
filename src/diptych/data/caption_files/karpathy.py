"""The split files of Karpathy and Fei-Fei: dataset_flickr8k.json, dataset_flickr30k.json, dataset_coco.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.columns import captions_in, plain
from diptych.errors import InvalidInputError

_NO_METADATA = {"filename", "filepath", "sentences", "sentids"}


def is_karpathy(content: Any) -> bool:
    """Say whether parsed JSON has the layout of a Karpathy split."""
    images = content.get("images") if isinstance(content, dict) else None
    return isinstance(images, list) and bool(images) and isinstance(images[0], dict) and "sentences" in images[0]


def read_karpathy(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield a record per image; its part of the split is kept as metadata ``split``.

    Karpathy and Fei-Fei, "Deep visual-semantic alignments for generating image descriptions", CVPR 2015.
    """
    if not is_karpathy(content):
        raise InvalidInputError(f"{path} is not a Karpathy split: it needs 'images' with 'filename' and 'sentences'")
    for number, image in enumerate(content["images"], start=1):
        place = f"{path}: image {number}"
        if not isinstance(image, dict) or not isinstance(image.get("filename"), str) or "sentences" not in image:
            raise InvalidInputError(f"{place} needs 'filename' and 'sentences'; get a fresh copy of the file")
        folder = image.get("filepath")
        file = f"{folder}/{image['filename']}" if folder else image["filename"]
        known = {name: plain(value) for name, value in image.items() if name not in _NO_METADATA and value is not None}
        yield CaptionRecord(file, tuple(captions_in(image["sentences"], place)), place, metadata=known)
