"""The two networks and their maps to the common space, while they are trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.models.neural._torch import copied_by_name, fill_by_name, torch_package
from diptych.models.neural.mnil._picture_tower import PictureTower

Normalization = Literal["cosine", "none", "code"]
SMALLEST_NORM = 1e-12
N_LAYERS = 2


class FeatureMap:
    """Maps features into the common space, on PyTorch.

    ``cosine`` scales points to unit length, ``none`` leaves them, and ``code`` does as the code the authors released:
    features of unit length, and a matrix with orthogonal rows and Frobenius norm 1 after every step.

    >>> chart = FeatureMap(5, 3, "cosine", rng=np.random.default_rng(0), device="cpu")
    >>> points = chart.points(chart.parameters["weight"].new_ones(2, 5))
    >>> points.norm(dim=1).round(decimals=4).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self, width: int, n_components: int, normalization: Normalization, *, rng: np.random.Generator, device: str
    ) -> None:
        self._torch = torch_package()
        self._normalization = normalization
        bound = np.sqrt(6 / (width + n_components))
        weight = rng.uniform(-bound, bound, size=(n_components, width)).astype(np.float32)
        self.parameters = {
            "weight": self._torch.from_numpy(weight).to(device).requires_grad_(),
            "bias": self._torch.zeros(n_components, device=device, requires_grad=True),
        }
        self.retract()

    def points(self, features: Any) -> Any:
        """Return the points of rows of features."""
        functional = self._torch.nn.functional
        if self._normalization == "code":
            features = functional.normalize(features, dim=1, eps=SMALLEST_NORM)
        points = functional.linear(features, self.parameters["weight"], self.parameters["bias"])
        return functional.normalize(points, dim=1, eps=SMALLEST_NORM) if self._normalization == "cosine" else points

    def retract(self) -> None:
        """After a step, bring the matrix back to where the normalisation wants it."""
        if self._normalization != "code":
            return
        with self._torch.no_grad():
            weight = self.parameters["weight"]
            orthogonal = self._torch.linalg.qr(weight.T).Q.T
            weight.copy_(orthogonal / orthogonal.norm())

    def arrays(self) -> dict[str, AnyArray]:
        """Return the matrix and the intercepts."""
        return copied_by_name({f"map.{name}": tensor for name, tensor in self.parameters.items()})


