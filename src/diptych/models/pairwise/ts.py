from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.models.base import CrossModalModel, Grid, Need, Side, Variants
from diptych.models.semantic.semantic_matching import MarginalSM
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
class TS(CrossModalModel):
    """The trivial solution: what a classifier on each side reaches when items are found by their predicted class.

    Each item becomes its most probable class, a code of ⌈log₂K⌉ bits, and a query returns the items of its own class:
    a method that claims a finer space, or a better code, has to beat that on classes seen in training. Items of one
    class are tied, and all measures here count ties by their exact expectation.

    Parameters
    ----------
    classifier : CrossModalModel or None
        The method whose points are the probabilities of the classes, in the order of its ``classes_``; None is
        ``MarginalSM(C=10)``, two logistic regressions. With networks in their place this is deep-TS.
    rest : {"tied", "by_prob"}
        What follows the predicted class: everything else, tied, or the other classes in the order of their probability
        to the query. Liu et al. do not say; the second is what the authors of the idea do.

    Attributes
    ----------
    classes_ : array
        The classes, one coordinate each.

    References
    ----------
    Sablayrolles et al., "How should we evaluate supervised hashing?", ICASSP 2017. Liu et al., "A new evaluation
    protocol and benchmarking results for extendable cross-media retrieval", section III-D.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import TS
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> np.unique(TS().fit(images, texts, labels).similarity(images, texts))
    array([0., 1.])
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "As the bar for classes seen in training: a finer space or code has to do better."
    # The same values as for SM, as they must be to compare the two.
    grid: ClassVar[Grid] = {"classifier__C": [0.1, 1.0, 10.0, 100.0]}
    variants: ClassVar[Variants] = {"TS": {"classifier": MarginalSM()}}

    classifier: CrossModalModel | None = None
    rest: Literal["tied", "by_prob"] = "tied"

    @property
    def space(self) -> Space:
        """Inner product; for ``by_prob`` of the half in which the querying side keeps its probabilities."""
        if self.rest == "tied":
            return Space("dot")
        return Space("dot", split=len(self.classes_) if hasattr(self, "classes_") else None)

    def encode_labels(self, labels: ArrayLike) -> FloatArray:
        """Return the points of gallery items whose classes are known, for a gallery that was labelled for training.

        ``labels`` are one class per item, or a 0/1 matrix in the order of ``classes_``.
        """
        self._check_fitted()
        values = np.asarray(labels)
        known = np.asarray(values[:, None] == self.classes_ if values.ndim == 1 else values, dtype=np.float64)
        if known.shape[1] != len(self.classes_) or not known.any(axis=1).all():
            raise InvalidInputError(f"labels must be among the classes learned: {', '.join(map(str, self.classes_))}")
        return known if self.rest == "tied" else np.hstack([known, known])

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        self._targets(labels, len(images))
        classifier = self._default_classifier() if self.classifier is None else clone(self.classifier)
        self.classifier_ = classifier.fit(images, texts, labels)
        classes = getattr(self.classifier_, "classes_", None)
        if classes is None:
            name = type(classifier).__name__
            raise InvalidInputError(f"classifier must learn classes_, which {name} does not; use SM or MarginalSM")
        self.classes_ = classes

    def _default_classifier(self) -> CrossModalModel:
        return MarginalSM(C=10.0)

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        classifier, is_image = self.classifier_, side == "image"
        probabilities = classifier.encode_images(rows) if is_image else classifier.encode_texts(rows)
        decided = np.zeros_like(probabilities)
        decided[np.arange(len(decided)), probabilities.argmax(axis=1)] = 1
        if self.rest == "tied":
            return decided
        return np.hstack([probabilities, decided] if is_image else [decided, probabilities])
