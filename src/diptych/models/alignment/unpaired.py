"""Methods that align two spaces without any pair, by their inner geometry; known pairs help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from diptych.arrays import FloatArray, row_blocks, unit_rows
from diptych.errors import InvalidInputError
from diptych.models.alignment._aligned import (
    AlignmentModel,
    DirectionModel,
    SideRows,
    cross_product,
    polar_factors,
    weighted_directions,
)
from diptych.models.alignment._matching import cross_of, matched_centres
from diptych.models.alignment.procrustes import principal_axes
from diptych.models.base import LinearProjectionModel, Need
from diptych.models.parameters import Count, NonNegative, Ridge

NEIGHBOURS = 50
SMOOTHING = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class UnpairedModel(AlignmentModel):
    """A method that clusters each side and matches the clusters.

    Parameters
    ----------
    n_centres, n_restarts : int
        Clusters of each side, and how often they are drawn anew.
    batch_rows : int
        Rows that are clustered, and used in each round.
    principal_components : int or None
        Work in so many principal components of each side; None keeps all features. Directions of little variance hold
        more noise than geometry, and cost most of the time.
    random_state : int
        Of clusters and draws.
    metric : str
        Name of the `Space`.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"unpaired"})

    n_centres: Count = 30
    n_restarts: Count = 30
    batch_rows: Count = 1000
    principal_components: Count | None = None
    random_state: int = 0
    metric: str = "cosine"

    def _align(self, images: SideRows, texts: SideRows) -> None:
        if self.principal_components is None:
            self._align_rows(images, texts)
            return
        axes = [principal_axes(side.all, self.principal_components) for side in (images, texts)]
        self._align_rows(*(side.turned(own) for side, own in zip((images, texts), axes, strict=True)))
        self.image_projection_ = axes[0] @ self.image_projection_
        self.text_projection_ = axes[1] @ self.text_projection_

    def _align_rows(self, images: SideRows, texts: SideRows) -> None:
        """Learn both projections from prepared rows."""
        raise NotImplementedError

    def _matched(self, images: SideRows, texts: SideRows) -> list[tuple[FloatArray, FloatArray]]:
        for name, side in (("images", images), ("texts", texts)):
            if len(side.all) < 2 * self.n_centres:
                raise InvalidInputError(
                    f"{type(self).__name__} clusters each side into {self.n_centres}: give at least "
                    f"{2 * self.n_centres} {name}, got {len(side.all)}, or lower n_centres"
                )
        return list(
            matched_centres(
                images,
                texts,
                n_centres=self.n_centres,
                n_restarts=self.n_restarts,
                batch_rows=self.batch_rows,
                random_state=self.random_state,
            )
        )


@dataclass(kw_only=True, eq=False, repr=False)
class WassersteinProcrustes(UnpairedModel, DirectionModel):
    """Find who belongs to whom and the turn between two spaces together, starting from matched clusters.

    Centres of both sides are matched by how alike their inner products are; their mean cross-product is a first map.
    Then, round after round, random rows are assigned one to one by the map (the Wasserstein step) and the orthogonal
    map nearest to them is taken (the Procrustes step). Pairs take part in the matching, and weigh as much as all
    assigned rows together; with pairs alone this is `Procrustes`.

    Without pairs nothing tells whether it worked: measure it on some pairs before it is used.

    Parameters
    ----------
    n_centres, n_restarts, batch_rows, principal_components, random_state, metric
        As in `UnpairedModel`.
    rounds : int
        Wasserstein and Procrustes steps.
    pair_weight : float
        What the pairs weigh, as a multiple of the assigned rows.

    References
    ----------
    Grave, Joulin and Berthet, "Unsupervised alignment of embeddings with Wasserstein Procrustes", AISTATS 2019, for the
    alternation. The start by matched centres, on images and texts: arXiv 2610.09411.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import WassersteinProcrustes
    >>> rng = np.random.default_rng(0)
    >>> texts = 3 * rng.exponential(size=(12, 6))[rng.integers(12, size=300)] + 0.3 * rng.normal(size=(300, 6))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    >>> model = WassersteinProcrustes(n_centres=10, n_restarts=5, rounds=10)
    >>> _ = model.fit(None, None, more_images=images[:150], more_texts=texts[150:])
    >>> bool(model.score(images, texts) > 0.1)
    True
    """

    title: ClassVar[str] = "Wasserstein Procrustes"
    when_to_use: ClassVar[str] = "No pair to twenty pairs, but thousands of pictures and texts that stand alone."

    rounds: Count = 30
    pair_weight: NonNegative = 1.0

    def _align_rows(self, images: SideRows, texts: SideRows) -> None:
        known = cross_product(images.paired, texts.paired) / max(1, len(images.paired)) * self.pair_weight
        if not (len(images.unpaired) and len(texts.unpaired)):
            self._set_map(known)
            return
        rng = np.random.default_rng(self.random_state)
        self.image_projection_, self.text_projection_ = polar_factors(cross_of(self._matched(images, texts)) + known)
        rows = images.all, texts.all
        size = min(self.batch_rows, *map(len, rows))
        for _ in range(self.rounds):
            image_rows, text_rows = (side[rng.choice(len(side), size, replace=False)] for side in rows)
            scores = (image_rows @ self.image_projection_) @ (text_rows @ self.text_projection_).T
            left, right = linear_sum_assignment(scores, maximize=True)
            self._set_map(cross_product(image_rows[left], text_rows[right]) / size + known)


