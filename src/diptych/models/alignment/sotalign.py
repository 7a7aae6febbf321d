"""A linear teacher from few pairs, and students that keep its transport plan on many unpaired rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.errors import InvalidInputError
from diptych.models.alignment._aligned import DirectionModel, SideRows, cross_product, weighted_directions
from diptych.models.base import Grid
from diptych.models.linear import through_unit
from diptych.models.optimisers import Adam
from diptych.models.pair_losses import sigmoid_slopes, sigmoid_start
from diptych.models.parameters import Count, NonNegative, Positive, Ridge

TEACHER_EPSILON = 0.01
STUDENT_EPSILON = 0.05
TEACHER_ROUNDS = 100
STUDENT_ROUNDS = 10
SCALE = 20.0


@dataclass(kw_only=True, eq=False, repr=False)
class SOTAlign(DirectionModel):
    """Learn two linear maps from few pairs, and let them keep on unpaired rows what a closed form says of these.

        sigmoid loss of the pairs + α · KL(P* ‖ P)

    P* and P are the entropic transport plans between a batch of unpaired pictures and one of unpaired texts, under the
    similarities of the teacher (a ridge CCA of the pairs) and of the students. The gradient of the divergence with
    respect to the similarities is (P − P*)/ε, with ε of the students. Both plans have margins 1/n, so that α means the
    same for every batch. Without unpaired rows the pairs alone are learned from.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space; fewer where a side has fewer features or there are fewer pairs.
    regularization : float or "auto"
        Ridge of the teacher, as in `CCA`.
    alpha : float
        Weight of the divergence.
    learning_rate : float
        The largest step of Adam, relative to features of unit variance.
    steps, batch_size : int
        Steps, and rows of each kind in a step.
    random_state : int
        Of batches.
    metric : str
        Name of the `Space`; the loss is made for cosine.

    References
    ----------
    SOTAlign, arXiv 2602.23353. Its theorem 5.1 prints the ε of the teacher where the students' belongs; weights and
    steps here are for hundreds of rows on a processor, not for tens of thousands.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SOTAlign
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(300, 5))
    >>> images = texts @ rng.normal(size=(5, 8)) + 0.1 * rng.normal(size=(300, 8))
    >>> model = SOTAlign(n_components=4, steps=20, batch_size=64)
    >>> _ = model.fit(images[:20], texts[:20], more_images=images[20:120], more_texts=texts[120:220])
    >>> bool(model.score(images[220:], texts[220:]) > 0.5)
    True
    """

    when_to_use: ClassVar[str] = "Some hundred to some thousand pairs, and many pictures and texts that stand alone."
    grid: ClassVar[Grid] = {"alpha": [0.1, 1.0, 10.0]}

    n_components: Count = 256
    regularization: Ridge = "auto"
    alpha: NonNegative = 10.0
    learning_rate: Positive = 1e-4
    steps: Count = 200
    batch_size: Count = 512
    random_state: int = 0
    metric: str = "cosine"

    def _align(self, images: SideRows, texts: SideRows) -> None:
        if len(images.paired) < 2:
            raise InvalidInputError(f"SOTAlign needs at least 2 pairs for its teacher, got {len(images.paired)}")
        rng = np.random.default_rng(self.random_state)
        teacher = self._teacher(images.paired, texts.paired)
        # Unit rows have features of variance 1/d: both factors are moved into the maps while they are learned.
        scales = [np.sqrt(side.paired.shape[1]) for side in (images, texts)]
        maps = [np.asarray(own / scale, dtype=np.float32) for own, scale in zip(teacher, scales, strict=True)]
        logit = sigmoid_start(SCALE, min(self.batch_size, len(images.paired)))
        plans = _plans(images.unpaired, texts.unpaired, teacher, self.batch_size, rng) if self.alpha else []
        adam = Adam([*maps, logit], self.learning_rate, self.steps)
        for step in range(self.steps):
            drawn = rng.permutation(len(images.paired))[: self.batch_size]
            sides = images.paired[drawn], texts.paired[drawn]
            gradients = _gradients(sides, maps, scales, partial(sigmoid_slopes, logit=logit))
            if plans:
                plan = plans[step % len(plans)]
                of_plan = _gradients(plan.sides, maps, scales, plan.slopes)
                for own, added in zip(gradients, of_plan, strict=False):
                    own += self.alpha * added
            adam.step(gradients)
            logit[0] = np.clip(logit[0], 0.0, np.log(100.0))
        self.image_projection_, self.text_projection_ = (
            own.astype(np.float64) * scale for own, scale in zip(maps, scales, strict=True)
        )

    def _teacher(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        image, text, cross = (
            cross_product(left, right) / len(left)
            for left, right in ((images, images), (texts, texts), (images, texts))
        )
        return weighted_directions(image, text, cross, len(images), self.regularization, self.n_components)


@dataclass
class _Plan:
    """A batch of unpaired rows, and the transport plan of the teacher between them."""

    sides: tuple[FloatArray, FloatArray]
    target: FloatArray
    potentials: tuple[FloatArray, FloatArray] | None = field(default=None)

    def slopes(self, cosines: FloatArray) -> tuple[FloatArray]:
        """Return the gradient of the divergence with respect to the students' cosines."""
        logs, self.potentials = transport_plan(cosines, STUDENT_EPSILON, STUDENT_ROUNDS, self.potentials)
        return ((np.exp(logs) - self.target) / STUDENT_EPSILON,)


