"""The orthogonal map between two spaces that brings paired directions together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.alignment._aligned import DirectionModel, SideRows, cross_product
from diptych.models.base import Grid
from diptych.models.parameters import Count


@dataclass(kw_only=True, eq=False, repr=False)
class Procrustes(DirectionModel):
    """Orthogonal Procrustes: turn one space into the other, and change no angle.

        max over W of  tr(AᵀB Wᵀ),    WWᵀ = I or WᵀW = I

    for centred rows A, B of unit length. With AᵀB = UΣVᵀ the answer is W = UVᵀ, and the two towers are xU and yV. Only
    singular vectors that the pairs determine are kept. It has nothing to tune, so it is the floor of every comparison.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None keeps all that the pairs determine.
    principal_components : int or None
        Map each side to so many of its principal components first. Unpaired rows take part in finding them, and the
        directions of little variance, which few pairs cannot tell from noise, are left out.
    metric : str
        Name of the `Space`; ``dot`` compares in the larger of the two spaces, ``cosine`` in the common one.

    References
    ----------
    Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 1966.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import Procrustes
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(60, 5))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    >>> bool(Procrustes().fit(images[:20], texts[:20]).score(images[20:], texts[20:]) > 0.95)
    True
    """

    when_to_use: ClassVar[str] = "Twenty to some hundred pairs of strong frozen features; nothing to tune."
    grid: ClassVar[Grid] = {"principal_components": [None, 64, 256]}

    n_components: Count | None = None
    principal_components: Count | None = None
    metric: str = "cosine"

    def _align(self, images: SideRows, texts: SideRows) -> None:
        cross = cross_product(images.paired, texts.paired)
        if self.principal_components is None:
            self._set_map(cross, self.n_components)
            return
        axes = [principal_axes(side.all, self.principal_components) for side in (images, texts)]
        self._set_map(axes[0].T @ cross @ axes[1], self.n_components)
        self.image_projection_ = axes[0] @ self.image_projection_
        self.text_projection_ = axes[1] @ self.text_projection_


def principal_axes(rows: FloatArray, count: int) -> FloatArray:
    """Return the leading principal axes of rows as columns, fewer where the rows span fewer dimensions."""
    size = rows.shape[1]
    moment = cross_product(rows, rows) - len(rows) * np.outer(mean := rows.mean(axis=0, dtype=np.float64), mean)
    wanted = min(count, size, max(1, len(rows) - 1))
    return np.asarray(scipy.linalg.eigh(moment, subset_by_index=[size - wanted, size - 1])[1][:, ::-1])
