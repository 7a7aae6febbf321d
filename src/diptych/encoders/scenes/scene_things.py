"""What can be true of a generated scene, and what of it a picture shows: its place, things, looks and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.arrays import AnyArray, FloatArray
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS, TEXTURES, SceneObject
from diptych.data.datasets.scenes.composition import SIZES
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture
from diptych.encoders.networks.onnx_graph import ConvolutionGraph
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.safetensors_weights import Weights

ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")
LARGEST_NUMBER = 4
SEVERAL = "several"
NUMBERS: tuple[str, ...] = (*(str(number) for number in range(1, LARGEST_NUMBER + 1)), SEVERAL)

# The looks by which things are told apart, and the pairs of looks whose things are counted together.
LOOKS: dict[str, tuple[str, ...]] = {
    "kind": CLASS_NAMES,
    "colour": tuple(COLOURS),
    "texture": TEXTURES,
    "size": tuple(SIZES),
    "row": ROWS,
    "column": COLUMNS,
}
PAIRED: tuple[tuple[str, str], ...] = (
    ("kind", "colour"),
    ("kind", "texture"),
    ("kind", "size"),
    ("kind", "row"),
    ("kind", "column"),
    ("colour", "texture"),
)
# How things may be counted: all of them, those of a kind, of a colour, of a kind and a colour.
COUNTED: tuple[tuple[str, ...], ...] = ((), ("kind",), ("colour",), ("kind", "colour"))
# Looks that may be those of most of what a scene shows.
PROMINENT: tuple[str, ...] = ("kind", "colour")

LENGTH = 8.0
"""The length of what a picture shows, made the same for all by one more coordinate at the end, which texts leave at 0.