def _gradients(
    sides: tuple[FloatArray, FloatArray],
    maps: list[FloatArray],
    scales: list[float],
    slopes_of: Callable[[FloatArray], tuple[FloatArray, ...]],
) -> list[FloatArray]:
    """Return the gradients of both maps, and what ``slopes_of`` the cosines returns beside their slopes."""
    rows = [side.astype(np.float32) * np.float32(scale) for side, scale in zip(sides, scales, strict=True)]
    raw = [side @ own for side, own in zip(rows, maps, strict=True)]
    unit = [unit_rows(points) for points in raw]
    slopes, *others = slopes_of(unit[0] @ unit[1].T)
    slopes = slopes.astype(np.float32)
    across = slopes @ unit[1], slopes.T @ unit[0]
    return [*(rows[i].T @ through_unit(raw[i], unit[i], across[i]) for i in (0, 1)), *others]


def _plans(
    images: FloatArray,
    texts: FloatArray,
    teacher: tuple[FloatArray, FloatArray],
    size: int,
    rng: np.random.Generator,
) -> list[_Plan]:
    """Cut unpaired rows of both sides into batches, and ask the teacher for the plan between each two."""
    count = min(len(images), len(texts)) // size or int(min(len(images), len(texts)) > 1)
    if not count:
        return []
    parts = [np.array_split(side[rng.permutation(len(side))[: count * size]], count) for side in (images, texts)]
    plans = []
    for sides in zip(*parts, strict=True):
        points = [unit_rows(rows @ own) for rows, own in zip(sides, teacher, strict=True)]
        logs, _ = transport_plan(points[0] @ points[1].T, TEACHER_EPSILON, TEACHER_ROUNDS)
        plans.append(_Plan(sides, np.exp(logs)))
    return plans


def transport_plan(
    similarities: FloatArray,
    epsilon: float,
    rounds: int,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the logarithm of the entropic transport plan between uniform margins, and its potentials.

    Sinkhorn's iteration on logarithms, ended by half a step of both sides, so that neither margin is favoured.
    """
    scaled = similarities / epsilon
    rows, columns = (-np.log(size) for size in scaled.shape)
    left, right = (np.zeros(size) for size in scaled.shape) if start is None else start
    for _ in range(rounds):
        left = rows - _log_sums(scaled + right)
        right = columns - _log_sums((scaled + left[:, None]).T)
    left = (left + rows - _log_sums(scaled + right)) / 2
    return scaled + left[:, None] + right, (left, right)


def _log_sums(rows: FloatArray) -> FloatArray:
    peaks = rows.max(axis=1)
    return np.asarray(np.log(np.exp(rows - peaks[:, None]).sum(axis=1)) + peaks)
