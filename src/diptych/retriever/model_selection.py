"""Which model a retriever learns, with which checkpoints, and how it stands beside the one it starts from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Never, Self, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import AP
from diptych.models import ContrastiveProjection, CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.models.base import Need
from diptych.space import Space

if TYPE_CHECKING:
    from diptych.retriever.base import RetrieverBase


def choose_model(features: Pairs) -> CrossModalModel:
    """Return the model that does best on a quarter of the pairs: CCA, its contrastive continuation, or by labels.

    The continuation is corrected by a bank of the training pairs, which costs nothing beside the fit.
    """
    from diptych.models import CCA, MarginalSM
    from diptych.protocols import evaluate_model

    train, held_out = features.split(0.25)
    candidates: list[CrossModalModel] = [
        Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2"),
        Preprocessed(model=QueryBankNormalized(model=ContrastiveProjection(temperature=0.03)), images="l2"),
    ]
    if features.labels is not None:
        candidates.append(Preprocessed(model=MarginalSM(C=3.0), images="l2"))
    rows = train.aligned()
    return max(candidates, key=lambda model: evaluate_model(model.fit(*rows), held_out).average(AP()))


class JoinedModel(CrossModalModel):
    """What was known before and what captions taught as one model, so that learning a little does not forget a lot.

    With scores s₀ of the model before and s₁ of the learned one, and their deviations σ₀ and σ₁ on the pairs,

        s(x, y) = (1 − λ) s₀(x, y)/σ₀ + λ s₁(x, y)/σ₁.

    Corrections of scores by a bank (`QueryBankNormalized`) stay what they are: those of the answers, not of the query,
    so that words for nothing do not come nearer.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA, PLS
    >>> from diptych.retriever.model_selection import JoinedModel
    >>> rng = np.random.default_rng(0)
    >>> images, texts = rng.normal(size=(60, 5)), rng.normal(size=(60, 4))
    >>> parts = [CCA(n_components=3).fit(images, texts), PLS(n_components=3).fit(images, texts)]
    >>> JoinedModel.of(*parts, images, texts).similarity(images[:2], texts[:3]).shape
    (2, 3)
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "Beside a model that is to keep what it knows."
    space = Space("corrected")

    kept_: CrossModalModel
    learned_: CrossModalModel
    factors_: FloatArray

    @classmethod
    def of(
        cls, kept: CrossModalModel, learned: CrossModalModel, images: FloatArray, texts: FloatArray, share: float = 0.2
    ) -> Self:
        """Join two fitted models of the same features, of which some are given; ``share`` is λ above."""
        from diptych.models.fusion import score_deviation

        made = cls()
        made.kept_, made.learned_ = kept, learned
        made.n_pairs_ = max(kept.n_pairs_, learned.n_pairs_)
        made.n_image_features_, made.n_text_features_ = kept.n_image_features_, kept.n_text_features_
        deviations = [score_deviation(part, images, texts) for part in (kept, learned)]
        made.factors_ = np.array([1 - share, share]) / deviations
        return made

    def _learn(self, images: FloatArray, texts: FloatArray, labels: object) -> Never:
        raise InvalidInputError("models are joined when they are fitted: call JoinedModel.of(kept, learned, ...)")

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self._points([part.encode_images(images) for part in (self.kept_, self.learned_)], side=1)

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return self._points([part.encode_texts(texts) for part in (self.kept_, self.learned_)], side=-1)

    def _points(self, parts: Sequence[AnyArray], side: int) -> AnyArray:
        from diptych.models.fusion.score_fusion import LinearForm

        vectors, taken = [], np.zeros((len(parts[0]), 1))
        for model, points, factor in zip((self.kept_, self.learned_), parts, self.factors_, strict=True):
            if model.space.name == "corrected":
                vectors.append(np.sqrt(factor) * points[:, :-2])
                taken = taken + factor * points[:, -2:-1]
            else:
                form = LinearForm.of(model.space, type(model).__name__)
                vectors.append(np.sqrt(factor) * (form.images(points) if side > 0 else form.texts(points)))
        return np.hstack([*vectors, taken, np.full_like(taken, side)]).astype(parts[0].dtype)


_SAMPLED_ROWS = 400


def can_join(before: RetrieverBase, new: RetrieverBase) -> bool:
    """Return True if what is learned can stand beside what was known: same encoders, inner products for scores."""
    from diptych.models.fusion.score_fusion import LinearForm

    is_same = before.image_fingerprint == new.image_fingerprint and before.text_fingerprint == new.text_fingerprint
    try:
        LinearForm.of(_known_before(before).space, before.name)
    except InvalidInputError:
        return False
    return is_same


def joined(before: RetrieverBase, learned: CrossModalModel, features: Pairs) -> JoinedModel:
    """Return what was known before beside what was learned; nothing is learned on top of what was learned before."""
    images, texts, _ = features.aligned()
    sampled = slice(0, None, max(1, len(images) // _SAMPLED_ROWS))
    sample = np.asarray(images)[sampled], np.asarray(texts)[sampled]
    return JoinedModel.of(_known_before(before), learned, *sample)


def _known_before(retriever: RetrieverBase) -> CrossModalModel:
    return retriever.model_.kept_ if isinstance(retriever.model_, JoinedModel) else retriever.model_


def learned_part(model: CrossModalModel) -> CrossModalModel:
    """Return what captions taught."""
    return model.learned_ if isinstance(model, JoinedModel) else model


def model_beside() -> CrossModalModel:
    """Return the model of captions that stands beside what was known before: it is quick, and corrects no query."""
    from diptych.models import CCA

    return Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2")


_Model = TypeVar("_Model", bound=CrossModalModel)


@contextmanager
def separate_checkpoint(model: _Model, part: str) -> Iterator[_Model]:
    """Give an unfitted copy of ``model`` whose checkpoints, while it is fitted, lie in the folder ``part`` of its own.

    A retriever learns from most pairs and then from all: neither training may take up the other's state.

    >>> from diptych.models import LDSP
    >>> with separate_checkpoint(LDSP(checkpoint="kept"), "trial") as model:
    ...     during = model.checkpoint
    >>> during, model.checkpoint
    ('kept/trial', 'kept')
    """
    copied: _Model = clone(model)
    given = {name: value for name, value in copied.get_params().items() if value is not None}
    kept = {name: value for name, value in given.items() if name.rpartition("__")[2] == "checkpoint"}
    copied.set_params(**{name: (Path(value) / part).as_posix() for name, value in kept.items()})
    yield copied
    copied.set_params(**kept)
