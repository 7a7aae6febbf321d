"""Pictures of any kind as squares of bytes, each once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, IntArray
from diptych.data.items import SelectedItems, as_items
from diptych.errors import InvalidInputError

Squares = NDArray[np.uint8]

MEMORY = 1 << 32
"""Bytes of decoded pictures beyond which they are kept in a mapped temporary file."""


def distinct_pictures(images: Sequence[Any] | AnyArray) -> tuple[IntArray, IntArray]:
    """Return (the first row of each distinct picture, for each row the number of its picture).

    Paths are compared as text, arrays byte by byte.

    >>> from diptych.models.neural.mnil.pictures import distinct_pictures
    >>> rows, picture_of = distinct_pictures(["a.png", "b.png", "a.png"])
    >>> rows.tolist(), picture_of.tolist()
    ([0, 1], [0, 1, 0])
    """
    keys = _keys(images)
    numbers: dict[Hashable, int] = {}
    first: list[int] = []
    picture_of = np.empty(len(keys), dtype=np.int64)
    for row, key in enumerate(keys):
        if key not in numbers:
            numbers[key] = len(first)
            first.append(row)
        picture_of[row] = numbers[key]
    return np.array(first, dtype=np.int64), picture_of


def squares(images: Sequence[Any] | AnyArray, rows: IntArray, side: int, *, memory: int = MEMORY) -> Squares:
    """Return the pictures at ``rows`` as (n, side, side, 3) bytes, whole pictures squeezed into the square.

    An array of such pictures that is wanted whole is returned as it is, mapped or not.
    """
    if _are_squares(images, side) and len(rows) == len(images) and bool((rows == np.arange(len(rows))).all()):
        return np.asarray(images)
    made = _room((len(rows), side, side, 3), memory)

    def place(number: int) -> None:
        made[number] = square(images[int(rows[number])], side)

    with ThreadPoolExecutor() as threads:
        for _ in threads.map(place, range(len(rows))):
            pass
    return made


def square(picture: Any, side: int) -> Squares:
    """Return one picture as (side, side, 3) bytes."""
    if isinstance(picture, np.ndarray) and picture.shape == (side, side, 3) and picture.dtype == np.uint8:
        return picture
    # Pillow is only needed for pictures that are not yet squares of bytes.
    from PIL import Image

    from diptych.encoders.image.pictures import read_picture

    image = Image.fromarray(read_picture(picture, shortest_side=side))
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def check_pictures(images: Any) -> Sequence[Any] | AnyArray:
    """Return ``images`` as a sequence of pictures, or raise."""
    if isinstance(images, np.ndarray) and images.ndim == 4 and images.dtype == np.uint8:
        found: Sequence[Any] | AnyArray = images
    elif isinstance(images, np.ndarray) and images.ndim == 2:
        raise InvalidInputError("images are a matrix, but this model looks at pixels; use image_tower='features'")
    else:
        found = as_items(images, name="images")
    if len(found) == 0:
        raise InvalidInputError("there are no images; pass at least one")
    return found


def _are_squares(images: Sequence[Any] | AnyArray, side: int) -> bool:
    return isinstance(images, np.ndarray) and images.shape[1:] == (side, side, 3)


def _room(shape: tuple[int, ...], memory: int) -> Squares:
    if np.prod(shape, dtype=np.int64) <= memory:
        return np.empty(shape, dtype=np.uint8)
    # The file has no name any more once it is mapped, so nothing is left behind.
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)


def _keys(images: Sequence[Any] | AnyArray) -> list[Hashable]:
    if isinstance(images, SelectedItems):
        # One row of a lazy sequence is one picture: no need to make it.
        return [int(row) for row in images.rows]
    digests: dict[int, bytes] = {}
    # Objects of a list live as long as the list; one that is made when asked for may take the place of the one before.
    stays = isinstance(images, (list, tuple))
    return [_key(picture, digests if stays else None) for picture in images]


def _key(picture: Any, digests: dict[int, bytes] | None) -> Hashable:
    if isinstance(picture, (str, os.PathLike)):
        return os.fspath(picture)
    if isinstance(picture, bytes):
        return picture
    # The same object several times over, as aligned captions give it, is looked at once.
    known = None if digests is None else digests.get(id(picture))
    if known is None:
        pixels = np.asarray(picture)
        known = hashlib.blake2b(f"{pixels.shape}".encode() + pixels.tobytes(), digest_size=16).digest()
        if digests is not None:
            digests[id(picture)] = known
    return known
