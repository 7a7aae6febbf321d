"""The linear map from features to the common space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.torch_package import torch_package

Normalization = Literal["cosine", "none", "code"]
NORMALIZATIONS: tuple[Normalization, ...] = ("cosine", "none", "code")

SMALLEST_NORM = 1e-12


class FeatureMap:
    """Maps features into the common space, on PyTorch.

    ``cosine`` scales points to unit length, ``none`` leaves them, and ``code`` does as the code the authors released:
    features of unit length, and a matrix with orthogonal rows and Frobenius norm 1 after every step.

    >>> import numpy as np
    >>> from diptych.models.neural.mnil.feature_map import FeatureMap
    >>> chart = FeatureMap(5, 3, "cosine", rng=np.random.default_rng(0), device="cpu")
    >>> points = chart.points(chart.parameters["weight"].new_ones(2, 5))
    >>> points.norm(dim=1).round(decimals=4).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self, width: int, n_components: int, normalization: Normalization, *, rng: np.random.Generator, device: str
    ) -> None:
        self._torch = torch_package()
        self._normalization = normalization
        bound = np.sqrt(6 / (width + n_components))
        weight = rng.uniform(-bound, bound, size=(n_components, width)).astype(np.float32)
        self.parameters = {
            "weight": self._torch.from_numpy(weight).to(device).requires_grad_(),
            "bias": self._torch.zeros(n_components, device=device, requires_grad=True),
        }
        self.retract()

    def points(self, features: Any) -> Any:
        """Return the points of rows of features."""
        functional = self._torch.nn.functional
        if self._normalization == "code":
            features = functional.normalize(features, dim=1, eps=SMALLEST_NORM)
        points = functional.linear(features, self.parameters["weight"], self.parameters["bias"])
        return functional.normalize(points, dim=1, eps=SMALLEST_NORM) if self._normalization == "cosine" else points

    def retract(self) -> None:
        """After a step, bring the matrix back to where the normalisation wants it."""
        if self._normalization != "code":
            return
        with self._torch.no_grad():
            weight = self.parameters["weight"]
            orthogonal = self._torch.linalg.qr(weight.T).Q.T
            weight.copy_(orthogonal / orthogonal.norm())

    def arrays(self) -> dict[str, AnyArray]:
        """Return the matrix and the intercepts."""
        return {f"map.{name}": tensor.detach().cpu().numpy().copy() for name, tensor in self.parameters.items()}
