"""Scores less what every query finds near: hubs stop answering everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.models.base import SIDES, CrossModalModel, Need, Side, Variants
from diptych.models.fusion.score_fusion import LinearForm
from diptych.models.parameters import Count, NonNegative, Positive
from diptych.space import Space

_SCORES_AT_ONCE = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class QueryBankNormalized(CrossModalModel):
    """A model whose scores are corrected by a bank of ordinary queries.

    In high dimensions a few pictures, the hubs, lie near every text, and answer whatever is asked. With unit or other
    points a(x) and b(y) of the inner model and banks of pictures A and texts B,

        s(x | y) = a(x)·b(y) − λ r(a(x), B),    s(y | x) = a(x)·b(y) − μ r(b(y), A)

    are the scores of a picture x for a text y and of a text for a picture, where r(p, Q) is the mean of the k largest
    p·q, q in Q: a picture that is close to many texts of the bank has to be closer still to the one that is asked. The
    correction is one more coordinate of a point in the space ``corrected``, so that an index serves it. Two pictures,
    or two texts, compare as in the inner model. With a ``sharpness`` β, r is the soft maximum (1/β) log Σ exp(β p·q):
    the order is then that of the inverted softmax.

    A bank needs no pairs: rows given as ``more_images`` and ``more_texts`` join it, and a model that learns from such
    rows is given them. ``variants`` are the corrections of the literature by their names. QB-Norm, which switches by
    query, is none of them: no index serves it in one search.

    NNN: Chowdhury et al., "Nearest neighbor normalization improves multimodal retrieval", EMNLP 2024, k and λ of their
    readme. CSLS: Conneau et al., "Word translation without parallel data", ICLR 2018. Inverted softmax: Smith et al.,
    "Offline bilingual word vectors, orthogonal transformations and the inverted softmax", ICLR 2017, with the β of
    Bogolin et al., "Cross modal retrieval with querybank normalisation", CVPR 2022, who put a bank in the place of the
    gallery. Use it around models without labels whose scores are inner products or cosines.

    Parameters
    ----------
    model : CrossModalModel
        What makes the points.
    strength : float
        λ above, of pictures; 0 leaves their scores alone.
    text_strength : float or None
        μ above, of texts; None is λ.
    n_nearest : int
        k above, at most as many as the bank has.
    sharpness : float or None
        β above; None takes the mean of the k largest.
    bank_size : int
        Pictures and texts kept of those that `fit` learns from, drawn at random.
    random_state : int
        Of the draw.

    Attributes
    ----------
    image_bank_, text_bank_ : arrays
        The points of the bank, in half precision: means of cosines need no more.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA, QueryBankNormalized
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(80, 4))
    >>> images, texts = meaning @ rng.normal(size=(4, 9)), meaning @ rng.normal(size=(4, 5))
    >>> model = QueryBankNormalized(model=CCA(n_components=4), n_nearest=5).fit(images, texts)
    >>> model.encode_images(images).shape
    (80, 6)
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "Around a model without labels: the same few answers no longer answer everything."
    is_method: ClassVar[bool] = False
    space = Space("corrected")
    takes_unpaired: ClassVar[bool] = True
    variants: ClassVar[Variants] = {
        "NNN": {"strength": 0.75, "n_nearest": 128},
        "CSLS": {"strength": 0.5, "n_nearest": 10},
        "inverted softmax": {"strength": 1.0, "sharpness": 20.0},
    }

    model: CrossModalModel
    strength: NonNegative = 0.7
    text_strength: NonNegative | None = None
    n_nearest: Count = 20
    sharpness: Positive | None = None
    bank_size: Count = 1500
    random_state: int = 0

    @classmethod
    def of(
        cls,
        model: CrossModalModel,
        images: ArrayLike,
        texts: ArrayLike,
        *,
        strength: float = 0.7,
        text_strength: float | None = None,
        n_nearest: int = 20,
    ) -> Self:
        """Return a fitted model with a bank of its own, given by features of pictures and of texts."""
        model._check_fitted()
        made = cls(model=clone(model), strength=strength, text_strength=text_strength, n_nearest=n_nearest)
        made._check_parameters()
        made._keep(model, images, texts)
        return made

    def fit(
        self,
        images: ArrayLike | None,
        texts: ArrayLike | None,
        labels: ArrayLike | None = None,
        *,
        more_images: ArrayLike | None = None,
        more_texts: ArrayLike | None = None,
    ) -> Self:
        """Fit the inner model, draw a bank from all rows of each side, and return the model itself."""
        alone = {"more_images": more_images, "more_texts": more_texts}
        if images is not None and texts is not None and more_images is None and more_texts is None:
            return super().fit(images, texts, labels)
        self._check_parameters()
        model = clone(self.model)
        learn: Callable[..., CrossModalModel] = model.fit
        learn(images, texts, labels, **(alone if model.takes_unpaired else {}))
        rng = np.random.default_rng(self.random_state)
        banks = []
        for parts in ((images, more_images), (texts, more_texts)):
            rows = np.concatenate([np.asarray(part) for part in parts if part is not None])
            banks.append(rows[rng.permutation(len(rows))[: self.bank_size]])
        self._keep(model, *banks)
        return self

    def _keep(self, model: CrossModalModel, images: ArrayLike, texts: ArrayLike) -> None:
        """Keep a fitted model and the points of a bank."""
        self.model_ = model
        self._finish_fit(model.n_pairs_, model.n_image_features_, model.n_text_features_)
        for side in SIDES:
            self._keep_names(side, getattr(model, f"{side}_feature_names_in_", None))
        self.image_bank_ = self._vectors("image", images).astype(np.float16)
        self.text_bank_ = self._vectors("text", texts).astype(np.float16)

    def familiarity(self, points: ArrayLike) -> FloatArray:
        """Return how near the points of texts are to the bank, a row for each text.

        For its texts and for its pictures: the largest cosine, the means of the 20 and of the 100 largest, the mean and
        the spread of all. What the bank has nothing like is strange to the model, whatever it finds for it.
        """
        vectors = np.asarray(points, dtype=np.float32)[:, :-2]
        columns = []
        for bank in (self.text_bank_, self.image_bank_):
            scores = np.sort(vectors @ bank.astype(np.float32).T, axis=1)[:, ::-1]
            nearest = [scores[:, :count].mean(axis=1) for count in (1, 20, 100)]
            columns += [*nearest, scores.mean(axis=1), scores.std(axis=1)]
        return np.column_stack(columns)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.model, CrossModalModel):
            raise InvalidInputError(f"model must be a model such as CCA(), got {self.model!r}")

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        self.model_ = clone(self.model).fit(images, texts, labels)
        chosen = np.random.default_rng(self.random_state).permutation(len(images))[: self.bank_size]
        self.image_bank_ = self._vectors("image", images[chosen]).astype(np.float16)
        self.text_bank_ = self._vectors("text", texts[chosen]).astype(np.float16)

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        vectors = self._vectors(side, rows)
        if side == "image":
            taken = self._correction(vectors, self.text_bank_, self.strength)
            return np.column_stack([vectors, taken, np.ones_like(taken)])
        strength = self.strength if self.text_strength is None else self.text_strength
        taken = self._correction(vectors, self.image_bank_, strength)
        return np.column_stack([vectors, taken, -np.ones_like(taken)])

    def _vectors(self, side: Side, rows: ArrayLike) -> FloatArray:
        form, model = LinearForm.of(self.model_.space, type(self.model_).__name__), self.model_
        return form.images(model.encode_images(rows)) if side == "image" else form.texts(model.encode_texts(rows))

    def _correction(self, vectors: FloatArray, bank: AnyArray, strength: float) -> FloatArray:
        others = bank.astype(vectors.dtype)
        n_nearest = min(self.n_nearest, len(others))
        means = np.empty(len(vectors), dtype=vectors.dtype)
        for rows in row_blocks(len(vectors), max(1, _SCORES_AT_ONCE // len(others))):
            scores = vectors[rows] @ others.T
            if self.sharpness is not None:
                peaks = scores.max(axis=1, keepdims=True)
                sums = np.exp(self.sharpness * (scores - peaks)).sum(axis=1)
                means[rows] = peaks[:, 0] + np.log(sums) / self.sharpness
                continue
            nearest = np.partition(scores, -n_nearest, axis=1)[:, -n_nearest:]
            means[rows] = nearest.mean(axis=1)
        return means * vectors.dtype.type(strength)
