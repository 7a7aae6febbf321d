"""Whole feature matrices kept on disk, named by what they were made from: for encoders that learn."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from diptych.arrays import FloatArray
from diptych.data.folders import cache_folder


class MatrixCache:
    """A folder of safetensors files, one for each key; by default ``matrices`` in the user's cache folder.

    Files appear whole or not at all, so an interrupted run leaves nothing half-written behind, and a damaged file
    counts as absent. Deleting the folder is always safe.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.encoders import MatrixCache
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = MatrixCache(folder)
    ...     cache.write("k", {"train": np.ones((2, 3))})
    ...     cache.read("k")["train"].shape, cache.read("other")
    ((2, 3), None)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = cache_folder() / "matrices" if folder is None else Path(folder)

    def path(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{key}.safetensors"

    def read(self, key: str) -> dict[str, FloatArray] | None:
        """Return the matrices kept under a key, or None."""
        try:
            return dict(load_file(self.path(key)))
        except (OSError, SafetensorError):
            return None

    def write(self, key: str, matrices: Mapping[str, FloatArray]) -> None:
        """Keep matrices under a key; a folder that cannot be written costs a warning, not the result."""
        try:
            self._write(key, {name: np.ascontiguousarray(matrix) for name, matrix in matrices.items()})
        except OSError as error:
            warnings.warn(f"features were not cached in {self.folder}: {error}; pass cache=False", stacklevel=3)

    def _write(self, key: str, matrices: dict[str, FloatArray]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        os.close(handle)
        try:
            save_file(matrices, name)
            os.replace(name, self.path(key))
        finally:
            Path(name).unlink(missing_ok=True)
