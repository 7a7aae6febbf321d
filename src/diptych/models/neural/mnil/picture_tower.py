"""The picture side while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.mnil.convolution_plan import Convolution, ConvolutionPlan
from diptych.models.neural.torch_package import torch_package

_EPSILON = 1e-5
_MOMENTUM = 0.1


class PictureTower:
    """A residual network on PyTorch, from bytes of pixels to pooled features.

    Without ``weights`` it starts at random (He et al., "Delving deep into rectifiers", ICCV 2015) with batch
    normalisation behind every convolution; with them, convolutions have biases and nothing is normalised.

    >>> import numpy as np
    >>> from diptych.models.neural.mnil.convolution_plan import ConvolutionPlan
    >>> from diptych.models.neural.mnil.picture_tower import PictureTower
    >>> tower = PictureTower(ConvolutionPlan.residual((8, 16), 1), rng=np.random.default_rng(0), device="cpu")
    >>> tuple(tower.features(tower.tensor(np.zeros((2, 32, 32, 3), dtype=np.uint8))).shape)
    (2, 16)
    """

    def __init__(
        self,
        plan: ConvolutionPlan,
        weights: Mapping[str, AnyArray] | None = None,
        *,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self._torch = torch_package()
        self._plan = plan
        self._device = device
        self._normalises = weights is None
        self.width = plan.width
        start = _random_weights(plan, rng) if weights is None else weights
        self.parameters = {name: self._parameter(values) for name, values in start.items()}
        self.buffers: dict[str, Any] = {}
        for convolution in plan.convolutions() if self._normalises else ():
            ones = np.ones(convolution.width_out, dtype=np.float32)
            self.buffers[f"{convolution.name}.mean"] = self.tensor(0 * ones)
            self.buffers[f"{convolution.name}.variance"] = self.tensor(ones)
        self._centre = self.tensor(np.array(plan.centre, dtype=np.float32)[:, None, None])

    def tensor(self, values: AnyArray) -> Any:
        """Return ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def features(self, pixels: Any, *, training: bool = False) -> Any:
        """Return the pooled features of uint8 ``pixels`` (n, rows, columns, 3)."""
        # A view of bytes in this order already has the channels last, which convolutions on a graphics card want.
        values = (pixels.permute(0, 3, 1, 2).float() - self._centre) / self._plan.scale
        values = self._convolved(values, self._plan.stem, training).relu()
        if self._plan.pooled:
            values = self._torch.nn.functional.max_pool2d(values, 3, 2, 1)
        for block in self._plan.blocks:
            inner = values
            for convolution in block.body[:-1]:
                inner = self._convolved(inner, convolution, training).relu()
            inner = self._convolved(inner, block.body[-1], training)
            if block.shortcut is not None:
                values = self._convolved(values, block.shortcut, training)
            values = (inner + values).relu()
        return values.float().mean(dim=(2, 3))

    def arrays(self) -> dict[str, AnyArray]:
        """Return a kernel and a bias for each convolution, batch normalisation and scale of the pixels folded in."""
        found: dict[str, AnyArray] = {"centre": np.array(self._plan.centre, dtype=np.float32)}
        for convolution in self._plan.convolutions():
            kernel, bias = self._folded(convolution.name)
            found[f"{convolution.name}.kernel"] = kernel / (self._plan.scale if convolution is self._plan.stem else 1)
            found[f"{convolution.name}.bias"] = bias
        return {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in found.items()}

    def _convolved(self, values: Any, convolution: Convolution, training: bool) -> Any:
        name, functional = convolution.name, self._torch.nn.functional
        values = functional.conv2d(
            values,
            self.parameters[f"{name}.kernel"],
            self.parameters.get(f"{name}.bias"),
            stride=convolution.stride,
            padding=convolution.size // 2,
        )
        if not self._normalises:
            return values
        return functional.batch_norm(
            values,
            self.buffers[f"{name}.mean"],
            self.buffers[f"{name}.variance"],
            self.parameters[f"{name}.gain"],
            self.parameters[f"{name}.shift"],
            training=training,
            momentum=_MOMENTUM,
            eps=_EPSILON,
        )

    def _folded(self, name: str) -> tuple[AnyArray, AnyArray]:
        kernel = _double(self.parameters[f"{name}.kernel"])
        if not self._normalises:
            return kernel, _double(self.parameters[f"{name}.bias"])
        factor = _double(self.parameters[f"{name}.gain"]) / np.sqrt(
            _double(self.buffers[f"{name}.variance"]) + _EPSILON
        )
        bias = _double(self.parameters[f"{name}.shift"]) - _double(self.buffers[f"{name}.mean"]) * factor
        return kernel * factor[:, None, None, None], bias

    def _parameter(self, values: AnyArray) -> Any:
        tensor = self.tensor(np.array(values, dtype=np.float32))
        if tensor.ndim == 4:
            tensor = tensor.to(memory_format=self._torch.channels_last)
        return tensor.requires_grad_()


def _double(tensor: Any) -> AnyArray:
    return np.asarray(tensor.detach().cpu().double().contiguous().numpy())


def _random_weights(plan: ConvolutionPlan, rng: np.random.Generator) -> dict[str, AnyArray]:
    found: dict[str, AnyArray] = {}
    for convolution in plan.convolutions():
        shape = convolution.width_out, convolution.width_in, convolution.size, convolution.size
        deviation = np.sqrt(2 / (convolution.width_in * convolution.size**2))
        found[f"{convolution.name}.kernel"] = rng.normal(scale=deviation, size=shape).astype(np.float32)
        found[f"{convolution.name}.gain"] = np.ones(convolution.width_out, dtype=np.float32)
        found[f"{convolution.name}.shift"] = np.zeros(convolution.width_out, dtype=np.float32)
    return found
