from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel
from diptych.models.labels import Targets
from diptych.models.parameters import Count

_LEAST_SHARE = 1e-10


@dataclass(kw_only=True, eq=False, repr=False)
class ConSE(CrossModalModel):
    """Convex combination of semantic embeddings: a picture is the mean of its likeliest labels' vectors.

    With p(y|x) the class probabilities of a picture, v(y) the vector of a label in the space of the texts, and T the
    ``n_labels`` likeliest classes,

        f(x) = Σ_{y∈T} p(y|x)·v(y) / Σ_{y∈T} p(y|x),

    and a text is its own vector. Classes without a vector (a zero row) are left out, also of the sum below; a picture
    whose remaining labels hold less than 1e-10 of its probability becomes zero.

    Norouzi et al., "Zero-shot learning by convex combination of semantic embeddings", ICLR 2014, as used by Dong et
    al. (2018), who take ten labels. Use it when there is a classifier but no single picture with a text.

    Parameters
    ----------
    label_vectors : array of shape (classes, text features), or None
        The vector of each class; then nothing is learned from the training rows. None learns them: the vector of a
        class is the mean of the training texts, weighted by the class's probability for their pictures.
    n_labels : int
        How many of the likeliest labels are kept.
    metric : str
        How points compare.

    Attributes
    ----------
    label_vectors_ : array of shape (classes, text features)

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import ConSE
    >>> cat, dog = [1.0, 0.0], [0.0, 1.0]
    >>> model = ConSE(label_vectors=np.array([cat, dog])).fit(np.eye(2), np.eye(2))
    >>> model.encode_images([[0.75, 0.25]]).tolist()
    [[0.75, 0.25]]
    """

    command_name: ClassVar[str] = "conse"
    when_to_use: ClassVar[str] = "A classifier's probabilities as image features, word vectors as text features."
    # It speaks of labels that pictures were classified into, which the features of a benchmark do not have.
    benchmarked: ClassVar[bool] = False

    label_vectors_: FloatArray = field(init=False)

    label_vectors: ArrayLike | None = None
    n_labels: Count = 10
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        if self.n_labels < 1:
            raise InvalidInputError(f"n_labels must be at least 1, got {self.n_labels}")
        if self.label_vectors is None:
            sums, products = np.zeros(images.shape[1]), np.zeros((images.shape[1], texts.shape[1]))
            for rows in row_blocks(len(images)):
                weights = np.maximum(images[rows], 0).astype(np.float64)
                sums += weights.sum(axis=0)
                products += weights.T @ texts[rows]
            self.label_vectors_ = products / np.where(sums > 0, sums, 1)[:, None]
            return
        vectors = as_matrix(self.label_vectors, name="label_vectors", width=texts.shape[1])
        if len(vectors) != images.shape[1]:
            raise InvalidInputError(
                f"label_vectors has {len(vectors)} rows, but the images have {images.shape[1]} class probabilities"
            )
        self.label_vectors_ = vectors

    def _encode_images(self, images: FloatArray) -> AnyArray:
        positive = np.maximum(images, 0)
        weights = np.where(np.abs(self.label_vectors_).max(axis=1) > 0, positive, 0)
        kept = min(self.n_labels, weights.shape[1])
        weights = np.where(weights >= np.partition(weights, -kept, axis=1)[:, [-kept]], weights, 0)
        sums = weights.sum(axis=1, dtype=np.float64, keepdims=True)
        known = sums > _LEAST_SHARE * positive.sum(axis=1, dtype=np.float64, keepdims=True)
        shares = np.where(known, weights / np.where(known, sums, 1), 0).astype(images.dtype)
        return np.asarray(shares @ self.label_vectors_.astype(images.dtype, copy=False))

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return texts