@dataclass(kw_only=True, eq=False, repr=False)
class MiniVec2Vec(UnpairedModel, DirectionModel):
    """Match clusters, read every row as its similarities to them, and refine a linear map by nearest neighbours.

    Parameters
    ----------
    n_centres, n_restarts, batch_rows, principal_components, random_state, metric
        As in `UnpairedModel`.
    rounds : int
        Steps W ← W/2 + polar/2, each on ``batch_rows`` pictures and the mean of their 50 nearest texts.

    References
    ----------
    Dar, "mini-vec2vec: scaling universal geometry alignment with linear transformations", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MiniVec2Vec
    >>> rng = np.random.default_rng(0)
    >>> texts = 3 * rng.exponential(size=(12, 6))[rng.integers(12, size=300)] + 0.3 * rng.normal(size=(300, 6))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    >>> model = MiniVec2Vec(n_centres=10, n_restarts=5, rounds=10)
    >>> model.fit(None, None, more_images=images[:150], more_texts=texts[150:]).encode_images(images).shape
    (300, 6)
    """

    title: ClassVar[str] = "mini-vec2vec"
    when_to_use: ClassVar[str] = "As Wasserstein Procrustes, in less time; usually worse."

    n_centres: Count = 20
    rounds: Count = 50

    def _align_rows(self, images: SideRows, texts: SideRows) -> None:
        rng = np.random.default_rng(self.random_state)
        anchors = [np.concatenate(sides) for sides in zip(*self._matched(images, texts), strict=True)]
        image_rows, text_rows = images.all, texts.all
        read = [unit_rows(rows @ unit_rows(own).T) for rows, own in ((image_rows, anchors[0]), (text_rows, anchors[1]))]
        step = _polar(cross_product(image_rows, _mean_of_nearest(read[0], read[1], text_rows)))
        for _ in range(self.rounds):
            drawn = image_rows[rng.choice(len(image_rows), min(self.batch_rows, len(image_rows)), replace=False)]
            nearest = _mean_of_nearest(drawn @ step, text_rows, text_rows)
            step = SMOOTHING * step + (1 - SMOOTHING) * _polar(cross_product(drawn, nearest))
        left, singular, right = np.linalg.svd(step, full_matrices=False)
        # The map is not orthogonal: both sides share its singular values.
        self.image_projection_, self.text_projection_ = left * np.sqrt(singular), right.T * np.sqrt(singular)


@dataclass(kw_only=True, eq=False, repr=False)
class UnpairedCCA(UnpairedModel, LinearProjectionModel):
    """Canonical correlations of matched cluster centres, as if each couple of centres were a pair.

    Pairs weigh as much as all centres together; without unpaired rows they are all that is learned from.

    Parameters
    ----------
    n_centres, n_restarts, batch_rows, principal_components, random_state, metric
        As in `UnpairedModel`.
    n_components : int or None
        Dimensions of the common space.
    regularization : float or "auto"
        As in `CCA`. Hundreds of centres are few for more than a thousand features.

    References
    ----------
    arXiv 2610.09530, whose numbers of centres and ridge were not read: these are defaults of ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import UnpairedCCA
    >>> rng = np.random.default_rng(0)
    >>> texts = 3 * rng.exponential(size=(12, 6))[rng.integers(12, size=300)] + 0.3 * rng.normal(size=(300, 6))
    >>> images = texts @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    >>> model = UnpairedCCA(n_centres=10, n_restarts=5, n_components=4)
    >>> model.fit(None, None, more_images=images[:150], more_texts=texts[150:]).encode_texts(texts).shape
    (300, 4)
    """

    title: ClassVar[str] = "unpaired CCA"
    when_to_use: ClassVar[str] = "As Wasserstein Procrustes, where features of a side are strongly correlated."

    n_components: Count | None = None
    regularization: Ridge = "auto"

    def _align_rows(self, images: SideRows, texts: SideRows) -> None:
        parts = [[images.paired, texts.paired]] if len(images.paired) else []
        if len(images.unpaired) and len(texts.unpaired):
            parts.append([np.concatenate(sides) for sides in zip(*self._matched(images, texts), strict=True)])
        image, text, cross = (
            np.mean([cross_product(part[i], part[j]) / len(part[i]) for part in parts], axis=0)
            for i, j in ((0, 0), (1, 1), (0, 1))
        )
        n_rows = sum(len(part[0]) for part in parts)
        maps = weighted_directions(image, text, cross, n_rows, self.regularization, self.n_components)
        self.image_projection_, self.text_projection_ = maps


def _polar(cross: FloatArray) -> FloatArray:
    left, right = polar_factors(cross)
    return left @ right.T


def _mean_of_nearest(queries: FloatArray, keys: FloatArray, values: FloatArray) -> FloatArray:
    """Return for each query the mean of the values whose keys are nearest by inner product."""

    count = min(NEIGHBOURS, len(keys))
    found = np.empty((len(queries), values.shape[1]))
    for block in row_blocks(len(queries), 512):
        nearest = np.argpartition(-(queries[block] @ keys.T), count - 1, axis=1)[:, :count]
        found[block] = values[nearest].mean(axis=1, dtype=np.float64)
    return found
