"""Trained networks as ONNX Runtime runs them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError
from diptych.models.item_model import ItemSide
from diptych.models.neural.mnil.convolution_plan import ConvolutionPlan
from diptych.models.neural.mnil.feature_map import Normalization
from diptych.models.neural.mnil.pictures import square

Arrays = Mapping[str, AnyArray]

_AT_ONCE = 64


class TrainedNetworks:
    """Encodes with the arrays that a training left; a network is made when it is first asked.

    ``side`` is that of the squares that pictures are squeezed into, ``edge`` that of the middle which is looked at.
    ``arrays`` may lack a side.
    """

    def __init__(
        self,
        arrays: Mapping[ItemSide, Arrays],
        plan: ConvolutionPlan | None,
        normalization: Normalization,
        *,
        side: int,
        edge: int,
    ) -> None:
        self._arrays = arrays
        self._plan = plan
        self._normalization = normalization
        self._side = side
        self._edge = edge
        self._networks: dict[ItemSide, Any] = {}

    def features_to_points(self, images: Any) -> AnyArray:
        """Return the points of rows of an encoder's features."""
        rows = as_matrix(images, name="images", width=len(self._of("image")["mean"]))
        return self._run("image", len(rows), lambda block: {"features": rows[block].astype(np.float32)})

    def pictures_to_points(self, pictures: Sequence[Any] | AnyArray) -> AnyArray:
        """Return the points of pictures."""
        return self._run("image", len(pictures), lambda block: {"pixels": self._pixels(pictures, block)})

    def codes_to_points(self, codes: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of rows of word numbers."""
        counts = lengths.astype(np.int32)
        return self._run("text", len(codes), lambda block: {"codes": codes[block], "lengths": counts[block]})

    def write(self, side: ItemSide, folder: Path) -> None:
        """Write one network into ``folder``."""
        # The writer of networks takes a while to import.
        from diptych.models.neural.mnil.onnx_towers import write_image_tower, write_text_tower

        if side == "text":
            write_text_tower(folder, self._of("text"), self._normalization)
        else:
            write_image_tower(folder, self._plan, self._of("image"), self._edge, self._normalization)

    def _pixels(self, pictures: Sequence[Any] | AnyArray, block: slice) -> AnyArray:
        made = np.stack([square(pictures[row], self._side) for row in range(block.start, block.stop)])
        corner = (self._side - self._edge) // 2
        middle = slice(corner, corner + self._edge)
        return np.ascontiguousarray(made[:, middle, middle])

    def _run(self, side: ItemSide, n_items: int, inputs: Callable[[slice], dict[str, AnyArray]]) -> AnyArray:
        network = self._network(side)
        return np.concatenate([network.run("points", inputs(block)) for block in row_blocks(n_items, _AT_ONCE)])

    def _network(self, side: ItemSide) -> Any:
        from diptych.encoders.network.network import Network

        if side not in self._networks:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                self.write(side, Path(folder))
                self._networks[side] = Network(Path(folder) / "network.onnx")
        return self._networks[side]

    def _of(self, side: ItemSide) -> Arrays:
        if side not in self._arrays:
            raise InvalidInputError(f"this model was parted and holds no {side} side; use the whole model")
        return self._arrays[side]
