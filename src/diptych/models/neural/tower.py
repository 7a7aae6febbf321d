"""One side's network while it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diptych.models.neural.layers import Layers, initial_layers
from diptych.models.neural.torch_package import torch_package


class Tower:
    """Dense layers with rectified units between them, on PyTorch.

    Start and dropout come from ``rng``, never from PyTorch's global generator, so that a fit is repeatable and leaves
    no trace.

    >>> import numpy as np
    >>> from diptych.models.neural.tower import Tower
    >>> tower = Tower((4, 8, 3), dropout=0.5, rng=np.random.default_rng(0), device="cpu")
    >>> tuple(tower.outputs(np.ones((2, 4), dtype=np.float32)).shape)
    (2, 3)
    """

    def __init__(self, sizes: Sequence[int], *, dropout: float, rng: np.random.Generator, device: str) -> None:
        self._torch = torch_package()
        self._dropout = dropout
        self._device = device
        self._noise = self._torch.Generator(device).manual_seed(int(rng.integers(2**31)))
        self.parameters = [self.tensor(layer).requires_grad_() for layer in initial_layers(sizes, rng)]

    def tensor(self, values: np.ndarray[Any, Any]) -> Any:
        """Return float32 ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def outputs(self, rows: np.ndarray[Any, Any], *, training: bool = False) -> Any:
        """Return the last layer's values; with ``training``, hidden units are dropped at random."""
        values = self.tensor(rows) @ self.parameters[0] + self.parameters[1]
        for weights, intercepts in zip(self.parameters[2::2], self.parameters[3::2], strict=True):
            values = values.relu()
            if training and self._dropout:
                values = self._dropped(values)
            values = values @ weights + intercepts
        return values

    def layers(self) -> Layers:
        """Return a copy of the layers as NumPy arrays."""
        return [parameter.detach().cpu().numpy().copy() for parameter in self.parameters]

    def _dropped(self, values: Any) -> Any:
        drawn = self._torch.rand(values.shape, generator=self._noise, device=self._device)
        return values * (drawn >= self._dropout) / (1 - self._dropout)
