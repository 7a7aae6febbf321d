"""The residual networks that pictures go through, as plans of convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


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

    >>> from diptych.models.neural.mnil.convolution_plan import ConvolutionPlan
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
        """Return ResNet-50 as first published: the first convolution of a stage makes the step of two.

        Its stem is 64 channels wide; another ``width`` makes all of it narrower or wider.
        """
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
