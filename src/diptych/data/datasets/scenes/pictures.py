"""Pictures that are painted when they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import IntArray
from diptych.data.datasets.scenes.scene import SMALLEST_PICTURE, make_scene
from diptych.errors import InvalidInputError

Picture = NDArray[np.uint8]


class PictureSequence(Sequence[Picture]):
    """The pictures of some scenes, rendered one by one when asked for, so that thousands cost no memory.

    ``scenes`` is a number (the first so many scenes) or the scene numbers themselves. An integer index gives one
    picture; slices, index arrays and :meth:`take` give another lazy sequence; ``np.asarray`` renders everything.

    >>> import numpy as np
    >>> from diptych.data.datasets.scenes import PictureSequence
    >>> pictures = PictureSequence(1000, size=32)
    >>> len(pictures), pictures[3].shape, pictures[[5, 3]].shape
    (1000, (32, 32, 3), (2, 32, 32, 3))
    >>> bool((np.asarray(pictures[2:4])[1] == pictures[3]).all())
    True
    """

    def __init__(self, scenes: int | Sequence[int] | IntArray, *, seed: int = 0, size: int = 128) -> None:
        numbers = np.arange(scenes) if isinstance(scenes, int) else np.array(scenes, dtype=np.int64)
        if numbers.ndim != 1 or (numbers < 0).any():
            raise InvalidInputError("scenes must be a number of scenes or a list of scene numbers, none below 0")
        if size < SMALLEST_PICTURE:
            raise InvalidInputError(f"size must be at least {SMALLEST_PICTURE} pixels, got {size}")
        self.scenes: NDArray[np.int64] = numbers
        self.seed = seed
        self.size = size

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that ``np.asarray`` would have."""
        return len(self), self.size, self.size, 3

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """The type of the pixels."""
        return np.dtype(np.uint8)

    def take(self, rows: Sequence[int] | IntArray) -> PictureSequence:
        """Return the pictures at the given rows, in that order, still lazy."""
        return PictureSequence(self.scenes[np.asarray(rows, dtype=np.int64)], seed=self.seed, size=self.size)

    def __len__(self) -> int:
        return len(self.scenes)

    @overload
    def __getitem__(self, index: int) -> Picture: ...

    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> PictureSequence: ...

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> Picture | PictureSequence:
        chosen = self.scenes[cast(Any, index)]
        if np.ndim(chosen) == 0:
            return make_scene(int(chosen), self.seed).render(self.size)
        return PictureSequence(chosen, seed=self.seed, size=self.size)

    def __iter__(self) -> Iterator[Picture]:
        return (make_scene(number, self.seed).render(self.size) for number in self.scenes.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the pictures do not exist yet; rendering them always makes a new array")
        pictures = np.empty(self.shape, dtype=np.uint8)
        for row, picture in enumerate(self):
            pictures[row] = picture
        return pictures if dtype is None else pictures.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<{len(self)} pictures of scenes, seed {self.seed}, {self.size} pixels>"
