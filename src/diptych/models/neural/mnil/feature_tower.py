"""The picture side where an encoder that stays as it is has already looked at the pictures."""

from __future__ import annotations

from typing import Any

from diptych.arrays import AnyArray, FloatArray
from diptych.models.neural.torch_package import torch_package


class FeatureTower:
    """Takes rows of features, brings them to zero mean and unit variance on average, and learns nothing.

    >>> import numpy as np
    >>> from diptych.models.neural.mnil.feature_tower import FeatureTower
    >>> tower = FeatureTower(np.array([1.0, 1.0]), 2.0, device="cpu")
    >>> tower.features(tower.tensor(np.array([[3.0, 1.0]], dtype=np.float32)))
    tensor([[1., 0.]])
    """

    def __init__(self, mean: FloatArray, scale: float, *, device: str) -> None:
        self._torch = torch_package()
        self._device = device
        self.width = len(mean)
        self.parameters: dict[str, Any] = {}
        self.buffers = {
            "mean": self.tensor(mean.astype("float32")),
            "scale": self._torch.tensor([float(scale)], device=device),
        }

    def tensor(self, values: AnyArray) -> Any:
        """Return ``values`` where the tower is."""
        return self._torch.from_numpy(values).to(self._device)

    def features(self, rows: Any, *, training: bool = False) -> Any:
        """Return the rows, centred and scaled; ``training`` makes no difference."""
        del training
        return (rows.float() - self.buffers["mean"]) / self.buffers["scale"]

    def arrays(self) -> dict[str, AnyArray]:
        """Return the mean, and the scale as an array of one number."""
        return {name: buffer.cpu().numpy().copy() for name, buffer in self.buffers.items()}
