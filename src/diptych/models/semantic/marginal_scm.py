from __future__ import annotations

from typing import ClassVar

from diptych.models.base import CrossModalModel, FromTask, Grid, Need, Variants
from diptych.models.correlation.cca import CCA
from diptych.models.semantic.classifier_pair import CorrelatedInputs, Loss
from diptych.models.semantic.marginal_sm import MarginalSM


class MarginalSCM(CorrelatedInputs, MarginalSM):
    """Marginal semantic correlation matching: the probability of the same label, in a correlated subspace.

    `SCM`'s two steps with `MarginalSM`'s score, the inner product of the class probabilities.

    Parameters
    ----------
    correlation : CrossModalModel or None
        The correlation method; None is ``CCA()``. Menon et al. (2015) chose nine CCA components on Wikipedia.
    C, loss, max_iter, tol
        As in `MarginalSM`.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MarginalSCM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + labels[:, None], rng.normal(size=(100, 4)) - labels[:, None]
    >>> MarginalSCM().fit(images, texts, labels).space
    Space(name='dot', split=None)
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Pairs and labels together, when confident answers should come first."
    title: ClassVar[str] = "marginal SCM"
    grid: ClassVar[Grid] = {"correlation__n_components": FromTask.COMPONENTS, "C": [1.0, 10.0]}
    variants: ClassVar[Variants] = {"marginal SCM": {"correlation": CCA(weight_power=0.0, regularization=0.1)}}

    def __init__(
        self,
        *,
        correlation: CrossModalModel | None = None,
        C: float = 10.0,
        loss: Loss = "softmax",
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(C=C, loss=loss, max_iter=max_iter, tol=tol)
        self.correlation = correlation