No scene has as many as 64 facts. Pictures are given in units of it, so that two of them compare by the cosine, and
texts times it, so that a picture and a text compare by the share of what is asked for that is shown.
"""


def fact(*looks: str, number: str | None = None) -> str:
    """Return the name of the fact that there is such a thing, or that there are so many of them.

    >>> from diptych.encoders.scenes.scene_things import FACTS, fact
    >>> fact("car", "red"), fact("car", "red", number="2"), fact(number="3")
    ('a red car', '2 × red car', '3 × thing')
    >>> len(FACTS) == len(set(FACTS))
    True
    """
    thing = " ".join(reversed(looks)) or "thing"
    return f"a {thing}" if number is None else f"{number} × {thing}"


def main_fact(look: str) -> str:
    """Return the name of the fact that things of such a look fill most of the picture."""
    return f"mostly {look}"


def place_fact(background: str) -> str:
    """Return the name of the fact that a scene is at such a place."""
    return f"at: {background}"


def _values(looks: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(product(*(LOOKS[look] for look in looks)))


FACTS: tuple[str, ...] = (
    *(place_fact(background) for background in BACKGROUNDS),
    *(fact(value) for values in LOOKS.values() for value in values),
    *(fact(*values) for looks in PAIRED for values in _values(looks)),
    *(fact(*values, number=number) for looks in COUNTED for values in _values(looks) for number in NUMBERS),
    *(main_fact(value) for look in PROMINENT for value in LOOKS[look]),
)
WIDTH = len(FACTS) + 1
POSITIONS: dict[str, int] = {name: position for position, name in enumerate(FACTS)}

_WEIGHTS_FILE = Path(__file__).with_name("scene_network.safetensors")
_SIDE, _CELLS = 128, 16
_STRIDES = (2, 1, 2, 1, 2, 1, 1, 1)
_PIXEL_CENTRE, _PIXEL_SCALE = 127.5, 64.0
_WIDTHS = (1, len(CLASS_NAMES), len(COLOURS), len(TEXTURES), len(SIZES))
_N_CELL_VALUES = sum(_WIDTHS)
_AREAS = np.array(list(SIZES.values())) ** 2
# A count this far from a whole number, or a probability this far from 0 or 1, is as good as there: pictures that show
# the same then have the same features to the last bit, whatever the processor.
_DOUBT = 0.2


class SceneThings(ImageEncoder):
    """The facts that a picture of a generated scene shows, each from 0 (not so) to 1/8 (so), as rows of unit length.

    A small convolutional network, trained on 240,000 scenes that are in no data set or demonstration, says of each of
    16 × 16 cells whether the middle of a thing lies in it and how that thing looks. Summed over the cells, the
    probabilities are expected numbers of things of a kind, of a colour, of both, and so on; facts are read off them:
    there is a red car, there are two boats, the scene is at night. The weights (0.7 MB) are part of the package and run
    on ONNX Runtime. Use it with `SceneWords`, whose coordinates mean the same, and for generated scenes alone:
    photographs show it things that it has never seen. ``scripts/train_scene_network.py`` trains the network.

    Parameters
    ----------
    batch_size, n_threads:
        Pictures encoded at once, and threads (all cores); neither changes the features.

    Examples
    --------
    >>> from diptych.data.datasets.scenes import make_scene
    >>> from diptych.encoders import SceneThings
    >>> from diptych.encoders.scenes.scene_things import FACTS
    >>> shown = SceneThings().transform([make_scene(3).render(128)])[0]
    >>> [name for name, share in zip(FACTS, shown) if share > 0.1 and name.startswith("at")]
    ['at: snow']
    """

    learns: ClassVar[bool] = False

    def __init__(self, *, batch_size: int = 16, n_threads: int | None = None) -> None:
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    def n_features(self) -> int:
        """The number of facts, and one more coordinate that makes all rows of unit length."""
        return WIDTH

    @property
    def reading_side(self) -> int:
        """The side of the network's square in pixels."""
        return _SIDE

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file."""
        return Weights((_WEIGHTS_FILE,)).digest

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the network's square of RGB bytes."""
        return np.asarray(Image.fromarray(self.read(picture)).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC))

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the facts of prepared squares."""
        answers = self._open_network().run("features", {"pixels": np.ascontiguousarray(np.stack(prepared))})
        cells = answers[:, : _N_CELL_VALUES * _CELLS**2].reshape(len(answers), _N_CELL_VALUES, _CELLS**2)
        places = _softmax(answers[:, cells[0].size :])
        facts = np.stack([_facts(of_cells, place) for of_cells, place in zip(cells, places, strict=True)]) / LENGTH
        rest = np.sqrt(np.maximum(1 - (facts**2).sum(axis=1, keepdims=True), 0))
        return np.hstack([facts, rest]).astype(np.float32)

    def _open_network(self) -> Network:
        kept: tuple[int, Network] | None = vars(self).get("_network")
        if kept is None or kept[0] != self.threads:
            name = f"scene things {self.weights_digest} {self.revision}"
            kept = (self.threads, Network.written_once(name, ConvolutionGraph, _write_network, self.threads))
            self._network = kept
        return kept[1]


def _write_network(graph: ConvolutionGraph) -> None:
    """Write the network: input ``pixels``, output ``features``: the logits of all cells, then those of the places."""
    weights = Weights((_WEIGHTS_FILE,))
    values = graph.centred_pixels(_SIDE, (_PIXEL_CENTRE,) * 3)
    width = 0
    for number, stride in enumerate(_STRIDES):
        kernel, bias = weights[f"layers.{number}.kernel"], weights[f"layers.{number}.bias"]
        # The division by 64 is part of the first kernel.
        scaled = kernel / np.float32(_PIXEL_SCALE) if number == 0 else kernel
        new = graph.convolution(values, scaled, bias, stride=stride, padding=(1, 1))
        is_residual = stride == 1 and len(kernel) == width
        values, width = graph.node("Relu", graph.node("Add", new, values) if is_residual else new), len(kernel)
    cells = graph.convolution(values, weights["cells.kernel"], weights["cells.bias"])
    pooled = graph.node("Flatten", graph.node("GlobalAveragePool", values), axis=1)
    places = graph.affine(pooled, weights["place.kernel"].T, weights["place.bias"])
    joined = graph.node("Concat", graph.node("Flatten", cells, axis=1), places, axis=1)
    graph.output("features", joined, ("items", _N_CELL_VALUES * _CELLS**2 + len(BACKGROUNDS)))


def _facts(cells: FloatArray, places: FloatArray) -> FloatArray:
    """Return the facts of one picture from what its cells say and the probabilities of the places."""
    is_thing, *looks = np.split(cells.astype(np.float64), np.cumsum(_WIDTHS)[:-1])
    weight = 1 / (1 + np.exp(-is_thing[0]))
    names = ("kind", "colour", "texture", "size")
    shares = {name: _softmax(values.T) for name, values in zip(names, looks, strict=True)}
    shares |= {"row": _POSITIONS["row"], "column": _POSITIONS["column"]}
    counts: dict[tuple[str, ...], FloatArray] = {(): np.array([weight.sum()])}
    for look in LOOKS:
        counts[(look,)] = weight @ shares[look]
    for first, second in PAIRED:
        counts[(first, second)] = ((shares[first] * weight[:, None]).T @ shares[second]).ravel()
    area = weight * (shares["size"] @ _AREAS)
    return np.concatenate(
        [
            _surely(places),
            *(_surely(np.minimum(counts[(look,)], 1)) for look in LOOKS),
            *(_surely(np.minimum(counts[pair], 1)) for pair in PAIRED),
            *(_numbers(counts[looks]).ravel() for looks in COUNTED),
            *(area @ shares[look] / max(area.sum(), 1e-6) for look in PROMINENT),
        ]
    )


def _numbers(counts: FloatArray) -> FloatArray:
    """Return for each count how surely it is 1, 2, …, and how surely more than one."""
    exact = 1 - np.abs(counts[:, None] - np.arange(1, LARGEST_NUMBER + 1))
    return _surely(np.hstack([exact, counts[:, None] - 1]))


def _surely(shares: FloatArray) -> FloatArray:
    return np.asarray(np.clip((shares - _DOUBT) / (1 - 2 * _DOUBT), 0, 1))


def _softmax(logits: FloatArray) -> FloatArray:
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def _cell_positions() -> dict[str, FloatArray]:
    """Return which row and column of a picture each cell lies in, one-hot: (cells, 3) each."""
    middles = [(place + 0.5) / _CELLS for place in range(_CELLS)]
    things = [SceneObject("", "", "", "", x=x, y=y, extent=0) for y in middles for x in middles]
    return {
        "row": np.array([[thing.row == row for row in ROWS] for thing in things], dtype=np.float64),
        "column": np.array([[thing.column == column for column in COLUMNS] for thing in things], dtype=np.float64),
    }


_POSITIONS = _cell_positions()
