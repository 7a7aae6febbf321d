from __future__ import annotations

from typing import ClassVar

from diptych.models.base import FromTask, Grid, Need
from diptych.models.discriminant._base import Alignment, GeneralizedMultiviewModel, class_means
from diptych.models.moments import LabelView, MomentModel, Moments


class GMLDA(MomentModel, GeneralizedMultiviewModel):
    """Generalised multiview LDA: classes far apart, members close together, both sides in the same places.

        max  v_aᵀS_a v_a + v_bᵀS_b v_b + 2α v_aᵀC v_b   subject to  v_aᵀD_a v_a + γ v_bᵀD_b v_b = 1

    S is the scatter between classes, D the scatter within them, C the alignment of class means (or of pairs). All come
    from class sums: S = Σ n_c m_c m_cᵀ and D = XᵀX − S. A row with several labels counts for each by its share.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None is the number of classes less one.
    alpha : float
        Weight of the alignment relative to its size beside S; the authors advise about 5 times that ratio. (Their
        printed value, 10, is absolute and belongs to their features.)
    alignment : {"class_means", "pairs"}
        What shall coincide; class means is what the authors recommend.
    energy : float
        Share of each side's variance that its principal components keep first.
    regularization : float
        Ridge on D relative to its mean diagonal; the authors' absolute 1e-6 means nothing on other scales.
    metric : str
        Name of the `Space`.

    References
    ----------
    Sharma, Kumar, Daume and Jacobs, "Generalized multiview analysis: a discriminative latent space", CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import GMLDA
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(GMLDA().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Labelled pairs when new classes may be asked for: a subspace, not a list of classes."
    label_view: ClassVar[LabelView] = "distribution"
    labelled_only: ClassVar[bool] = True
    # There are no more discriminant directions than classes.
    grid: ClassVar[Grid] = {"n_components": FromTask.CLASSES, "regularization": [0.1, 1.0], "alpha": [1.0, 25.0]}

    def __init__(
        self,
        *,
        n_components: int | None = None,
        alpha: float = 5.0,
        alignment: Alignment = "class_means",
        energy: float = 0.95,
        regularization: float = 1e-3,
        metric: str = "cosine",
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.alignment = alignment
        self.energy = energy
        self.regularization = regularization
        self.metric = metric

    def _fit_moments(self, sums: Moments) -> None:
        views = self._views(sums)
        between = [means.between() for means in class_means(sums, views)]
        within = [view.moment() - part for view, part in zip(views, between, strict=True)]
        self._place(sums, views, list(zip(between, within, strict=True)))
