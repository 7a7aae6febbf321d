from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import diptych.data
from diptych.encoders import ColourEdgeHistograms, EfficientNetLite, SideBySide
from diptych.encoders.image.lite_network import FloatLayers, Int8Layers, LiteWriter, lite_network
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.weights import read_arrays
from diptych.errors import InvalidInputError
from diptych.retriever import Retriever, precision
from diptych.retriever.precision import encoder_in_eight_bits, in_eight_bits, in_precision, precision_of

PHOTOGRAPHS = sorted((Path(diptych.data.__file__).parent / "photographs").glob("*.jpg"))[:6]


def int8_layers(pixel_means: np.ndarray, ranges: dict[str, tuple[float, float]]) -> Int8Layers:
    statistics = {"pixels.means": pixel_means.astype(np.float32)}
    for name, limits in ranges.items():
        statistics |= {f"{name}.range": np.array(limits), f"{name}.means": np.zeros(1, dtype=np.float32)}
    return Int8Layers(statistics)


def given_out(layers: Int8Layers, value: Any, shape: tuple[int, ...], pixels: np.ndarray) -> np.ndarray:
    """Run the network for pixels and return what its bytes stand for."""
    numbers = layers.graph.node("DequantizeLinear", value.name, *map(layers.graph.constant, (value.scale, value.zero)))
    layers.graph.output("out", numbers, ("items", *shape))
    return Network(layers.graph.content()).run("out", {"pixels": pixels})


@pytest.fixture(scope="module")
def exact_sums() -> None:
    """Skip where the processor cuts off sums of products of bytes at 16 bits: AVX2 without instructions for bytes."""
    kernel, bias = np.full((1, 3, 1, 1), 127, dtype=np.float32), np.zeros(1, dtype=np.float32)
    layers = int8_layers(np.zeros(3), {"sum": (0.0, 100_000.0)})
    made = layers.convolution("sum", layers.pixels(1), kernel, bias, linear=True)
    white = np.full((1, 1, 1, 3), 255, dtype=np.uint8)
    found = float(given_out(layers, made, (1, 1, 1), white).item())
    if abs(found - 3 * 127 * (255 - 127)) > 1000:
        pytest.skip("this processor cuts off sums of products of bytes, so `auto` takes float32 on it")


@pytest.fixture(scope="module")
def features() -> dict[str | None, np.ndarray]:
    return {name: EfficientNetLite(network="lite0", precision=name).transform(PHOTOGRAPHS) for name in (None, "int8")}


@pytest.mark.usefixtures("exact_sums")
def test_features_in_eight_bits_lie_near_those_in_float32(features: dict[str | None, np.ndarray]) -> None:
    first, second = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in features.values())
    assert (first * second).sum(axis=1).min() > 0.97
    # Each is nearest to its own photograph.
    assert (first @ second.T).argmax(axis=1).tolist() == list(range(len(PHOTOGRAPHS)))


def test_a_picture_alone_has_the_features_it_has_among_others(features: dict[str | None, np.ndarray]) -> None:
    alone = EfficientNetLite(network="lite0", precision="int8", n_threads=3).transform(PHOTOGRAPHS[2:3])
    np.testing.assert_array_equal(alone[0], features["int8"][2])


def test_precisions_are_never_taken_for_each_other() -> None:
    plain = EfficientNetLite(network="lite0")
    rounded = clone(plain).set_params(precision="int8")
    assert rounded.fingerprint != plain.fingerprint
    assert rounded.network_name != plain.network_name
    with pytest.raises(InvalidInputError, match="float32"):
        EfficientNetLite(precision="int4").fit([])


