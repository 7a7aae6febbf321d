"""Texts into the space of a local joint model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.joint.joint_tower import JointTower
from diptych.encoders.joint.text_tower import TextTower
from diptych.encoders.transformer.tokenizer import batches_of_like_length, check_texts
from diptych.errors import InvalidInputError


class JointTextEncoder(JointTower):
    """The text tower of a joint model: rows of unit length whose dot product with pictures is their similarity.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Texts are cut to
    the length the model was trained with, 77 tokens for CLIP and 64 for SigLIP.

    Parameters
    ----------
    folder:
        The folder of the model; see :class:`JointModel` for the layouts. Nothing is ever downloaded.
    batch_size:
        Texts encoded at once.
    n_threads:
        Threads of the network; by default one for each processor.

    Examples
    --------
    >>> from diptych.encoders import JointTextEncoder
    >>> JointTextEncoder(folder="models/clip").get_params()
    {'batch_size': 32, 'folder': 'models/clip', 'n_threads': None}
    """

    speed_parameters: ClassVar[tuple[str, ...]] = ("batch_size", "n_threads")

    def __init__(self, *, folder: str, batch_size: int = 32, n_threads: int | None = None) -> None:
        self.folder = folder
        self.batch_size = batch_size
        self.n_threads = n_threads

    def fit(self, items: Sequence[str]) -> Self:
        """Check the parameters and the folder; there is nothing to learn from the texts."""
        del items
        self._check_parameters()
        self.model()
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of unit length per text."""
        check_texts(items)
        self._check_parameters()
        tower = self._tower()
        rows = tower.tokens(items)
        batches = list(batches_of_like_length(rows, self.batch_size))
        features = np.concatenate([tower.features([rows[index] for index in batch]) for batch in batches])
        order = np.argsort(np.concatenate(batches))
        return unit_rows(features[order])

    def __getstate__(self) -> dict[str, Any]:
        # Runtime sessions can be neither copied nor sent to another process; they are made again when needed.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _check_parameters(self) -> None:
        if self.batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {self.batch_size}")
        if self.n_threads is not None and self.n_threads < 1:
            raise InvalidInputError(f"n_threads must be at least 1, or None for all cores, got {self.n_threads}")

    def _tower(self) -> TextTower:
        key = (self.folder, self.n_threads)
        if getattr(self, "_running", (None,))[0] != key:
            self._running = (key, self.model().open_text_tower(self.n_threads))
        return self._running[1]
