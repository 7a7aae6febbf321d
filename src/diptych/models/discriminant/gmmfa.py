"""Generalised multiview marginal Fisher analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.models.base import Need
from diptych.models.discriminant.generalized_multiview import Alignment, GeneralizedMultiviewModel
from diptych.models.discriminant.neighbour_graphs import laplacian_moment, nearest_of_class, nearest_of_others
from diptych.models.discriminant.principal_view import PrincipalView
from diptych.models.labels import Targets
from diptych.models.parameters import check_choice, check_count


class GMMFA(GeneralizedMultiviewModel):
    """Generalised multiview marginal Fisher analysis: neighbours of one class together, near ones of others apart.

        max  v_aᵀS_a v_a + v_bᵀS_b v_b + 2α v_aᵀC v_b   subject to  v_aᵀD_a v_a + γ v_bᵀD_b v_b = 1

    D = Xᵀ(D_c − W_c)X, where W_c joins each row with its ``n_within`` nearest rows of its class, and
    S = Xᵀ(D_p − W_p)X, where W_p joins the ``n_between`` closest pairs of rows without a common label. Only the edges
    are kept; distances are compared block by block. Finding neighbours takes n² distances, so that beyond ``most_rows``
    the graphs are those of a random sample, and the cost stays linear in n.

    Parameters
    ----------
    n_components, alpha, alignment, energy, regularization, metric :
        As in `GMLDA`.
    n_within, n_between : int
        Neighbours in a class, and closest pairs between classes. 50 and 200 are the published setting (400 ordered
        pairs there).
    between : {"overall", "per_class"}
        Whether ``n_between`` pairs are taken from all, as in the authors' package, or for each class.
    most_rows : int or None
        How many rows the graphs may have; None never samples.
    random_state : int
        Seed of the sample.

    References
    ----------
    Sharma, Kumar, Daume and Jacobs, "Generalized multiview analysis: a discriminative latent space", CVPR 2012. Yan et
    al., "Graph embedding and extensions: a general framework for dimensionality reduction", TPAMI 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import GMMFA
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels]
    >>> images = meaning @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(120, 8))
    >>> texts = meaning @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(120, 5))
    >>> bool(GMMFA().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Labelled pairs whose classes are not single clouds; slower than GMLDA."

    def __init__(
        self,
        *,
        n_components: int | None = None,
        alpha: float = 5.0,
        alignment: Alignment = "class_means",
        energy: float = 0.95,
        regularization: float = 1e-3,
        n_within: int = 50,
        n_between: int = 200,
        between: Literal["overall", "per_class"] = "overall",
        most_rows: int | None = 10_000,
        random_state: int = 0,
        metric: str = "cosine",
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.alignment = alignment
        self.energy = energy
        self.regularization = regularization
        self.n_within = n_within
        self.n_between = n_between
        self.between = between
        self.most_rows = most_rows
        self.random_state = random_state
        self.metric = metric

    def _scatters(self, view: PrincipalView, targets: Targets) -> tuple[FloatArray, FloatArray]:
        check_count("n_within", self.n_within)
        check_count("n_between", self.n_between)
        check_choice("between", self.between, ("overall", "per_class"))
        view, belongs = self._sampled(view, targets.indicator.astype(bool))
        rows = view.reduced()
        apart = nearest_of_others(rows, belongs, self.n_between, per_class=self.between == "per_class")
        together = nearest_of_class(rows, belongs, self.n_within)
        return laplacian_moment(rows, apart), laplacian_moment(rows, together)

    def _sampled(self, view: PrincipalView, belongs: BoolArray) -> tuple[PrincipalView, BoolArray]:
        if self.most_rows is None or len(belongs) <= check_count("most_rows", self.most_rows):
            return view, belongs
        # The same rows on both sides.
        chosen = np.random.default_rng(self.random_state).permutation(len(belongs))[: self.most_rows]
        return replace(view, rows=view.rows[np.sort(chosen)]), belongs[np.sort(chosen)]