class FeatureTower:
    """Takes rows of features and brings them to zero mean and unit variance on average; learns a layer if it has one.

    ``hidden`` units that are cut off below zero, a share ``dropout`` of which is left out in training, come last.

    >>> tower = FeatureTower(np.array([1.0, 1.0]), 2.0, rng=np.random.default_rng(0), device="cpu")
    >>> tower.features(tower.tensor(np.array([[3.0, 1.0]], dtype=np.float32)))
    tensor([[1., 0.]])
    """

    def __init__(
        self,
        mean: FloatArray,
        scale: float,
        *,
        hidden: int = 0,
        dropout: float = 0.0,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self._torch = torch_package()
        self._device = device
        self._dropout = dropout
        self.width = hidden or len(mean)
        self.parameters: dict[str, Any] = {}
        if hidden:
            bound = np.sqrt(6 / len(mean))
            weight = rng.uniform(-bound, bound, size=(hidden, len(mean))).astype(np.float32)
            self.parameters = {
                "hidden.weight": self.tensor(weight).requires_grad_(),
                "hidden.bias": self._torch.zeros(hidden, device=device, requires_grad=True),
            }
        self.buffers = {
            "mean": self.tensor(mean.astype("float32")),
            "scale": self._torch.tensor([float(scale)], device=device),
        }

    def tensor(self, values: AnyArray) -> Any:
        """Return ``values`` where the tower is."""
        return self._torch.from_numpy(values).to(self._device)

    def features(self, rows: Any, *, training: bool = False) -> Any:
        """Return the rows, centred and scaled, or what the layer makes of them."""
        centred = (rows.float() - self.buffers["mean"]) / self.buffers["scale"]
        if not self.parameters:
            return centred
        functional = self._torch.nn.functional
        units = functional.linear(centred, self.parameters["hidden.weight"], self.parameters["hidden.bias"]).relu()
        return functional.dropout(units, self._dropout, training)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the mean, the scale as an array of one number, and the layer if there is one."""
        return copied_by_name({**self.buffers, **self.parameters})


class TextMemory:
    """Two layers of long short-term memory over vectors of words, and the mean over time, on PyTorch.

    Weights start uniform in ±1/√width, and forget gates open. ``unit_steps`` scales what the memory gives for each word
    to unit length before the mean. Which vectors are read is the subclass's.
    """

    def __init__(
        self,
        word_size: int,
        hidden_size: int,
        *,
        dropout: float,
        unit_steps: bool,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self._torch = torch_package()
        self._device = device
        self._unit_steps = unit_steps
        self.width = hidden_size
        # Made without numbers at first, because PyTorch would draw them from its global generator.
        memory = self._torch.nn.LSTM(word_size, hidden_size, N_LAYERS, batch_first=True, dropout=dropout, device="meta")
        self._memory = memory.to_empty(device=device)
        self.parameters: dict[str, Any] = dict(self._memory.named_parameters())
        self.buffers: dict[str, Any] = {}
        self._begin(rng)

    def tensor(self, values: AnyArray) -> Any:
        """Return ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def features(self, word_ids: Any, lengths: Any, *, training: bool = False) -> Any:
        """Return the mean over the words of each text; ``word_ids`` beyond a text's length do not count."""
        self._memory.train(training)
        steps, _ = self._memory(self._vectors(word_ids))
        if self._unit_steps:
            steps = self._torch.nn.functional.normalize(steps, dim=2, eps=SMALLEST_NORM)
        counted = self._torch.arange(word_ids.shape[1], device=word_ids.device) < lengths[:, None]
        return (steps * counted[:, :, None]).sum(dim=1) / lengths[:, None]

    def arrays(self) -> dict[str, AnyArray]:
        """Return all arrays, those of the memory under PyTorch's names; gates come as input, forget, cell, output."""
        return copied_by_name({**self.buffers, **self.parameters})

    def _vectors(self, word_ids: Any) -> Any:
        raise NotImplementedError

    def _begin(self, rng: np.random.Generator) -> None:
        bound = 1 / np.sqrt(self.width)
        for name, parameter in self._memory.named_parameters():
            values = rng.uniform(-bound, bound, size=tuple(parameter.shape)).astype(np.float32)
            if name.startswith("bias"):
                values[:] = 0
                # The two biases are added; one of them opens the forget gates.
                values[self.width : 2 * self.width] = 1.0 if name.startswith("bias_ih") else 0.0
            parameter.data.copy_(self.tensor(values))


class WordTower(TextMemory):
    """A memory over a table of word vectors that are its own; without ``train`` they stay as they are."""

    def __init__(self, words: FloatArray, hidden_size: int, *, train: bool = True, **options: Any) -> None:
        super().__init__(words.shape[1], hidden_size, **options)
        self._words = self.tensor(words).requires_grad_(train)
        vectors = {"words": self._words}
        self.parameters = {**(vectors if train else {}), **self.parameters}
        self.buffers = {} if train else vectors

    def _vectors(self, word_ids: Any) -> Any:
        return self._torch.nn.functional.embedding(word_ids, self._words)


class TokenTower(TextMemory):
    """A memory over vectors that an encoder gave each token of each text, which are looked up and not kept.

    They are divided by ``scale``, which is kept.
    """

    def __init__(self, vectors: AnyArray, scale: float, hidden_size: int, **options: Any) -> None:
        super().__init__(vectors.shape[1], hidden_size, **options)
        self._states = self.tensor(vectors)
        self.buffers["scale"] = self._torch.tensor([float(scale)], device=self._device)

    def _vectors(self, word_ids: Any) -> Any:
        return self._torch.nn.functional.embedding(word_ids, self._states).float() / self.buffers["scale"]


class Towers:
    """A picture and a text side that end in one space.

    ``crop`` is the side of the square of pixels that the picture side sees, None for all; ``mixed`` runs it in
    bfloat16 and ``compiled`` through PyTorch's compiler.
    """

    def __init__(
        self,
        image: PictureTower | FeatureTower,
        text: TextMemory,
        n_components: int,
        normalization: Normalization,
        *,
        rng: np.random.Generator,
        device: str,
        crop: int | None = None,
        mixed: bool = False,
        compiled: bool = False,
    ) -> None:
        self._torch = torch_package()
        self.image, self.text = image, text
        self.image_map = FeatureMap(image.width, n_components, normalization, rng=rng, device=device)
        self.text_map = FeatureMap(text.width, n_components, normalization, rng=rng, device=device)
        self.device = device
        self._crop = crop
        self._mixed = mixed
        self.compiled = compiled
        self._features = self._torch.compile(image.features) if compiled else image.features

    def parameters(self) -> dict[str, Any]:
        """Return everything that is learned, by name."""
        parts = {"image": self.image, "text": self.text, "image_map": self.image_map, "text_map": self.text_map}
        return {f"{side}.{name}": tensor for side, part in parts.items() for name, tensor in part.parameters.items()}

    def buffers(self) -> dict[str, Any]:
        """Return what is measured along the way, or stays as it is, by name."""
        sides = {"image": self.image.buffers, "text": self.text.buffers}
        return {f"{side}.{name}": tensor for side, buffers in sides.items() for name, tensor in buffers.items()}

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of everything that training changes, by name."""
        return copied_by_name({**self.parameters(), **self.buffers()})

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""
        fill_by_name({**self.parameters(), **self.buffers()}, state)

    def image_points(self, pictures: Any, corners: Any = None, mirrored: Any = None, *, training: bool = False) -> Any:
        """Return the points of pictures or features; without ``corners`` the middle is cut out."""
        if self._crop is not None and pictures.ndim == 4:
            pictures = self._cut(pictures, corners, mirrored)
        kind = self.device.partition(":")[0]
        with self._torch.autocast(kind, dtype=self._torch.bfloat16, enabled=self._mixed):
            features = self._features(pictures, training=training)
        return self.image_map.points(features.float())

    def text_points(self, word_ids: Any, lengths: Any, *, training: bool = False) -> Any:
        """Return the points of rows of word numbers."""
        return self.text_map.points(self.text.features(word_ids, lengths, training=training))

    def retract(self) -> None:
        """After a step, bring the maps back to where their normalisation wants them."""
        self.image_map.retract()
        self.text_map.retract()

    def encode_pictures(self, pictures: AnyArray) -> AnyArray:
        """Return the points of an array of pictures or features, on the device they were trained on."""
        return self._blocks(pictures, lambda rows: self.image_points(self._tensor(pictures[rows])))

    def encode_word_ids(self, word_ids: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of rows of word numbers, on the device they were trained on."""
        return self._blocks(
            word_ids, lambda rows: self.text_points(self._tensor(word_ids[rows]), self._tensor(lengths[rows]))
        )

    def _cut(self, pictures: Any, corners: Any, mirrored: Any) -> Any:
        """Cut a square out of each picture where its corner is, and mirror those to be mirrored."""
        assert self._crop is not None
        if corners is None:
            middle = (pictures.shape[1] - self._crop) // 2
            return pictures[:, middle : middle + self._crop, middle : middle + self._crop]
        steps = self._torch.arange(self._crop, device=pictures.device)
        across = self._torch.where(mirrored[:, None], self._crop - 1 - steps, steps)
        rows, columns = corners[:, :1] + steps, corners[:, 1:] + across
        numbers = self._torch.arange(len(pictures), device=pictures.device)
        return pictures[numbers[:, None, None], rows[:, :, None], columns[:, None, :]]

    def _tensor(self, values: AnyArray) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _blocks(self, rows: AnyArray, encode: Any) -> AnyArray:
        with self._torch.no_grad():
            parts = [encode(block).float().cpu().numpy() for block in row_blocks(len(rows), 128)]
        return np.concatenate(parts)
