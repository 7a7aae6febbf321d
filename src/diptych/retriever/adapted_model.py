"""A model that was known before, fitted to a collection by its pictures and texts and by a model of its captions."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Never, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray, map_rows, unit_rows
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.models.base import SIDES, Need, Side
from diptych.models.fusion.score_fusion import LinearForm
from diptych.models.linear import column_means
from diptych.retriever.held_out_pairs import UnpairedRows
from diptych.space import Space

STRENGTH = 0.7
BANK_ROWS = 2000
NEAREST_OF_BANK = 20
SAMPLED_ROWS = 400


class AdaptedModel(CrossModalModel):
    """What was known before, centred on a collection and joined with what captions taught, so that little is forgotten.

    With points x, y of the model before, its scores s₀, those of the learned model s₁, and σ their deviations,

        s(x, y) = (1 − λ) s₀(x, y)/σ₀ + λ s₁(x, y)/σ₁.

    Where it is centred, s₀ is the inner product of the directions x − m, y − m' from the means of the collection's
    pictures and texts, corrected as by `QueryBankNormalized` with the bank of the model before and the collection's own
    rows. Neither needs pairs. Corrections are those of the answers, so that words for nothing do not come nearer.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.models import CCA, PLS
    >>> from diptych.retriever.adapted_model import AdaptedModel
    >>> rng = np.random.default_rng(0)
    >>> images, texts = rng.normal(size=(60, 5)), rng.normal(size=(60, 4))
    >>> kept, learned = (model.fit(images, texts) for model in (CCA(n_components=3), PLS(n_components=3)))
    >>> pairs = Pairs(images, texts)
    >>> model = AdaptedModel.of(kept, pairs, is_centred=True).joined(learned, 0.2, pairs)
    >>> model.similarity(images[:2], texts[:3]).shape
    (2, 3)
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "Beside a model that is to keep what it knows."
    is_method: ClassVar[bool] = False
    space = Space("corrected")

    kept_: CrossModalModel
    learned_: list[CrossModalModel]
    factors_: FloatArray
    share_: float
    image_mean_: FloatArray
    text_mean_: FloatArray
    image_bank_: AnyArray
    text_bank_: AnyArray

    @classmethod
    def of(
        cls, kept: CrossModalModel, pairs: Pairs, *, unpaired: UnpairedRows | None = None, is_centred: bool = False
    ) -> Self:
        """Return a fitted model of features that says what ``kept`` says, centred on the collection if asked to."""
        made = cls()
        made.kept_, made.learned_, made.share_, made.factors_ = kept, [], 0.0, np.array([1.0, 0.0])
        made.n_pairs_ = max(kept.n_pairs_, pairs.n_texts)
        made.n_image_features_, made.n_text_features_ = kept.n_image_features_, kept.n_text_features_
        if is_centred:
            made._centre(pairs, unpaired)
        return made

    def joined(self, learned: CrossModalModel, share: float, pairs: Pairs) -> Self:
        """Return this model beside one that was learned from some pairs; ``share`` is λ above."""
        rows = slice(0, None, max(1, pairs.n_texts // SAMPLED_ROWS))
        images, texts = np.asarray(pairs.images)[pairs.owners[rows]], np.asarray(pairs.texts)[rows]
        known = self._known("image", images)[0] @ self._known("text", texts)[0].T
        taught = _parts(learned, "image", images)[0] @ _parts(learned, "text", texts)[0].T
        deviations = [float(np.std(scores, dtype=np.float64)) or 1.0 for scores in (known, taught)]
        made = copy(self)
        made.learned_, made.share_ = [learned], share
        made.factors_ = np.array([1 - share, share]) / deviations
        return made

    @property
    def is_centred(self) -> bool:
        """Whether points are directions from the means of a collection."""
        return hasattr(self, "image_mean_")

    @property
    def description(self) -> str:
        """What was done with the model before, in words."""
        parts = ["centred on the collection's pictures and texts"] if self.is_centred else []
        if self.share_:
            parts.append(f"a model of the captions counts {self.share_:.0%}")
        return ", ".join(parts) or "nothing: as it was, it did best on captions that were held out"

    def _centre(self, pairs: Pairs, unpaired: UnpairedRows | None) -> None:
        """Take the means of the collection, and its rows into the bank."""
        for number, side in enumerate(SIDES):
            paired = pairs.images if side == "image" else pairs.texts
            rows = [np.asarray(paired), *([unpaired[number]] if unpaired is not None and len(unpaired[number]) else [])]
            vectors = np.concatenate([_parts(self.kept_, side, part)[0] for part in rows])
            mean = column_means(vectors).astype(vectors.dtype)
            before = getattr(self.kept_, f"{side}_bank_", np.zeros((0, len(mean)))).astype(vectors.dtype)
            own = vectors[np.random.default_rng(0).permutation(len(vectors))[:BANK_ROWS]]
            setattr(self, f"{side}_mean_", mean)
            setattr(self, f"{side}_bank_", unit_rows(np.concatenate([before, own]) - mean).astype(np.float16))

    def _learn(self, images: FloatArray, texts: FloatArray, labels: object) -> Never:
        raise InvalidInputError("models are joined when they are fitted: call AdaptedModel.of(kept, pairs)")

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        known, taken = self._known(side, rows)
        vectors = [np.sqrt(self.factors_[0]) * known]
        taken = self.factors_[0] * taken
        for model in self.learned_:
            own, corrections = _parts(model, side, rows)
            vectors.append(np.sqrt(self.factors_[1]) * own)
            taken = taken + self.factors_[1] * corrections
        return np.hstack([*vectors, taken, np.full_like(taken, 1 if side == "image" else -1)]).astype(rows.dtype)

    def _known(self, side: Side, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the vectors of what was known before, and the corrections of their scores."""
        vectors, taken = _parts(self.kept_, side, rows)
        if not self.is_centred:
            return vectors, taken
        vectors = unit_rows(vectors - getattr(self, f"{side}_mean_"))
        bank = (self.text_bank_ if side == "image" else self.image_bank_).astype(vectors.dtype)
        count = min(NEAREST_OF_BANK, len(bank))

        def corrections(block: FloatArray) -> FloatArray:
            nearest = np.partition(block @ bank.T, -count, axis=1)[:, -count:]
            return np.asarray(STRENGTH * nearest.mean(axis=1, keepdims=True))

        return vectors, map_rows(corrections, vectors, 1)


def _parts(model: CrossModalModel, side: Side, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors whose inner products are a model's scores, and the corrections of these."""
    points = model.encode_images(rows) if side == "image" else model.encode_texts(rows)
    if model.space.name == "corrected":
        return points[:, :-2], points[:, -2:-1]
    form = LinearForm.of(model.space, type(model).__name__)
    vectors = form.images(points) if side == "image" else form.texts(points)
    return vectors, np.zeros((len(vectors), 1), dtype=vectors.dtype)
