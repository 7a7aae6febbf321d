"""What training on captions changed in pretrained networks: small files of the package, added to the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.networks.safetensors_weights import Weights

CHANGES_FOLDER = Path(__file__).parents[1] / "changes"
"""Where the package keeps its files of changes; ``scripts/tune_networks.py`` writes them."""


class WeightChanges:
    """The changes of one network.

    A convolution is changed by steps of eight bits, of a size of its own for each output channel; a matrix by the
    product of two thin ones (Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022).
    """

    def __init__(self, name: str) -> None:
        self._arrays = Weights((CHANGES_FOLDER / f"{name}.safetensors",))

    @property
    def digest(self) -> str:
        """The digest of the file."""
        return self._arrays.digest

    def convolution(self, layer: str) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the kernel and the bias of a convolution with its normalisation folded in."""
        steps, sizes = self._arrays[f"{layer}.steps"], self._arrays[f"{layer}.size"]
        return np.asarray(steps * sizes[:, None, None, None]), self._arrays[f"{layer}.bias"]

    def matrix(self, name: str) -> FloatArray | None:
        """Return what is added to a matrix, None where it stays as it was."""
        if f"{name}.left" not in self._arrays:
            return None
        return np.asarray(self._arrays[f"{name}.left"] @ self._arrays[f"{name}.right"])


class ChangedWeights(Weights):
    """The weights of a network with the changes of their matrices added."""

    def __init__(self, weights: Weights, changes: WeightChanges) -> None:
        self.files, self._prefix = weights.files, ""
        self._weights, self._changes = weights, changes

    def _holds(self, name: str) -> bool:
        return name in self._weights

    def _array(self, name: str) -> FloatArray:
        array, change = self._weights[name], self._changes.matrix(name)
        return array if change is None else np.asarray(array + change)
