"""What training on captions changed in pretrained networks; files in the package hold it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from diptych.arrays import FloatArray
from diptych.encoders.networks.model_files import digest_of_files

CHANGES_FOLDER = Path(__file__).parents[1] / "changes"
"""Where the package keeps its files of changes; ``scripts/tune_networks.py`` writes them."""


class WeightChanges:
    """The changes of one network.

    A convolution is changed by steps of eight bits, of a size of its own for each output channel; a matrix by the
    product of two thin ones (Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022).
    """

    def __init__(self, name: str) -> None:
        self._file = CHANGES_FOLDER / f"{name}.safetensors"

    @cached_property
    def _arrays(self) -> dict[str, FloatArray]:
        # The digest is asked for at every start, and the numbers only once.
        return read_arrays(self._file)

    @property
    def digest(self) -> str:
        """The digest of the file."""
        return digest_of_files((self._file,))

    def convolution(self, layer: str) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the kernel and the bias of a convolution with its normalisation folded in."""
        steps, sizes = self._arrays[f"{layer}.steps"], self._arrays[f"{layer}.size"]
        return np.asarray(steps * sizes[:, None, None, None]), self._arrays[f"{layer}.bias"]

    def matrix(self, name: str) -> FloatArray | None:
        """Return what is added to a matrix, None where it stays as it was."""
        if f"{name}.left" not in self._arrays:
            return None
        return np.asarray(self._arrays[f"{name}.left"] @ self._arrays[f"{name}.right"])


def read_arrays(file: Path) -> dict[str, FloatArray]:
    """Read a safetensors file of the package, all numbers as float32."""
    return {name: values.astype(np.float32) for name, values in load_file(file).items()}
