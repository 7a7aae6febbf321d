"""Semantic matching: two classifiers, maybe after a correlation; their probabilities are compared or multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, Need, Variants
from diptych.models.correlation.cca import CCA
from diptych.models.parameters import Count, Positive
from diptych.models.semantic.classifier_pair import ClassifierPairModel, CorrelatedInputs, Loss, as_distribution
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
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

    C: Positive = 10.0
    loss: Loss = "softmax"
    metric: str = "pearson"
    max_iter: Count = 1000
    tol: Positive = 1e-4

    def _finish(self, probabilities: FloatArray) -> FloatArray:
        return as_distribution(probabilities)


@dataclass(kw_only=True, eq=False, repr=False)
class SCM(SM, CorrelatedInputs):
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


@dataclass(kw_only=True, eq=False, repr=False)
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

    C: Positive = 1.0
    loss: Loss = "softmax"
    max_iter: Count = 1000
    tol: Positive = 1e-4

    @property
    def space(self) -> Space:
        """Inner product, or ``noisy_or`` for independent probabilities of several labels."""
        several = self.loss == "ovr" and getattr(self, "multilabel_", False)
        return Space("noisy_or" if several else "dot")


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalSCM(MarginalSM, CorrelatedInputs):
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

    C: Positive = 10.0
