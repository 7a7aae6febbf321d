"""MNiL's two networks and their maps to the common space, while they are trained.

This module is imported when a training starts: nothing else needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.models.neural._torch import copied, copied_by_name, fill_by_name
from diptych.models.neural.mnil._plan import (
    N_LAYERS,
    SMALLEST_NORM,
    Arrays,
    Convolution,
    ConvolutionPlan,
    Normalization,
)


def _uniform(rng: np.random.Generator, bound: float, shape: tuple[int, ...]) -> Any:
    return torch.from_numpy(rng.uniform(-bound, bound, size=shape).astype(np.float32))


class PictureNetwork(nn.Module):
    """A residual network from bytes of pixels to pooled features.

    Without ``weights`` it starts at random (He et al., "Delving deep into rectifiers", ICCV 2015) with batch
    normalisation behind every convolution; with them, convolutions have biases and nothing is normalised.
    """

    def __init__(self, plan: ConvolutionPlan, weights: Arrays | None, rng: np.random.Generator) -> None:
        super().__init__()
        self.plan = plan
        self.width = plan.width
        self.register_buffer("centre", torch.tensor(plan.centre)[:, None, None], persistent=False)
        self.convolutions = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        for layer in plan.convolutions():
            made = nn.Conv2d(
                layer.width_in, layer.width_out, layer.size, layer.stride, layer.size // 2, bias=weights is not None
            )
            if weights is None:
                kernel = rng.normal(scale=np.sqrt(2 / (layer.width_in * layer.size**2)), size=made.weight.shape)
                made.weight.data = torch.from_numpy(kernel.astype(np.float32))
                self.norms[layer.name] = nn.BatchNorm2d(layer.width_out)
            else:
                made.weight.data = torch.tensor(weights[f"{layer.name}.kernel"])
                made.bias.data = torch.tensor(weights[f"{layer.name}.bias"])
            self.convolutions[layer.name] = made
        # Convolutions on a graphics card want the channels last, as the bytes of pixels have them.
        self.to(memory_format=torch.channels_last)

    def forward(self, pixels: Any) -> Any:
        """Return the features of uint8 ``pixels`` (n, rows, columns, 3)."""
        values = (pixels.permute(0, 3, 1, 2).float() - self.centre) / self.plan.scale
        values = self._convolved(values, self.plan.stem).relu()
        if self.plan.pooled:
            values = functional.max_pool2d(values, 3, 2, 1)
        for block in self.plan.blocks:
            inner = values
            for layer in block.body[:-1]:
                inner = self._convolved(inner, layer).relu()
            inner = self._convolved(inner, block.body[-1])
            shortcut = values if block.shortcut is None else self._convolved(values, block.shortcut)
            values = (inner + shortcut).relu()
        return values.float().mean(dim=(2, 3))

    def arrays(self) -> dict[str, AnyArray]:
        """Return a kernel and a bias for each convolution, with batch normalisation and the scale of pixels folded in.

        Sums are taken in float64.
        """
        folded: dict[str, AnyArray] = {"centre": np.array(self.plan.centre, dtype=np.float32)}
        for name, convolution in self.convolutions.items():
            kernel, bias = convolution.weight.double(), convolution.bias
            if self.norms:
                norm = self.norms[name]
                statistics = (norm.running_mean.double(), norm.running_var.double())
                learned = (norm.weight.double(), norm.bias.double())
                kernel, bias = fuse_conv_bn_weights(kernel, None, *statistics, norm.eps, *learned)
            kernel = kernel / self.plan.scale if name == self.plan.stem.name else kernel
            folded |= copied_by_name({f"{name}.kernel": kernel.float(), f"{name}.bias": bias.float()})
        return folded

    def _convolved(self, values: Any, layer: Convolution) -> Any:
        values = self.convolutions[layer.name](values)
        return self.norms[layer.name](values) if self.norms else values


class FeatureNetwork(nn.Module):
    """Brings rows of features to zero mean and unit variance on average, and learns a hidden layer if it has one.

    ``hidden`` rectified units, a share ``dropout`` of which is left out in training, come last.
    """

    def __init__(self, rows: FloatArray, *, hidden: int, dropout: float, rng: np.random.Generator) -> None:
        super().__init__()
        mean, variance = rows.mean(axis=0, dtype=np.float64), rows.var(axis=0, dtype=np.float64).mean()
        self.width = hidden or len(mean)
        self.register_buffer("mean", torch.from_numpy(mean.astype(np.float32)))
        self.register_buffer("scale", torch.tensor([float(np.sqrt(variance)) or 1.0]))
        self._dropout = dropout
        self.hidden = nn.Linear(len(mean), hidden) if hidden else None
        if self.hidden is not None:
            self.hidden.weight.data = _uniform(rng, np.sqrt(6 / len(mean)), (hidden, len(mean)))
            self.hidden.bias.data.zero_()

    def forward(self, rows: Any) -> Any:
        """Return the rows, centred and scaled, or what the layer makes of them."""
        centred = (rows.float() - self.mean) / self.scale
        if self.hidden is None:
            return centred
        return functional.dropout(self.hidden(centred).relu(), self._dropout, self.training)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the mean, the scale as an array of one number, and the layer if there is one."""
        return copied_by_name(self.state_dict())


