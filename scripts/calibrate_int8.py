"""Write the ranges within which eight-bit image networks compute: the extremes of each layer on calibration photos.

    python scripts/calibrate_int8.py [--photos N]

The photos are the first training photos of Flickr8k; nothing is learned from them but the ranges.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.data import load_dataset
from diptych.encoders import EfficientNetLite
from diptych.encoders.image.efficientnet_lite import RANGES_FILE, Convolution, FloatLayers, LiteWriter, lite_network
from diptych.encoders.networks.onnx_graph import NETWORK_FILE, ConvolutionGraph
from diptych.encoders.networks.onnx_network import Network

NETWORKS = tuple(f"{name}{ending}" for name in ("lite0", "lite1", "lite2") for ending in ("", "-captions"))
DIGITS = 5


class TappedLayers(FloatLayers):
    """Layers in float32 that also give out the least and the largest of their results."""

    def __init__(self, graph: ConvolutionGraph) -> None:
        super().__init__(graph)
        self.names: list[str] = []
        self._ends: list[str] = []

    def convolution(
        self, name: str, values: Any, weights: Convolution, *, stride: int, padding: tuple[int, int], linear: bool
    ) -> Any:
        """Add a convolution."""
        result = super().convolution(name, values, weights, stride=stride, padding=padding, linear=linear)
        return self._tapped(name, result)

    def sum(self, name: str, inner: Any, values: Any) -> Any:
        """Add a sum."""
        return self._tapped(name, super().sum(name, inner, values))

    def features(self, values: Any) -> None:
        """Give out the ends of all layers instead."""
        del values
        self._graph.output("ends", self._graph.node("Concat", *self._ends, axis=0), (len(self._ends),))

    def _tapped(self, name: str, value: str) -> str:
        self.names.append(name)
        for operator in ("ReduceMin", "ReduceMax"):
            self._ends.append(self._graph.reshape(self._graph.node(operator, value, keepdims=0), (1,)))
        return value


def layer_ranges(network: str, photos: Sequence[Any]) -> dict[str, tuple[float, float]]:
    """Return the extremes of each layer over all photos."""
    encoder = EfficientNetLite(network=network)
    with tempfile.TemporaryDirectory() as folder:
        with ConvolutionGraph(Path(folder)) as graph:
            layers = TappedLayers(graph)
            LiteWriter(layers, lite_network(network)).write()
        tapped = Network(Path(folder) / NETWORK_FILE)
    ends = np.stack([tapped.run("ends", {"pixels": encoder.prepare(photo)[None]}) for photo in photos])
    least, largest = ends[:, 0::2].min(axis=0), ends[:, 1::2].max(axis=0)
    return dict(zip(layers.names, zip(least.tolist(), largest.tolist(), strict=True), strict=True))


def main() -> None:
    """Calibrate every network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=128)
    n_photos = parser.parse_args().photos
    photos = load_dataset("flickr8k").train.images[:n_photos]
    with RANGES_FILE.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t", lineterminator="\n")
        lines.writerow(("network", "layer", "least", "largest"))
        for network in NETWORKS:
            for layer, ends in layer_ranges(network, photos).items():
                lines.writerow((network, layer, *(f"{end:.{DIGITS}g}" for end in ends)))
            print(f"{network}: ranges of {len(photos)} photos")


if __name__ == "__main__":
    main()
