"""The trivial solution with networks."""

from __future__ import annotations

from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.models.base import CrossModalModel, Grid
from diptych.models.neural.deep_sm import DeepSM
from diptych.models.pairwise.ts import TS


class DeepTS(TS):
    """The trivial solution on networks: items are found by the class that :class:`DeepSM` predicts for them.

    Like :class:`TS`, each item is a code of ⌈log₂K⌉ bits, its most probable class. Liu et al. (deep-TS) use it to show
    that a better classifier alone moves a table of seen classes, and that the same table says little about classes
    never seen.

    Parameters
    ----------
    classifier : CrossModalModel or None
        The method whose points are the probabilities of the classes; None is ``DeepSM()``.
    rest : {"tied", "by_prob"}
        What follows the predicted class, as in :class:`TS`.

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
    >>> from diptych.models import DeepSM, DeepTS
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = DeepTS(classifier=DeepSM(epochs=20)).fit(images, texts, labels)
    >>> np.unique(model.similarity(images, texts))
    array([0., 1.])
    """

    when_to_use: ClassVar[str] = "As the bar for deep methods on classes seen in training; trains on PyTorch."
    title: ClassVar[str] = "deep-TS"
    grid: ClassVar[Grid] = {"classifier": [DeepSM(dropout=0.2), DeepSM(dropout=0.5)]}
    command_name: ClassVar[str] = "deep-ts"

    def __init__(self, *, classifier: CrossModalModel | None = None, rest: Literal["tied", "by_prob"] = "tied") -> None:
        self.classifier = classifier
        self.rest = rest

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        self._targets(labels, len(images))
        classifier = DeepSM() if self.classifier is None else self.classifier
        inner = TS(classifier=classifier, rest=self.rest).fit(images, texts, labels)
        self.classifier_, self.classes_ = inner.classifier_, inner.classes_
