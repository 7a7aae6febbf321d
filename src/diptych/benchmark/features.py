"""From what a data set holds to the matrices that methods learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.models.preprocessed import RowScaling
from diptych.protocols import Fold, Retrieval, Training


def with_principal_components(splits: DatasetSplits, n_image: int, n_text: int) -> DatasetSplits:
    """Replace a side that is wider than asked for by its principal components, learned from the training part.

    Menon et al. (2015, section 7.1) reduce pictures to 128 and texts to 10 features before anything else; training
    times leave this step out, as theirs do.

    >>> import numpy as np
    >>> from diptych.benchmark.features import with_principal_components
    >>> from diptych.data import DatasetSplits, Pairs
    >>> rng = np.random.default_rng(0)
    >>> train, test = (Pairs(rng.normal(size=(n, 6)), rng.normal(size=(n, 3))) for n in (20, 5))
    >>> reduced = with_principal_components(DatasetSplits(train=train, test=test), 4, 10)
    >>> reduced.test.images.shape, reduced.test.texts.shape
    ((5, 4), (5, 3))
    """
    parts: dict[str, Any] = dict(splits.parts)
    for side, wanted in (("images", n_image), ("texts", n_text)):
        rows = np.asarray(getattr(splits.train, side))
        if rows.shape[1] > wanted:
            mean, axes = _principal_axes(rows, wanted)
            parts = {
                name: pairs.with_features(**{side: ((getattr(pairs, side) - mean) @ axes).astype(rows.dtype)})
                for name, pairs in parts.items()
            }
    return replace(splits, **parts)


def _principal_axes(rows: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    width = rows.shape[1]
    _, axes = eigh(centred.T @ centred, subset_by_index=(width - wanted, width - 1))
    axes = axes[:, ::-1]
    # An axis and its opposite serve alike; one of them is taken, so that every machine has the same features.
    return mean, axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(wanted)])


@dataclass(frozen=True)
class Features:
    """How raw items become the rows of two matrices.

    Encoders that learn nothing encode a data set once. Those that learn, and principal components, learn from the
    training pairs of a fold alone, anew for every fold, so that nothing of the classes that are asked for later is in
    the features. ``scaling`` of pictures and texts happens inside the methods.

    >>> from diptych.benchmark.running import Features
    >>> Features("SIFT words and LDA topics", scaling=("hellinger", "hellinger")).scaling
    ('hellinger', 'hellinger')
    """

    label: str
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    components: tuple[int, int] | None = None
    scaling: tuple[RowScaling, RowScaling] = ("none", "none")

    @property
    def declaration(self) -> str:
        """Everything that shapes the features, in words."""
        encoders = [encoder.identity if encoder else "" for encoder in (self.image_encoder, self.text_encoder)]
        return f"{encoders} {self.components} {self.scaling}"

    def of_splits(self, splits: DatasetSplits) -> DatasetSplits:
        """Encode what can be encoded without learning anything; otherwise return the splits as they are."""
        return splits if self._learns(splits.train) else self._encoded(splits)

    def of_fold(self, fold: Fold, splits: DatasetSplits) -> Fold:
        """Encode and reduce what is left to do, learning from the training pairs of the fold."""
        train, queries, gallery = fold.training.pairs, fold.retrieval.queries, fold.retrieval.gallery
        apart = gallery is not train and gallery is not queries
        parts = replace(splits, train=train, test=queries, dev=gallery if apart else None)
        parts = self._encoded(parts)
        if self.components is not None:
            parts = with_principal_components(parts, *self.components)
        same = parts.train if gallery is train else parts.test
        found = same if parts.dev is None else parts.dev
        training = Training(parts.train, fold.training.hold_outs)
        return replace(fold, training=training, retrieval=Retrieval(parts.test, found))

    def _encoded(self, splits: DatasetSplits) -> DatasetSplits:
        return encode_splits(splits, self.image_encoder, self.text_encoder)

    def _learns(self, pairs: Pairs) -> bool:
        sides = (
            (pairs.has_image_features, self.image_encoder or ColourEdgeHistograms()),
            (pairs.has_text_features, self.text_encoder or TfidfTopics()),
        )
        return any(encoder.learns for is_encoded, encoder in sides if not is_encoded)
