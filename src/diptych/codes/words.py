"""Rows of bytes, checked at the door and read through wider integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray
from diptych.errors import InvalidInputError


def as_codes(codes: AnyArray, *, name: str = "codes", width: int | None = None) -> NDArray[np.uint8]:
    """Return ``codes`` as contiguous rows of packed bytes, or explain what is wrong with them.

    ``width`` is the number of bytes that the other side has.

    >>> from diptych.codes.words import as_codes
    >>> as_codes([[0.5, 1.0]], name="queries")
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: queries must be packed uint8 codes (pack_signs), got float64
    """
    codes = np.asarray(codes)
    if codes.dtype != np.uint8:
        raise InvalidInputError(f"{name} must be packed uint8 codes (pack_signs), got {codes.dtype}")
    if codes.ndim != 2 or codes.shape[1] == 0:
        raise InvalidInputError(f"{name} must be a matrix, one code per row, got shape {codes.shape}")
    if width is not None and codes.shape[1] != width:
        raise InvalidInputError(f"codes of one space have one width, got {codes.shape[1]} bytes in {name}, not {width}")
    return np.ascontiguousarray(codes)


def as_marks(allowed: BoolArray, n_items: int) -> BoolArray:
    """Return ``allowed`` as one truth value per code, or explain what is wrong with it."""
    marks = np.asarray(allowed)
    if marks.dtype != bool or marks.shape != (n_items,):
        raise InvalidInputError(
            f"allowed must hold one truth value per code, {n_items} in all, got {marks.dtype} of shape {marks.shape}"
        )
    return marks


def as_words(codes: AnyArray) -> NDArray[Any]:
    """View rows of bytes as rows of the widest integers, padded with zero bits where their width asks for it."""
    width = codes.shape[1]
    word = next((size for size in (1, 2, 4) if width <= size), 8)
    padded = -(-width // word) * word
    if padded != width:
        codes = np.pad(codes, ((0, 0), (0, padded - width)))
    return np.ascontiguousarray(codes).view(f"u{word}")


def distance_type(width: int) -> type[np.uint8] | type[np.uint16]:
    """Return the smallest integer type that holds a distance of codes of ``width`` bytes."""
    return np.uint8 if 8 * width <= np.iinfo(np.uint8).max else np.uint16
