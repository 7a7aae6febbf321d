"""The convolutions of MNiL's picture networks, and the weights of ImageNet that one of them starts from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError

N_LAYERS = 2
"""Layers of the text network's memory."""
SMALLEST_NORM = 1e-12

Arrays = Mapping[str, AnyArray]
Normalization = Literal["cosine", "none", "code"]
Weights = dict[str, NDArray[np.float32]]


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

    ``centre`` is subtracted from the colours, which are divided by ``scale`` before the stem; ``pooled`` puts the
    maximum of 3 × 3 pixels, every second one, behind it.

    >>> plan = ConvolutionPlan.residual((16, 32), blocks=1)
    >>> [convolution.name for convolution in plan.convolutions()]
    ['stem', 'stage1_block1_1', 'stage1_block1_2', 'stage2_block1_1', 'stage2_block1_2', 'stage2_block1_shortcut']
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
        made: list[Block] = []
        for stage, (width_in, width) in enumerate(pairwise((widths[0], *widths)), start=1):
            for number in range(1, blocks + 1):
                name = f"stage{stage}_block{number}"
                first = width_in if number == 1 else width
                stride = 2 if number == 1 and stage > 1 else 1
                body = Convolution(f"{name}_1", first, width, stride=stride), Convolution(f"{name}_2", width, width)
                changes = stride > 1 or first != width
                made.append(Block(body, Convolution(f"{name}_shortcut", first, width, 1, stride) if changes else None))
        stem = Convolution("stem", 3, widths[0], stride=2)
        return cls(stem, pooled=False, blocks=tuple(made), centre=(127.5, 127.5, 127.5), scale=64.0)

    @classmethod
    def resnet50(cls, width: int = 64) -> ConvolutionPlan:
        """Return ResNet-50 as first published: the first convolution of a stage makes the step of two."""
        made: list[Block] = []
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
                made.append(Block(body, Convolution(f"{name}1", width_in, wide, 1, stride) if letter == "a" else None))
                width_in = wide
        stem = Convolution("conv1", 3, width, 7, 2)
        return cls(stem, pooled=True, blocks=tuple(made), centre=(123.68, 116.779, 103.939), scale=1.0)

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


def packaged_resnet() -> Weights:
    """Return the weights of a package, ImageNet's statistics folded in, where small batches cannot reach."""
    from diptych.encoders.networks.resnet50_weights import folded_convolutions, resnet50_weights

    return folded_convolutions(resnet50_weights())


def write_weights(weights: Arrays, path: str | PathLike[str]) -> None:
    """Write weights to an ``.npz`` file in half precision, half the size and close enough to start from."""
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    with open(path, "wb") as stream:
        np.savez(stream, **halves)  # type: ignore[arg-type]  # NumPy types the names as its own keywords


def read_weights(path: str | PathLike[str]) -> Weights:
    """Read what `write_weights` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            weights = {name: archive[name].astype(np.float32) for name in archive.files}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read as weights of a ResNet-50 ({error}); write it again") from None
    missing = [c.name for c in ConvolutionPlan.resnet50().convolutions() if f"{c.name}.kernel" not in weights]
    if missing:
        raise InvalidInputError(f"{path} holds no weights of a ResNet-50: {missing[0]} is missing; write it again")
    return weights
