"""Pictures packed into a table of text."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from diptych.data.items import SelectedItems
from diptych.errors import InvalidInputError


class PackedPictures(Sequence[Any]):
    """The pictures of a table with a key, a tab and a picture file in base64 per line, unpacked when asked for.

    Only keys and the places of the lines are in memory. An item is an array of uint8, height × width × 3.
    """

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

    def of(self, keys: Sequence[str]) -> SelectedItems:
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
