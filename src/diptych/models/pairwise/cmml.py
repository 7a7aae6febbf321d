from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import Grid, LinearProjectionModel, Variants
from diptych.models.correlation.cca import CCA
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means
from diptych.models.pairwise._pairs import (
    AllPairs,
    PrincipalAxes,
    RowLoss,
    SampledPairs,
    distance_loss,
    matched_pairs,
    minimise,
)
from diptych.models.parameters import Count, NonNegative, Positive


@dataclass(kw_only=True, eq=False, repr=False)
class CMML(LinearProjectionModel):
    """Cross-modal metric learning: projections in which given pairs are closer than one, all others farther.

        min over L_a, L_b of  (1/m) Σᵢⱼ ℓ_β(zᵢⱼ (‖L_a aᵢ − L_b bⱼ‖² − 1)) + λ/2 (‖L_a‖² + ‖L_b‖²),
        ℓ_β(u) = log(1 + exp(βu))/β,    zᵢⱼ = +1 if i = j, else −1.

    The objective is not convex; it starts at CCA, scaled so that given pairs are at a mean squared distance of one
    half. The loss is that of pairwise constrained component analysis, by the same authors for one kind of data. That
    CMML uses just this loss, the threshold 1, β, the ridge and the start are assumptions of ours.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space; Menon et al. (2015) chose 10 on Wikipedia and Pascal and 40 on TVGraz.
    ratio : int or None
        Other texts for each picture (S: 10, 5 and 10 there), drawn at random; None takes all n² pairs.
    sharpness : float
        β above: the larger, the more the loss resembles a hinge.
    regularization : float
        λ above, for features rescaled to a mean square of one on each side.
    start_regularization : float
        Ridge of the CCA it starts from.
    metric : str
        Name of the `Space`; the loss is made for ``euclidean``, Menon et al. compared by ``cosine``.
    max_iter, tol, random_state
        As in `LogisticCrossProduct`.

    References
    ----------
    Mignon and Jurie, "CMML: a new metric learning approach for cross modal matching", ACCV 2012. Menon, Surian and
    Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 6.2.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CMML
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 3))
    >>> images = texts @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(100, 5))
    >>> model = CMML(n_components=3).fit(images[:60], texts[:60])
    >>> bool(model.score(images[60:], texts[60:]) > 0.5)
    True
    """

    when_to_use: ClassVar[str] = "Pairs without labels, when a distance is wanted rather than an angle."
    grid: ClassVar[Grid] = {"regularization": [0.03, 0.1]}
    variants: ClassVar[Variants] = {"CMML": {"metric": "cosine"}}

    n_components: Count = 10
    ratio: Count | None = 10
    sharpness: Positive = 3.0
    regularization: NonNegative = 1e-2
    start_regularization: NonNegative = 0.1
    metric: str = "euclidean"
    max_iter: Count = 300
    tol: Positive = 1e-4
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_varies(images=images, texts=texts)
        self.image_mean_, self.text_mean_ = column_means(images), column_means(texts)
        common = np.result_type(images, texts)
        image_rows = centre(images, self.image_mean_).astype(common, copy=False)
        text_rows = centre(texts, self.text_mean_).astype(common, copy=False)
        units = _root_mean_square(image_rows), _root_mean_square(text_rows)
        image_rows, text_rows = image_rows / common.type(units[0]), text_rows / common.type(units[1])
        image_map, text_map = self._minimise(image_rows, text_rows, *self._start(image_rows, text_rows))
        self.image_projection_, self.text_projection_ = image_map / units[0], text_map / units[1]

    def _start(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        cca = CCA(n_components=self.n_components, regularization=self.start_regularization, weight_power=0.0)
        cca.fit(images, texts)
        image_points, text_points = cca.encode_images(images), cca.encode_texts(texts)
        matched = float(((image_points - text_points) ** 2).sum(axis=1).mean())
        # Pairs that agree to the last digit would ask for an infinite scale.
        spread = float((image_points**2).sum(axis=1).mean() + (text_points**2).sum(axis=1).mean())
        scale = np.sqrt(0.5 / max(matched, spread / 100))
        missing = self.n_components - cca.image_projection_.shape[1]
        rng = np.random.default_rng([self.random_state, 1])
        maps = []
        for projection in (cca.image_projection_, cca.text_projection_):
            # Zero would be a saddle for components that CCA does not have.
            filling = rng.normal(scale=1e-2 * np.abs(projection).mean(), size=(len(projection), missing))
            maps.append(scale * np.hstack([projection, filling]))
        return maps[0], maps[1]

    def _minimise(
        self, images: FloatArray, texts: FloatArray, image_map: FloatArray, text_map: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        pairs, signs = matched_pairs(len(images), self.ratio, self.random_state)
        loss = distance_loss(signs, self.sharpness)
        sides = PrincipalAxes.of(images), PrincipalAxes.of(texts)
        # Along an axis the curvature grows with its energy; dividing by the root makes the problem rounder.
        scales = [1 / np.sqrt(side.energies + self.regularization)[:, None] for side in sides]
        starts = [
            side.basis.T @ start / scale
            for side, start, scale in zip(sides, (image_map, text_map), scales, strict=True)
        ]
        size = starts[0].size

        def maps(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
            parts = flat[:size].reshape(starts[0].shape), flat[size:].reshape(starts[1].shape)
            return scales[0] * parts[0], scales[1] * parts[1]

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            current = maps(flat)
            value, *gradients = evaluate_distances(sides[0].rows, sides[1].rows, *current, pairs, loss)
            value = value / pairs.count + self.regularization / 2 * sum(float((part**2).sum()) for part in current)
            slopes = [
                (scale * (gradient / pairs.count + self.regularization * part)).ravel()
                for scale, gradient, part in zip(scales, gradients, current, strict=True)
            ]
            return value, np.concatenate(slopes)

        start = np.concatenate([part.ravel() for part in starts])
        slope, hint = objective(start)[1], "raise regularization"
        solution = minimise(objective, start, slope=slope, tol=self.tol, max_iter=self.max_iter, hint=hint)
        image_map, text_map = maps(solution)
        return sides[0].basis @ image_map, sides[1].basis @ text_map


def evaluate_distances(
    images: FloatArray,
    texts: FloatArray,
    image_map: FloatArray,
    text_map: FloatArray,
    pairs: AllPairs | SampledPairs,
    loss: RowLoss,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the summed loss of the squared distances of all pairs, and its gradients in both projections.

    With derivatives G of the loss and points P = A·map, Q = B·map, the gradients are 2Aᵀ(diag(G1)P − GQ) and
    2Bᵀ(diag(Gᵀ1)Q − GᵀP).
    """
    image_points = images @ image_map.astype(images.dtype, copy=False)
    text_points = texts @ text_map.astype(texts.dtype, copy=False)
    image_ones, text_ones = np.ones((len(images), 1), images.dtype), np.ones((len(texts), 1), texts.dtype)
    # ‖p − q‖² = (−2p, ‖p‖², 1)·(q, 1, ‖q‖²): a squared distance is an inner product of longer points.
    left = np.hstack([-2 * image_points, (image_points**2).sum(axis=1, keepdims=True), image_ones])
    right = np.hstack([text_points, text_ones, (text_points**2).sum(axis=1, keepdims=True)])
    sums = pairs.reduce(left, right, loss)
    row_totals, column_totals = sums.by_left[:, -2, None], sums.by_right[:, -1, None]
    image_pull = row_totals * image_points - sums.by_left[:, :-2]
    text_pull = column_totals * text_points + sums.by_right[:, :-2] / 2
    return (
        sums.value,
        2 * (images.T @ image_pull.astype(images.dtype, copy=False)),
        2 * (texts.T @ text_pull.astype(texts.dtype, copy=False)),
    )


def _root_mean_square(rows: FloatArray) -> float:
    return float(np.sqrt((rows**2).mean(dtype=np.float64)))
