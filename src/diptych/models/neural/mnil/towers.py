"""The two networks and their maps, while they are trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from diptych.arrays import AnyArray, row_blocks
from diptych.models.neural.mnil.feature_map import FeatureMap, Normalization
from diptych.models.neural.mnil.feature_tower import FeatureTower
from diptych.models.neural.mnil.picture_tower import PictureTower
from diptych.models.neural.mnil.word_tower import WordTower
from diptych.models.neural.torch_package import torch_package

_BLOCK = 128


class Towers:
    """A picture and a text side that end in one space.

    ``crop`` is the side of the square of pixels that the picture side sees, None for all; ``mixed`` runs it in
    bfloat16 and ``compiled`` through PyTorch's compiler.
    """

    def __init__(
        self,
        image: PictureTower | FeatureTower,
        text: WordTower,
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
        self._features = self._torch.compile(image.features) if compiled else image.features

    def parameters(self) -> dict[str, Any]:
        """Return everything that is learned, by name."""
        parts = {"image": self.image, "text": self.text, "image_map": self.image_map, "text_map": self.text_map}
        return {f"{side}.{name}": tensor for side, part in parts.items() for name, tensor in part.parameters.items()}

    def buffers(self) -> dict[str, Any]:
        """Return what is measured along the way, or stays as it is, by name."""
        sides = {"image": self.image.buffers, "text": self.text.buffers}
        return {f"{side}.{name}": tensor for side, buffers in sides.items() for name, tensor in buffers.items()}

    def image_points(self, pictures: Any, corners: Any = None, mirrored: Any = None, *, training: bool = False) -> Any:
        """Return the points of pictures or features; without ``corners`` the middle is cut out."""
        if self._crop is not None and pictures.ndim == 4:
            pictures = self._cut(pictures, corners, mirrored)
        kind = self.device.partition(":")[0]
        with self._torch.autocast(kind, dtype=self._torch.bfloat16, enabled=self._mixed):
            features = self._features(pictures, training=training)
        return self.image_map.points(features.float())

    def text_points(self, codes: Any, lengths: Any, *, training: bool = False) -> Any:
        """Return the points of rows of word numbers."""
        return self.text_map.points(self.text.features(codes, lengths, training=training))

    def retract(self) -> None:
        """After a step, bring the maps back to where their normalisation wants them."""
        self.image_map.retract()
        self.text_map.retract()

    def encode_pictures(self, pictures: AnyArray) -> AnyArray:
        """Return the points of an array of pictures or features, on the device they were trained on."""
        return self._blocks(pictures, lambda rows: self.image_points(self._tensor(pictures[rows])))

    def encode_codes(self, codes: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of rows of word numbers, on the device they were trained on."""
        return self._blocks(
            codes, lambda rows: self.text_points(self._tensor(codes[rows]), self._tensor(lengths[rows]))
        )

    def image_arrays(self) -> dict[str, AnyArray]:
        """Return all that encoding pictures needs."""
        return {**self.image.arrays(), **self.image_map.arrays()}

    def text_arrays(self) -> dict[str, AnyArray]:
        """Return all that encoding word numbers needs."""
        return {**self.text.arrays(), **self.text_map.arrays()}

    def _cut(self, pictures: Any, corners: Any, mirrored: Any) -> Any:
        """Cut a square out of each picture where its corner is, and mirror those to be mirrored."""
        assert self._crop is not None
        margin = pictures.shape[1] - self._crop
        steps = self._torch.arange(self._crop, device=pictures.device)
        if corners is None:
            middle = margin // 2
            return pictures[:, middle : middle + self._crop, middle : middle + self._crop]
        across = self._torch.where(mirrored[:, None], self._crop - 1 - steps, steps)
        rows, columns = corners[:, :1] + steps, corners[:, 1:] + across
        numbers = self._torch.arange(len(pictures), device=pictures.device)
        return pictures[numbers[:, None, None], rows[:, :, None], columns[:, None, :]]

    def _tensor(self, values: AnyArray) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _blocks(self, rows: AnyArray, encode: Any) -> AnyArray:
        with self._torch.no_grad():
            parts = [encode(block).float().cpu().numpy() for block in row_blocks(len(rows), _BLOCK)]
        return np.concatenate(parts)
