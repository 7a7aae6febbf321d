"""Matrix factorisation hashing with labels and a rotation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import solve

from diptych.arrays import FloatArray
from diptych.models.base import Need
from diptych.models.hashing.anchored_side import AnchoredSide
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.hashing.rbf_anchors import RbfAnchors
from diptych.models.hashing.rotated_factorisation import FactorWeights, RotatedFactorisation, unlabelled_system
from diptych.models.labels import Targets
from diptych.models.linear import check_varies
from diptych.models.parameters import check_count, check_number


class SCRATCH(HashingModel):
    """Factorise both sides and the labels through one latent row per pair, and rotate these towards binary codes.

        λ(‖Φ − VU₁‖² + ‖Ψ − VU₂‖²) + α‖L − VG‖² + μ(‖V − ΦW₁‖² + ‖V − ΨW₂‖²) + ‖B − VR‖² + γ(norms),
        B ∈ {−1, 1}, RᵀR = I

    Φ and Ψ are centred radial basis functions around random training rows of each side, L the 0/1 labels. Every block
    of variables has a closed form given the others (ridge regressions, a sign, an orthogonal Procrustes problem), so
    that the objective never rises and an iteration costs O(n·anchors·bits). Codes are sgn(φ(x)W₁R) and sgn(ψ(y)W₂R).

    The unified code of a pair is sgn(vR) with the latent row v that minimises the objective for this pair without its
    label, which a new item does not have, and without the rotation term, whose code is what is asked for.

    Parameters
    ----------
    n_bits : int
        Length of the codes; nothing limits it but the number of anchors.
    n_anchors : int
        Basis functions per side; where there are fewer pairs, every pair is one.
    reconstruction, label_weight, agreement, ridge : float
        λ, α, μ and γ.
    n_iter : int
        Rounds of all updates.
    seed : int
        Of the anchors and of the start.

    Attributes
    ----------
    objectives_ : array
        The objective after each round.

    References
    ----------
    Li, Chen, Zhang, Luo, Nie and Xu, "SCRATCH: a scalable discrete matrix factorization hashing for cross-modal
    retrieval", ACM Multimedia 2018. The weights are those of public code; the start is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SCRATCH
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels]
    >>> images = meaning @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(120, 8))
    >>> texts = meaning @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(120, 5))
    >>> model = SCRATCH(n_bits=8).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from many labelled pairs when straight hyperplanes are too simple."

    objectives_: FloatArray
    image_mean_: FloatArray
    image_scale_: float
    image_anchors_: FloatArray
    image_feature_mean_: FloatArray
    image_projection_: FloatArray
    image_pair_projection_: FloatArray
    text_mean_: FloatArray
    text_scale_: float
    text_anchors_: FloatArray
    text_feature_mean_: FloatArray
    text_projection_: FloatArray
    text_pair_projection_: FloatArray

    def __init__(
        self,
        *,
        n_bits: int = 16,
        n_anchors: int = 500,
        reconstruction: float = 0.5,
        label_weight: float = 500.0,
        agreement: float = 1000.0,
        ridge: float = 5.0,
        n_iter: int = 20,
        seed: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.reconstruction = reconstruction
        self.label_weight = label_weight
        self.agreement = agreement
        self.ridge = ridge
        self.n_iter = n_iter
        self.seed = seed

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        for name in ("reconstruction", "label_weight", "agreement", "ridge"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        check_count("n_anchors", self.n_anchors)
        check_count("n_iter", self.n_iter)
        check_varies(images, name="images")
        check_varies(texts, name="texts")
        sides = (
            AnchoredSide.of(images, self.n_anchors, self.ridge / self.agreement, self.seed),
            AnchoredSide.of(texts, self.n_anchors, self.ridge / self.agreement, self.seed),
        )
        weights = FactorWeights(self.reconstruction, self.label_weight, self.agreement, self.ridge)
        factors = RotatedFactorisation(sides, targets.indicator, weights, self.n_bits, self.seed)
        self.objectives_ = np.array([factors.update() for _ in range(self.n_iter)])
        self._keep(factors)

    def _keep(self, factors: RotatedFactorisation) -> None:
        bases, regressions, weights = factors.bases(), factors.regressions(), factors.weights
        # vR of a pair without label is linear in the features of its sides.
        to_code = solve(unlabelled_system(bases, weights), factors.rotation, assume_a="pos")
        views, joint = [], []
        for basis, regression in zip(bases, regressions, strict=True):
            views.append(regression @ factors.rotation)
            joint.append((weights.reconstruction * basis.T + weights.agreement * regression) @ to_code)
        self.image_projection_, self.text_projection_ = views
        self.image_pair_projection_, self.text_pair_projection_ = joint
        image, text = factors.sides
        self.image_mean_, self.text_mean_ = image.anchors.mean, text.anchors.mean
        self.image_scale_, self.text_scale_ = image.anchors.scale, text.anchors.scale
        self.image_anchors_, self.text_anchors_ = image.anchors.anchors, text.anchors.anchors
        self.image_feature_mean_, self.text_feature_mean_ = image.feature_mean, text.feature_mean

    def _decide_images(self, images: FloatArray) -> FloatArray:
        return self._project_images(images, self.image_projection_)

    def _decide_texts(self, texts: FloatArray) -> FloatArray:
        return self._project_texts(texts, self.text_projection_)

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        image_part = self._project_images(images, self.image_pair_projection_)
        return np.asarray(image_part + self._project_texts(texts, self.text_pair_projection_))

    def _project_images(self, images: FloatArray, projection: FloatArray) -> FloatArray:
        anchors = RbfAnchors(self.image_mean_, self.image_scale_, self.image_anchors_)
        return anchors.project(images, projection, self.image_feature_mean_ @ projection)

    def _project_texts(self, texts: FloatArray, projection: FloatArray) -> FloatArray:
        anchors = RbfAnchors(self.text_mean_, self.text_scale_, self.text_anchors_)
        return anchors.project(texts, projection, self.text_feature_mean_ @ projection)
