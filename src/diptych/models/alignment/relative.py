"""Spaces of similarities: an item is how much it resembles each known pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray, map_rows, unit_rows
from diptych.errors import InvalidInputError
from diptych.models.alignment._aligned import AlignmentModel, SideRows, prepare
from diptych.models.base import SIDES, CrossModalModel, Grid, Side, Variants
from diptych.models.linear import centre, check_varies, column_deviations, column_means
from diptych.models.parameters import Count, Positive
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
class RelativeRepresentations(AlignmentModel):
    """Compare a picture's similarities to the paired pictures with a text's similarities to the paired texts.

        z(x) = max(0, s)^P on the k largest of s = u(x − m)·Aᵀ, else 0;    point = z/‖z‖

    Nothing is trained: a pair is one coordinate, and removing it removes what it taught. With ``power=1`` and all
    coordinates these are relative representations; sparse and sharpened (k = 800, P = 8) they are ASIF.

    Parameters
    ----------
    n_neighbors : int or None
        k above, the coordinates that stay; None keeps all, the negative ones too.
    power : float
        P above: the larger, the more the nearest pairs count.
    metric : str
        Name of the `Space`.

    References
    ----------
    Moschella et al., "Relative representations enable zero-shot latent space communication", ICLR 2023. Norelli et al.,
    "ASIF: coupled data turns unimodal models to multimodal without training", NeurIPS 2023. Negative similarities are
    cut off and rows are centred here; the public code of ASIF does neither.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import RelativeRepresentations
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(60, 5))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    >>> RelativeRepresentations(n_neighbors=None, power=1).fit(images[:20], texts[:20]).encode_texts(texts).shape
    (60, 20)
    """

    title: ClassVar[str] = "relative representations"
    when_to_use: ClassVar[str] = "Some hundred pairs, nothing to train, and pairs that may have to be taken out again."
    grid: ClassVar[Grid] = {"power": [1.0, 2.0, 4.0, 8.0]}
    variants: ClassVar[Variants] = {
        "relative representations": {"n_neighbors": None, "power": 1.0},
        "ASIF": {"n_neighbors": 800, "power": 8.0},
    }

    n_neighbors: Count | None = 800
    power: Positive = 4.0
    metric: str = "cosine"

    def _align(self, images: SideRows, texts: SideRows) -> None:
        self.image_anchors_, self.text_anchors_ = images.paired, texts.paired

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, anchors = self._of_side(side, "mean", "anchors")
        turned = anchors.T.astype(rows.dtype, copy=False)
        return map_rows(lambda block: self._relative(prepare(block, mean) @ turned), rows, turned.shape[1])

    def _relative(self, similarities: FloatArray) -> FloatArray:
        if self.n_neighbors is None and self.power == 1:
            return unit_rows(similarities)
        kept = np.maximum(similarities, 0)
        if self.n_neighbors is not None and self.n_neighbors < kept.shape[1]:
            # Ties at the last place are all kept, whatever the order of the pairs.
            least = np.partition(kept, -self.n_neighbors, axis=1)[:, -self.n_neighbors, None]
            kept = np.where(kept >= least, kept, 0)
        # Powers of what is far below the largest one would vanish: it becomes 1 first.
        peaks = kept.max(axis=1, keepdims=True, initial=0)
        return unit_rows((kept / np.where(peaks > 0, peaks, 1)) ** kept.dtype.type(self.power))


@dataclass(kw_only=True, eq=False, repr=False)
class LocalCKA(CrossModalModel):
    """Score a picture and a text by how much the two spaces would resemble each other if they were one more pair.

        score(x, y) = CKA of (A with x) and (B with y)

    for the linear centred kernel alignment over the pairs A, B. One more row changes each kernel norm by a term of rank
    one, so the score has a closed form in C = AᵀB, AᵀA and BᵀB, and is an inner product of two points with three more
    coordinates than the narrower side has features. No published code uses this; it costs p² for each score there. What
    is compared is the score less the CKA of the pairs, of which all scores of many pairs differ by little.

    Features are scaled by their standard deviations.

    Attributes
    ----------
    alignment_ : float
        The CKA of the pairs alone.

    References
    ----------
    Maniparambil et al., "Do vision and language encoders represent the world similarly?", CVPR 2024. The two towers are
    derived here.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LocalCKA
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(60, 5))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    >>> model = LocalCKA().fit(images[:20], texts[:20])
    >>> model.encode_images(images).shape
    (60, 8)
    """

    title: ClassVar[str] = "local CKA"
    when_to_use: ClassVar[str] = "Some hundred pairs and nothing to tune; a second opinion beside Procrustes."
    space: ClassVar[Space] = Space("dot")

    def _fit(self, images: FloatArray, texts: FloatArray, targets: object) -> None:
        if len(images) < 2:
            raise InvalidInputError("LocalCKA compares the pairs with each other: give at least 2")
        check_varies(images=images, texts=texts)
        self.image_mean_, self.text_mean_ = column_means(images), column_means(texts)
        self.image_scale_ = column_deviations(images, self.image_mean_)
        self.text_scale_ = column_deviations(texts, self.text_mean_)
        own = [self._scaled(side, rows) for side, rows in zip(SIDES, (images, texts), strict=True)]
        self.image_moment_, self.text_moment_, self.cross_ = (own[i].T @ own[j] for i, j in ((0, 0), (1, 1), (0, 1)))
        norms = [float(np.linalg.norm(moment)) for moment in (self.image_moment_, self.text_moment_, self.cross_)]
        self.alignment_ = norms[2] ** 2 / (norms[0] * norms[1])
        self.share_ = len(images) / (len(images) + 1)

    def _scaled(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, scale = self._of_side(side, "mean", "scale")
        return np.asarray(centre(rows.astype(np.float64, copy=False), mean) / scale)

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        width = min(self.cross_.shape) + 3
        return map_rows(lambda block: self._points(side, self._scaled(side, block)), rows, width)

    def _points(self, side: Side, rows: FloatArray) -> FloatArray:
        # HSIC of the pairs with (x, y) is ‖C‖² + 2α xCyᵀ + α²‖x‖²‖y‖², and each side's own norm likewise.
        (moment,) = self._of_side(side, "moment")
        squares = np.einsum("ij,ij->i", rows, rows)
        grown = 2 * self.share_ * np.einsum("ij,jk,ik->i", rows, moment, rows, optimize=True)
        grown += (self.share_ * squares) ** 2
        before = float(np.linalg.norm(moment))
        length = np.sqrt(before**2 + grown)
        # By how much the norm grows, as a share of what it becomes: computed without cancellation.
        growth = grown / (length + before) / length
        is_narrow = (self.cross_.shape[0] <= self.cross_.shape[1]) == (side == "image")
        turned = rows if is_narrow else rows @ (self.cross_ if side == "image" else self.cross_.T)
        if side == "image":
            edges = np.ones(len(rows)), growth, squares / length
            return np.column_stack([*edges, turned / length[:, None]])
        edges = -self.alignment_ * growth, self.alignment_ * (growth - 1), self.share_**2 * squares / length
        return np.column_stack([*edges, 2 * self.share_ * turned / length[:, None]])