class _NamedLayers(FloatLayers):
    """Layers that only remember their names."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def convolution(self, name: str, values: object, *_: object, **__: object) -> object:
        self.names.append(name)
        return values

    def sum(self, name: str, inner: object, values: object) -> object:
        self.names.append(name)
        return values


@pytest.mark.parametrize("name", ["lite0", "lite0-captions", "lite2", "lite2-captions"])
def test_every_layer_has_statistics(name: str) -> None:
    layers = _NamedLayers()
    LiteWriter(layers, lite_network(name)).write()
    statistics = read_arrays(lite_network(name).statistics_file)
    for layer in layers.names:
        least, largest = statistics[f"{layer}.range"]
        assert least <= 0 < largest
        assert np.isfinite(statistics[f"{layer}.means"]).all()


def test_only_networks_change() -> None:
    both = SideBySide(encoders=(EfficientNetLite(network="lite0"), ColourEdgeHistograms()))
    changed = encoder_in_eight_bits(both)
    assert [getattr(part, "precision", "none") for part in changed.encoders] == ["int8", "none"]
    assert precision_of(changed) == "int8"
    assert both.encoders[0].precision is None
    assert precision_of(both) == "float32"
    histograms = ColourEdgeHistograms()
    assert encoder_in_eight_bits(histograms) is histograms


@pytest.mark.parametrize(
    ("n_pictures", "has_instructions", "device", "expected"),
    [
        (500, True, "cpu", "int8"),
        (499, True, "cpu", "float32"),
        (500, False, "cpu", "float32"),
        (500, True, "openvino", "float32"),
    ],
)
def test_eight_bits_are_for_many_pictures_on_a_processor_with_instructions_for_them(
    n_pictures: int, has_instructions: bool, device: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "multiplies_bytes", lambda: has_instructions)
    monkeypatch.setattr(precision, "uses_accelerator", lambda: device != "cpu")
    chosen = in_precision(Retriever.ready_made("default"), "auto", n_pictures)
    assert precision_of(chosen.image_encoder_) == expected


def test_a_collection_keeps_its_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "multiplies_bytes", lambda: True)
    plain = Retriever.ready_made("default")
    rounded = in_eight_bits(plain)
    for stored in (plain, rounded):
        assert in_precision(plain, "auto", 10_000, stored.fingerprint).fingerprint == stored.fingerprint
    assert in_precision(plain, "float32", 10_000, rounded.fingerprint) is plain
    histograms = Retriever(image_encoder=ColourEdgeHistograms())
    histograms.image_encoder_ = histograms.image_encoder
    with pytest.raises(InvalidInputError, match="no networks in eight bits"):
        in_precision(histograms, "int8", 10)


@pytest.mark.usefixtures("exact_sums")
def test_layers_round_as_they_say() -> None:
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(5, 3, 3, 3)).astype(np.float32)
    bias = rng.normal(size=5).astype(np.float32)
    pixels = rng.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    ranges = {"once": (-900.0, 900.0), "twice": (0.0, 600.0)}
    found = []
    for adds in (False, True):
        layers = int8_layers(np.zeros(3), ranges)
        made = layers.convolution("once", layers.pixels(8), kernel, bias, linear=True, padding=(1, 1))
        found.append(given_out(layers, layers.sum("twice", made, made) if adds else made, (5, 8, 8), pixels))
    once, twice = found
    exact = convolved(pixels.astype(np.float64) - 127, kernel, bias)
    # Half a step of the result, and half a step of each of 27 weights times a pixel.
    allowed = 1800 / 255 / 2 + 27 * 128 * np.abs(kernel).max() / 127 / 2
    assert np.abs(once - np.clip(exact, -900, 900)).max() <= allowed
    assert np.abs(twice - np.clip(2 * once, 0, 600)).max() <= 0.51 * 600 / 255


@pytest.mark.usefixtures("exact_sums")
def test_rounding_weights_does_not_move_the_mean() -> None:
    """For pictures of one colour, whose means say everything, only the rounding of the result is left."""
    rng = np.random.default_rng(1)
    kernel, bias = rng.normal(size=(40, 3, 1, 1)).astype(np.float32), np.zeros(40, dtype=np.float32)
    colour = np.array([250, 3, 240], dtype=np.uint8)
    layers = int8_layers(colour - np.float32(127), {"fine": (-6.0, 6.0)})
    made = layers.convolution("fine", layers.pixels(4), kernel, bias, linear=True)
    found = given_out(layers, made, (40, 4, 4), np.tile(colour, (1, 4, 4, 1)))[0, :, 0, 0]
    exact = kernel[:, :, 0, 0].astype(np.float64) @ (colour - 127.0)
    inside = np.abs(exact) < 6
    assert inside.any()
    # Half a step of the result and one of the bias.
    assert np.abs(found - exact)[inside].max() <= 12 / 255 / 2 + np.abs(kernel).max() / 127


def convolved(values: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    padded = np.pad(values, [(0, 0), (1, 1), (1, 1), (0, 0)])
    parts = (
        np.einsum("nrcd,od->norc", padded[:, row : row + 8, column : column + 8], kernel[:, :, row, column])
        for row in range(3)
        for column in range(3)
    )
    return bias[None, :, None, None] + sum(parts)
