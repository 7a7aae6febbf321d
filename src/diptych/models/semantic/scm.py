from __future__ import annotations

from typing import ClassVar

from diptych.models.base import CrossModalModel, FromTask, Grid, Need, Variants
from diptych.models.correlation.cca import CCA
from diptych.models.semantic.classifier_pair import CorrelatedInputs, Loss
from diptych.models.semantic.sm import SM


class SCM(CorrelatedInputs, SM):
    """Semantic correlation matching: correlation first, then abstraction.

    A correlation method finds a common subspace from the pairs, which removes what one side alone shows; two logistic
    regressions then map its points to class probabilities, which are compared as in `SM`.

    Parameters
    ----------
    correlation : CrossModalModel or None
        The correlation method, any model that learns from pairs; None is ``CCA()``. Costa Pereira et al. (2014) use
        `KCCA`, Menon et al. (2015) use `CCA` with nine components.
    C, loss, metric, max_iter, tol
        As in `SM`. The points of a subspace have unit variance where features may have any, so other C suit.

    References
    ----------
    Rasiwasia et al., ACM Multimedia 2010. Costa Pereira et al., TPAMI 2014, section IV-C.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA, SCM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> model = SCM(correlation=CCA(n_components=2)).fit(images, texts, labels)
    >>> round(model.score(images, texts, labels), 1)
    1.0
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Pairs and labels together: the method of choice of its paper, robust on small data."
    grid: ClassVar[Grid] = {"correlation__n_components": FromTask.COMPONENTS, "C": [1.0, 10.0]}
    variants: ClassVar[Variants] = {"SCM": {"correlation": CCA(weight_power=0.0, regularization=0.1)}}

    def __init__(
        self,
        *,
        correlation: CrossModalModel | None = None,
        C: float = 10.0,
        loss: Loss = "softmax",
        metric: str = "pearson",
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(C=C, loss=loss, metric=metric, max_iter=max_iter, tol=tol)
        self.correlation = correlation
