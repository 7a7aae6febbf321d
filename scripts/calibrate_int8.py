"""Write what image networks in eight bits need to know: range and means of the results of each layer.

    python scripts/calibrate_int8.py [--photos N]

The photos are the first training photos of Flickr8k. The captions of none of them, and no other photos, have a part.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from safetensors.numpy import save_file

from diptych.data import load_dataset
from diptych.encoders import EfficientNetLite
from diptych.encoders.image.lite_network import STATISTICS_FOLDER, FloatLayers, LiteWriter, lite_network

NETWORKS = tuple(f"{name}{ending}" for name in ("lite0", "lite1", "lite2") for ending in ("", "-captions"))
KEPT_OF_LINEAR = 0.75
"""Of the range of layers without ReLU6, whose extremes are rare: finer steps for the rest are worth more."""


class TappedLayers(FloatLayers):
    """Layers in float32 that give out the least, the largest and the means of their results instead of features."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def convolution(self, name: str, *values: Any, **attributes: Any) -> Any:
        """Add a convolution."""
        return self._tapped(name, super().convolution(name, *values, **attributes))

    def sum(self, name: str, inner: Any, values: Any) -> Any:
        """Add a sum."""
        return self._tapped(name, super().sum(name, inner, values))

    def features(self, values: Any) -> None:
        """Give out nothing more."""

    def _tapped(self, name: str, value: str) -> str:
        graph = self.graph
        self.names.append(name)
        graph.output(f"{name}.least", graph.node("ReduceMin", value, keepdims=0), ())
        graph.output(f"{name}.largest", graph.node("ReduceMax", value, keepdims=0), ())
        graph.output(f"{name}.means", graph.node("ReduceMean", value, graph.whole_numbers(0, 2, 3), keepdims=0), ("n",))
        return value


def layer_statistics(network: str, photos: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return range and means of each layer over all photos."""
    encoder = EfficientNetLite(network=network)
    layers = TappedLayers()
    LiteWriter(layers, lite_network(network)).write()
    tapped = onnxruntime.InferenceSession(layers.graph.content())
    outputs = [output.name for output in tapped.get_outputs()]
    squares = [encoder.prepare(photo)[None] for photo in photos]
    results = [dict(zip(outputs, tapped.run(outputs, {"pixels": square}), strict=True)) for square in squares]
    found = {"pixels.means": np.mean([square.mean(axis=(0, 1, 2)) for square in squares], axis=0) - 127}
    for name in layers.names:
        least = min(float(result[f"{name}.least"]) for result in results)
        largest = max(float(result[f"{name}.largest"]) for result in results)
        kept = KEPT_OF_LINEAR if least < 0 else 1.0
        found[f"{name}.range"] = np.array([least * kept, largest * kept])
        found[f"{name}.means"] = np.mean([result[f"{name}.means"] for result in results], axis=0)
    return {key: values.astype(np.float32 if key.endswith("range") else np.float16) for key, values in found.items()}


def main() -> None:
    """Calibrate every network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=128)
    n_photos = parser.parse_args().photos
    photos = load_dataset("flickr8k").train.images[:n_photos]
    STATISTICS_FOLDER.mkdir(exist_ok=True)
    for network in NETWORKS:
        save_file(layer_statistics(network, photos), STATISTICS_FOLDER / f"{network}.safetensors")
        print(f"{network}: statistics of {len(photos)} photos")


if __name__ == "__main__":
    main()
