from __future__ import annotations

from typing import ClassVar

from diptych.models.base import Grid, Need
from diptych.models.semantic.classifier_pair import ClassifierPairModel, Loss
from diptych.space import Space


class MarginalSM(ClassifierPairModel):
    """Marginal semantic matching: the probability that picture and text have the same label.

        s(a, b) = Σ_k Pr(k | a) Pr(k | b)

    under conditional independence. The two classifiers are those of `SM`; the whole difference is that the
    inner product is not normalised, so a confident answer outranks an undecided one. With several labels an item and
    ``loss="ovr"`` the score is the probability of sharing at least one, 1 − Π_k (1 − Pr(k | a) Pr(k | b)).

    Parameters
    ----------
    C : float
        Inverse strength of the ridge; Menon et al. (2015) chose 1 on Wikipedia and 10 on Pascal and TVGraz.
    loss : {"softmax", "ovr"}
        As in `SM`, but ``ovr`` probabilities are left as they are.
    max_iter, tol : int, float
        Of the optimiser, L-BFGS.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MarginalSM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + labels[:, None], rng.normal(size=(100, 4)) - labels[:, None]
    >>> scores = MarginalSM().fit(images, texts, labels).similarity(images, texts)
    >>> bool((scores >= 0).all() and (scores <= 1).all())
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = (
        "Labelled items; the strongest of the simple methods when the classes are the ones asked for."
    )
    title: ClassVar[str] = "marginal SM"
    grid: ClassVar[Grid] = {"C": [0.1, 1.0, 10.0, 100.0]}

    def __init__(self, *, C: float = 1.0, loss: Loss = "softmax", max_iter: int = 1000, tol: float = 1e-4) -> None:
        self.C = C
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol

    @property
    def space(self) -> Space:
        """Inner product, or ``noisy_or`` for independent probabilities of several labels."""
        several = self.loss == "ovr" and getattr(self, "multilabel_", False)
        return Space("noisy_or" if several else "dot")
