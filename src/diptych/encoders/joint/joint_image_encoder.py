"""Pictures into the space of a local joint model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.pictures import Picture, read_picture
from diptych.encoders.joint.joint_folder import ImageTower
from diptych.encoders.joint.joint_tower import JointTower
from diptych.encoders.joint.picture_preparation import PicturePreparation


class JointImageEncoder(JointTower, ImageEncoder):
    """The image tower of a joint model: rows of unit length whose dot product with texts is their similarity.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Use it together
    with :class:`JointTextEncoder` on the same folder; :class:`JointModel` makes both.

    Parameters
    ----------
    folder:
        The folder of the model; see :class:`JointModel` for the layouts. Nothing is ever downloaded.
    batch_size, n_threads:
        As in :class:`ImageEncoder`.

    Examples
    --------
    >>> from diptych.encoders import JointImageEncoder
    >>> JointImageEncoder(folder="models/clip").get_params()
    {'batch_size': 16, 'folder': 'models/clip', 'n_threads': None}
    """

    def __init__(self, *, folder: str, batch_size: int = 16, n_threads: int | None = None) -> None:
        self.folder = folder
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return self._preparation().reading_side

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used, or the folder does not hold a whole model."""
        super().check_parameters()
        self._preparation()

    def prepare(self, picture: Picture) -> AnyArray:
        """Read one picture and resize, crop and normalise it as the model's configuration says."""
        return self._preparation().apply(read_picture(picture, shortest_side=self.reading_side))

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return one row of unit length for each prepared picture."""
        return unit_rows(self._tower()(np.stack(prepared)))

    def _preparation(self) -> PicturePreparation:
        if getattr(self, "_prepared_by", (None,))[0] != self.folder:
            self._prepared_by = (self.folder, self.model().preparation)
        return self._prepared_by[1]

    def _tower(self) -> ImageTower:
        key = (self.folder, self.threads)
        if getattr(self, "_running", (None,))[0] != key:
            self._running = (key, self.model().open_image_tower(self.threads))
        return self._running[1]
