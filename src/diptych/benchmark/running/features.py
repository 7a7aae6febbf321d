"""From what a data set holds to what methods learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from diptych.benchmark.principal_components import with_principal_components
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.models.preprocessed import RowScaling
from diptych.protocols import Fold, Retrieval, Training


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
