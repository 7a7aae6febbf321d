"""Methods that know their rows by sums alone, and these sums: taken in parts, merged, and solved once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import BLOCK_ROWS, AnyArray, FloatArray, as_matrix, row_blocks
from diptych.devices import Card, as_array, card_for
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel
from diptych.models.labels import Targets, weighted_sums
from diptych.models.linear import column_means, relative_offset

LabelView = Literal["indicator", "distribution", "unit"]


@dataclass(frozen=True)
class LabelSums:
    """Labels as a third view l of the rows: Σ l, Σ l lᵀ, and Σ l (x − mean)ᵀ of each side, one row per class.

    ``n_left_out`` counts rows without a label that are in none of the sums, those of the two sides included.
    """

    classes: AnyArray
    totals: FloatArray
    gram: FloatArray
    image: FloatArray
    text: FloatArray
    n_left_out: int = 0


@dataclass(frozen=True)
class Moments:
    """Means and centred second moments (sums over rows, not averages) of two aligned views, in float64.

    Moments of parts of the rows, merged, are the moments of all rows, however they are grouped: to rounding. Each part
    is summed about its own means and moved to the common ones, so that features far from the origin keep their digits.

    The precisions are the rounding units of the rows they were summed from: what lies below them is noise. For a method
    that only scales features, ``image`` and ``text`` hold the diagonals alone.

    >>> import numpy as np
    >>> from diptych.models import CCA
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 3))
    >>> images = texts @ rng.normal(size=(3, 5)) + rng.normal(size=(100, 5))
    >>> model = CCA(n_components=2)
    >>> sums = model.moments(images[:70], texts[:70]).merge(model.moments(images[70:], texts[70:]))
    >>> whole = CCA(n_components=2).fit(images, texts)
    >>> bool(np.allclose(model.fit_moments(sums).image_projection_, whole.image_projection_, rtol=1e-10))
    True
    """

    n_rows: int
    image_mean: FloatArray
    text_mean: FloatArray
    image: FloatArray
    text: FloatArray
    cross: FloatArray
    image_precision: float
    text_precision: float
    labels: LabelSums | None = None

    @property
    def precision(self) -> float:
        """The coarser of both precisions."""
        return max(self.image_precision, self.text_precision)

    @property
    def offset(self) -> float:
        """How far the rows lie from the origin in units of their spread: of the two sides the farther."""
        sides = ((self.image_mean, self.image), (self.text_mean, self.text))
        return max(relative_offset(mean, _diagonal(moment) / max(1, self.n_rows)) for mean, moment in sides)

    @property
    def has_covariances(self) -> bool:
        """Whether the moments within the sides are there, not their diagonals alone."""
        return self.image.ndim == 2

    @property
    def n_pairs(self) -> int:
        """How many rows there were, with those that have no label and were left out."""
        return self.n_rows + (0 if self.labels is None else self.labels.n_left_out)

    @property
    def known_labels(self) -> LabelSums:
        """The sums of labels, which must be there and hold at least one label."""
        if self.labels is None or not self.labels.totals.any():
            raise InvalidInputError("the method learns from labels, and these moments were summed without any")
        return self.labels

    def merge(self, other: Moments) -> Moments:
        """Return the moments of the rows of both (Chan, Golub and LeVeque, 1979)."""
        if self.cross.shape != other.cross.shape:
            raise InvalidInputError(
                f"moments of {self.cross.shape} and {other.cross.shape} features (images, texts) cannot be merged"
            )
        if self.has_covariances != other.has_covariances:
            raise InvalidInputError("moments of different methods cannot be merged; take all of them by one")
        n_rows = self.n_rows + other.n_rows
        # From either mean to the common one, as shares of the step between them.
        share = other.n_rows / max(1, n_rows)
        image_step, text_step = other.image_mean - self.image_mean, other.text_mean - self.text_mean
        weight = self.n_rows * share
        return Moments(
            n_rows,
            self.image_mean + share * image_step,
            self.text_mean + share * text_step,
            self.image + other.image + _square(image_step, weight, self.image),
            self.text + other.text + _square(text_step, weight, self.text),
            self.cross + other.cross + np.outer(weight * image_step, text_step),
            max(self.image_precision, other.image_precision),
            max(self.text_precision, other.text_precision),
            _merged_labels(self.labels, other.labels, share, image_step, text_step),
        )

    def about_origin(self) -> Moments:
        """Return the moments of the rows as they are, not of their deviations from the means."""
        image_mean, text_mean, labels = self.image_mean, self.text_mean, self.labels
        return replace(
            self,
            image_mean=np.zeros_like(image_mean),
            text_mean=np.zeros_like(text_mean),
            image=self.image + _square(image_mean, self.n_rows, self.image),
            text=self.text + _square(text_mean, self.n_rows, self.text),
            cross=self.cross + self.n_rows * np.outer(image_mean, text_mean),
            labels=labels
            and replace(
                labels,
                image=labels.image + np.outer(labels.totals, image_mean),
                text=labels.text + np.outer(labels.totals, text_mean),
            ),
        )

    def deviations(self) -> tuple[FloatArray, FloatArray]:
        """Return the standard deviation of each column of both sides, 0 for columns that differ by rounding alone."""
        return (
            _deviations(self.image, self.image_mean, self.n_rows, self.image_precision),
            _deviations(self.text, self.text_mean, self.n_rows, self.text_precision),
        )

    def check_varies(self) -> None:
        """Raise when all rows of a side are the same, which leaves nothing to correlate."""
        for name, deviations in zip(("images", "texts"), self.deviations(), strict=True):
            if not deviations.any():
                raise InvalidInputError(f"all rows of {name} are the same: there is nothing to correlate")


def _diagonal(moment: FloatArray) -> FloatArray:
    return moment if moment.ndim == 1 else np.diag(moment)


def _square(mean: FloatArray, weight: float, moment: FloatArray) -> FloatArray:
    """Return ``weight · mean meanᵀ``, or its diagonal where a moment is one."""
    return weight * mean**2 if moment.ndim == 1 else np.outer(weight * mean, mean)


def _deviations(moment: FloatArray, mean: FloatArray, n_rows: int, precision: float) -> FloatArray:
    # Of a column of equal numbers the moment may be a rounding below zero.
    deviation = np.sqrt(np.maximum(_diagonal(moment), 0) / max(1, n_rows))
    # The mean of equal numbers differs from them by the rounding of a sum.
    noise = max(8 * precision, BLOCK_ROWS * float(np.finfo(np.float64).eps))
    return np.where(deviation > noise * np.abs(mean), deviation, 0.0)


def _merged_labels(
    first: LabelSums | None, second: LabelSums | None, share: float, image_step: FloatArray, text_step: FloatArray
) -> LabelSums | None:
    if first is None or second is None:
        if first is not second:
            raise InvalidInputError("moments with labels and without cannot be merged")
        return None
    if not np.array_equal(first.classes, second.classes):
        raise InvalidInputError("moments of different classes cannot be merged; give all of them the same classes=")
    # Each side's sums are about its own mean, and the common one lies between: Σ l (own mean − common mean)ᵀ.
    moved = (1 - share) * second.totals - share * first.totals
    return LabelSums(
        first.classes,
        first.totals + second.totals,
        first.gram + second.gram,
        first.image + second.image + np.outer(moved, image_step),
        first.text + second.text + np.outer(moved, text_step),
        first.n_left_out + second.n_left_out,
    )


def moments(
    images: FloatArray,
    texts: FloatArray,
    targets: Targets | None = None,
    *,
    view: LabelView = "indicator",
    n_left_out: int = 0,
    covariances: bool = True,
) -> Moments:
    """Accumulate the moments of two aligned matrices without copying either, and of ``view`` of the labels.

    Rows are centred before they are multiplied, so that float32 keeps its digits far from the origin: about the mean of
    the first of them, which is near enough. What it is off the mean of all is taken out of the sums. Many rows are
    multiplied on a graphics card where there is one; the sums are the same to rounding.
    """
    first = slice(0, BLOCK_ROWS)
    image_shift, text_shift = (column_means(side[first]).astype(side.dtype) for side in (images, texts))
    widths = image_shift.size, text_shift.size
    within = widths[0] ** 2 + widths[1] ** 2 if covariances else sum(widths)
    card = card_for(len(images) * (within + widths[0] * widths[1]))
    blocks = _shifted_blocks(images, texts, image_shift, text_shift, card)
    sums = moments_of_blocks(blocks, *widths, center=True, card=card, covariances=covariances)
    image_mean, text_mean = sums.image_mean + image_shift, sums.text_mean + text_shift
    label_sums = None
    if targets is not None:
        labels: FloatArray = getattr(targets, view)
        label_sums = LabelSums(
            targets.classes,
            labels.sum(axis=0),
            labels.T @ labels,
            weighted_sums(images, image_mean, labels),
            weighted_sums(texts, text_mean, labels),
            n_left_out,
        )
    return replace(
        sums,
        image_mean=image_mean,
        text_mean=text_mean,
        image_precision=float(np.finfo(images.dtype).eps),
        text_precision=float(np.finfo(texts.dtype).eps),
        labels=label_sums,
    )


def _shifted_blocks(
    images: FloatArray, texts: FloatArray, image_shift: FloatArray, text_shift: FloatArray, card: Card | None
) -> Iterator[Any]:
    """Yield both sides less their shifts side by side, on the card or each block in the memory of the one before."""
    width = len(image_shift)
    if card is not None:
        moved = [card.tensor(shift) for shift in (image_shift, text_shift)]
        for block in row_blocks(len(images)):
            sides = zip((images[block], texts[block]), moved, strict=True)
            yield card.torch.cat([card.tensor(side) - shift for side, shift in sides], dim=1)
        return
    dtype = np.result_type(images, texts)
    room = np.empty((min(BLOCK_ROWS, len(images)), width + len(text_shift)), dtype=dtype)
    for block in row_blocks(len(images)):
        rows = room[: block.stop - block.start]
        np.subtract(images[block], image_shift, out=rows[:, :width])
        np.subtract(texts[block], text_shift, out=rows[:, width:])
        yield rows


def moments_of_blocks(
    blocks: Iterable[Any],
    image_width: int,
    text_width: int,
    *,
    center: bool,
    card: Card | None = None,
    covariances: bool = True,
) -> Moments:
    """Sum over blocks of rows, of which each has the features of its image and then those of its text, in one pass.

    Each block multiplies in its own precision, the sums are float64. With ``center`` the means are taken out of the
    sums afterwards, otherwise they are reported as zero. Given a ``card``, the blocks are tensors on it. The precision
    told is that of the sums, not of the rows. Without ``covariances`` only the diagonals of the moments within a side
    are summed.
    """
    zeros = np.zeros if card is None else card.zeros
    ones = np.ones if card is None else card.ones
    width = image_width + text_width
    totals, squares = zeros(width), zeros((width, width) if covariances else (width,))
    cross = zeros((image_width, text_width))
    n_rows, precision = 0, float(np.finfo(np.float64).eps)
    for rows in blocks:
        # Sums by BLAS: NumPy would take a twentieth of the time of the products.
        row = ones(len(rows), dtype=rows.dtype)
        if covariances:
            # One product with itself, of which half is computed, takes less time than one for each pair of sides.
            squares += rows.T @ rows
        else:
            squares += row @ rows**2
            cross += rows[:, :image_width].T @ rows[:, image_width:]
        n_rows += len(rows)
        if center:
            totals += row @ rows
    totals, squares, cross = map(as_array, (totals, squares, cross))
    sides = slice(image_width), slice(image_width, width)
    if covariances:
        image, text, cross = (squares[sides[i], sides[j]].copy() for i, j in ((0, 0), (1, 1), (0, 1)))
    else:
        image, text = (squares[side] for side in sides)
    image_mean, text_mean = (totals[side] / max(1, n_rows) for side in sides)
    image -= _square(image_mean, n_rows, image)
    text -= _square(text_mean, n_rows, text)
    cross -= np.outer(totals[sides[0]], text_mean)
    return Moments(n_rows, image_mean, text_mean, image, text, cross, precision, precision)


class MomentModel(CrossModalModel):
    """A method that knows its rows by their `Moments` alone, so that it can be fitted from parts of them.

    `fit_from_files` does that with files. A subclass writes ``_fit_moments`` and, where it has parameters to check,
    ``_check_parameters``. One that learns from labels says which view of them it wants: 0/1, shares that sum to one, or
    rows of unit length.
    """

    label_view: ClassVar[LabelView] = "indicator"
    labelled_only: ClassVar[bool] = False
    """Whether rows without a label are left out of all sums."""
    needs_covariances: ClassVar[bool] = True
    """Whether it looks at the moments within a side, and not at their diagonals alone."""

    def moments(
        self, images: ArrayLike, texts: ArrayLike, labels: ArrayLike | None = None, *, classes: ArrayLike | None = None
    ) -> Moments:
        """Return the sums of some aligned rows that this method learns from.

        ``classes`` are all classes that any part of the rows may have, sorted; without them they are those of
        ``labels``. With a label matrix they are the numbers of its columns.
        """
        image_rows, text_rows = as_matrix(images, name="images"), as_matrix(texts, name="texts")
        self._check_rows(image_rows, text_rows)
        return self._moments(image_rows, text_rows, self._targets_of(labels, len(image_rows), classes))

    def fit_moments(self, sums: Moments) -> Self:
        """Learn from the merged `moments` of all rows, as `fit` does from the rows themselves."""
        self._check_parameters()
        if self.needs_covariances and not sums.has_covariances:
            raise InvalidInputError(f"{type(self).__name__} needs covariances, which these moments lack; take its own")
        self._fit_moments(sums)
        self._finish_fit(sums.n_pairs, *sums.cross.shape)
        return self

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        self._fit_moments(self._moments(images, texts, targets))

    def _targets_of(self, labels: ArrayLike | None, n_rows: int, classes: ArrayLike | None) -> Targets | None:
        if classes is None or labels is None or "labels" not in self.needs:
            return self._targets(labels, n_rows)
        return Targets.from_labels(labels, n_rows, np.asarray(classes))

    def _moments(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> Moments:
        n_rows = len(images)
        if targets is not None and self.labelled_only:
            images, texts, targets = targets.with_labels_only(images, texts)
        left_out = n_rows - len(images)
        covariances = self.needs_covariances
        return moments(images, texts, targets, view=self.label_view, n_left_out=left_out, covariances=covariances)

    def _fit_moments(self, sums: Moments) -> None:
        raise NotImplementedError
