from __future__ import annotations

from typing import ClassVar

from diptych.arrays import FloatArray
from diptych.models.base import Grid, Need
from diptych.models.semantic.classifier_pair import ClassifierPairModel, Loss, as_distribution


class SM(ClassifierPairModel):
    """Semantic matching: each side is described by the probabilities of the classes it may show.

    Two independent logistic regressions

        π(x)_j = exp(w_jᵀx + b_j) / Σ_k exp(w_kᵀx + b_k)

    map both sides to the same simplex of class probabilities, where `metric` compares them: abstraction in the sense of
    Costa Pereira et al. (2014). A person can read why two items match.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge, as in scikit-learn; λ = 1/(nC) in Menon et al. (2015), who chose 10.
    loss : {"softmax", "ovr"}
        ``softmax`` is eq. 8 of the paper; several labels in a row share its unit of probability evenly. ``ovr`` fits
        one binary regression a class and rescales the probabilities to sum to one, as Liblinear did for the published
        numbers.
    metric : str
        Name of the `Space`: ``pearson`` (NCc) did best in the paper, then ``cosine`` (NC), then ``l1``, ``euclidean``
        and ``kl``.
    max_iter, tol : int, float
        Of the optimiser, L-BFGS.

    References
    ----------
    Rasiwasia et al., "A new approach to cross-modal multimedia retrieval", ACM Multimedia 2010. Costa Pereira et al.,
    TPAMI 2014, section IV-B.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = SM().fit(images, texts, labels)
    >>> model.classes_.tolist()
    ['bird', 'boat']
    >>> round(model.score(images, texts, labels), 1)
    1.0
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "Labelled items, even without pairs between them; answers can be explained by classes."
    grid: ClassVar[Grid] = {"C": [0.1, 1.0, 10.0, 100.0]}

    def __init__(
        self,
        *,
        C: float = 10.0,
        loss: Loss = "softmax",
        metric: str = "pearson",
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.C = C
        self.loss = loss
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol

    def _finish(self, probabilities: FloatArray) -> FloatArray:
        return as_distribution(probabilities)