class TextNetwork(nn.Module):
    """Two layers of long short-term memory over vectors of words, and the mean over time.

    ``vectors`` are the network's own words, which learn with ``train_words``; or, where a ``scale`` divides them, the
    states that an encoder gave each token of each text: looked up in training, and not kept. Weights start uniform in
    ±1/√width, and forget gates open. ``unit_steps`` scales the memory's answer to each word to unit length.
    """

    def __init__(
        self,
        vectors: AnyArray,
        width: int,
        *,
        scale: float | None,
        train_words: bool,
        dropout: float,
        unit_steps: bool,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        self.width = width
        self._unit_steps = unit_steps
        if scale is None:
            self.words = nn.Parameter(torch.from_numpy(vectors), requires_grad=train_words)
        else:
            self.register_buffer("states", torch.from_numpy(vectors), persistent=False)
            self.register_buffer("scale", torch.tensor([scale]))
        self.memory = nn.LSTM(vectors.shape[1], width, N_LAYERS, batch_first=True, dropout=dropout)
        for name, parameter in self.memory.named_parameters():
            parameter.data.copy_(_uniform(rng, 1 / np.sqrt(width), tuple(parameter.shape)))
            if name.startswith("bias"):
                parameter.data.zero_()
            if name.startswith("bias_ih"):
                # The two biases are added; one of them opens the forget gates.
                parameter.data[width : 2 * width] = 1.0

    def forward(self, word_ids: Any, lengths: Any) -> Any:
        """Return the mean over the words of each text; ``word_ids`` beyond a text's length do not count."""
        if hasattr(self, "words"):
            vectors = functional.embedding(word_ids, self.words)
        else:
            vectors = functional.embedding(word_ids, self.states).float() / self.scale
        steps, _ = self.memory(vectors)
        if self._unit_steps:
            steps = functional.normalize(steps, dim=2, eps=SMALLEST_NORM)
        counted = torch.arange(word_ids.shape[1], device=word_ids.device) < lengths[:, None]
        return (steps * counted[:, :, None]).sum(dim=1) / lengths[:, None]

    def arrays(self) -> dict[str, AnyArray]:
        """Return the words or the scale, and the memory's arrays; gates come as input, forget, cell, output."""
        return copied_by_name(self.state_dict())


class SpaceMap(nn.Linear):
    """Maps features into the common space.

    ``cosine`` scales points to unit length, ``none`` leaves them, and ``code`` does as the code the authors released:
    features of unit length, and a matrix with orthogonal rows and Frobenius norm 1 after every step.

    >>> points = SpaceMap(5, 3, "cosine", np.random.default_rng(0))(torch.ones(2, 5))
    >>> points.norm(dim=1).round(decimals=4).tolist()
    [1.0, 1.0]
    """

    def __init__(self, width: int, n_components: int, normalization: Normalization, rng: np.random.Generator) -> None:
        super().__init__(width, n_components)
        self._normalization = normalization
        self.weight.data = _uniform(rng, np.sqrt(6 / (width + n_components)), (n_components, width))
        self.bias.data.zero_()
        self.retract()

    def forward(self, features: Any) -> Any:
        """Return the points of rows of features."""
        if self._normalization == "code":
            features = functional.normalize(features, dim=1, eps=SMALLEST_NORM)
        points = super().forward(features)
        return functional.normalize(points, dim=1, eps=SMALLEST_NORM) if self._normalization == "cosine" else points

    def retract(self) -> None:
        """Bring the matrix back to where the normalisation wants it, after a step."""
        if self._normalization == "code":
            orthogonal = torch.linalg.qr(self.weight.data.T).Q.T
            self.weight.data.copy_(orthogonal / orthogonal.norm())


class Networks(nn.Module):
    """A picture and a text side that end in one space.

    ``crop`` is the side of the square of pixels that the picture side sees, None for all; ``mixed`` runs it in
    bfloat16 and ``compiled`` through PyTorch's compiler.
    """

    def __init__(
        self,
        image: PictureNetwork | FeatureNetwork,
        text: TextNetwork,
        n_components: int,
        normalization: Normalization,
        *,
        rng: np.random.Generator,
        device: str,
        crop: int | None = None,
        mixed: bool = False,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.image_map = SpaceMap(image.width, n_components, normalization, rng)
        self.text_map = SpaceMap(text.width, n_components, normalization, rng)
        self.device = device
        self._crop = crop
        self._mixed = mixed
        self.to(device)
        if compiled:
            image.compile()

    def image_points(self, pictures: Any, corners: Any = None, mirrored: Any = None) -> Any:
        """Return the points of pictures or features; without ``corners`` the middle is cut out."""
        if self._crop is not None and pictures.ndim == 4:
            pictures = cut(pictures, self._crop, corners, mirrored)
        with torch.autocast(self.device.partition(":")[0], dtype=torch.bfloat16, enabled=self._mixed):
            features = self.image(pictures)
        return self.image_map(features.float())

    def text_points(self, word_ids: Any, lengths: Any) -> Any:
        """Return the points of rows of word numbers."""
        return self.text_map(self.text(word_ids, lengths))

    def retract(self) -> None:
        """Bring the maps back to where their normalisation wants them, after a step."""
        self.image_map.retract()
        self.text_map.retract()

    def encode_pictures(self, pictures: AnyArray) -> AnyArray:
        """Return the points of an array of pictures or features, on the device they are trained on."""
        return self._encoded(len(pictures), lambda rows: self.image_points(self._tensor(pictures[rows])))

    def encode_word_ids(self, word_ids: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of rows of word numbers, on the device they are trained on."""
        return self._encoded(
            len(word_ids), lambda rows: self.text_points(self._tensor(word_ids[rows]), self._tensor(lengths[rows]))
        )

    def arrays(self) -> dict[str, dict[str, AnyArray]]:
        """Return the arrays of each side, ``map.weight`` and ``map.bias`` last."""
        sides = {"image": (self.image, self.image_map), "text": (self.text, self.text_map)}
        return {
            side: network.arrays() | {f"map.{name}": copied(tensor) for name, tensor in chart.named_parameters()}
            for side, (network, chart) in sides.items()
        }

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of everything that training changes, by name."""
        return copied_by_name(self.state_dict())

    def restore(self, state: Arrays) -> None:
        """Go back to what `state` returned."""
        fill_by_name(self.state_dict(), state)

    def moving_statistics(self) -> Iterator[Any]:
        """Yield what batch normalisation measures along the way."""
        return (values for name, values in self.named_buffers() if "running" in name)

    def _tensor(self, values: AnyArray) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _encoded(self, n_rows: int, encode: Callable[[slice], Any]) -> AnyArray:
        self.eval()
        with torch.no_grad():
            return np.concatenate([encode(rows).float().cpu().numpy() for rows in row_blocks(n_rows, 128)])


def cut(pictures: Any, side: int, corners: Any, mirrored: Any) -> Any:
    """Cut a square out of each picture where its corner is, and mirror those to be mirrored; else the middle of all."""
    if corners is None:
        middle = (pictures.shape[1] - side) // 2
        return pictures[:, middle : middle + side, middle : middle + side]
    steps = torch.arange(side, device=pictures.device)
    across = torch.where(mirrored[:, None], side - 1 - steps, steps)
    rows, columns = corners[:, :1] + steps, corners[:, 1:] + across
    numbers = torch.arange(len(pictures), device=pictures.device)
    return pictures[numbers[:, None, None], rows[:, :, None], columns[:, None, :]]
