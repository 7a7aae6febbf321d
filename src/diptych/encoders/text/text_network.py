"""What encoders of texts by a pretrained network share: parameters, batches of like length, and the text tower."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.encoder import BatchEncoder, check_texts
from diptych.encoders.networks.tokenizer import SentencePieces, Tokenizer, Tokens, batches_of_like_length, padded

RunTokens = Callable[[Tokens, Tokens], FloatArray]
"""Takes tokens and the mask of those that do not fill up, both int64 (items, tokens); returns features."""


class TextTower(Protocol):
    """Cuts texts into tokens, and runs a network on those of several texts."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text."""

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return what the network makes of each row of tokens."""


@dataclass(frozen=True)
class OnnxTextTower:
    """A tower whose network runs on ONNX Runtime."""

    tokenizer: Tokenizer | SentencePieces
    run: RunTokens
    padding: int = 0  # the token that fills up shorter texts
    length: int | None = None  # what all texts are filled up to; None for the longest of the batch
    fill_left: bool = False
    one_by_one: bool = False  # where texts that are run together would change each other
    clean: Callable[[str], str] | None = None  # what is done to texts before, whether the tokenizer sees to it or not

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut each text into tokens, cleaned as the network was trained."""
        return self.tokenizer.encode(texts if self.clean is None else [self.clean(text) for text in texts])

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return one row of features for each row of tokens."""
        if self.one_by_one and len(rows) > 1:
            return np.concatenate([self.features([row]) for row in rows])
        return self.run(*padded(rows, padding=self.padding, length=self.length, left=self.fill_left))


@dataclass(kw_only=True, eq=False, repr=False)
class PretrainedTextEncoder(BatchEncoder):
    """An encoder of texts by networks that have learned already."""

    learns: ClassVar[bool] = False

    @abstractmethod
    def check_weights(self) -> None:
        """Raise unless the network is there."""

    def fit(self, items: Sequence[str]) -> Self:
        """Check the parameters and that the network is there; there is nothing to learn from the texts."""
        del items
        self.check_parameters()
        self.check_weights()
        return self

    def _check_texts(self, items: Sequence[str]) -> None:
        check_texts(items)
        self.check_parameters()


class TextNetworkEncoder(PretrainedTextEncoder):
    """An encoder of texts by one pretrained network, which ``_tower`` opens; each row has unit length."""

    @abstractmethod
    def _tower(self) -> TextTower: ...

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of features per text."""
        self._check_texts(items)
        tower = self._tower()
        rows = tower.tokens(items)
        batches = list(batches_of_like_length(rows, self.batch_size))
        features = np.concatenate([tower.features([rows[index] for index in batch]) for batch in batches])
        return unit_rows(features[np.argsort(np.concatenate(batches))])
