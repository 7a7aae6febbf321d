"""The text side of an opened joint model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diptych.arrays import FloatArray
from diptych.encoders.transformer.tokenizer import Tokenizer, Tokens, padded


@dataclass(frozen=True)
class TextTower:
    """Takes texts, cuts them into tokens and runs them through the network.

    Parameters
    ----------
    tokenizer:
        Of the model.
    run:
        Takes the tokens and their mask, both int64 (items, tokens), and returns the features.
    padding:
        The token that fills up shorter texts.
    length:
        What all texts are filled up to; None for the longest of the batch.
    fill_left:
        Fill up in front of the text instead of behind it.
    lower_case:
        The model was trained on small letters, whether its tokenizer sees to that or not.
    """

    tokenizer: Tokenizer
    run: Callable[[Tokens, Tokens], FloatArray]
    padding: int
    length: int | None = None
    fill_left: bool = False
    lower_case: bool = False

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text."""
        return self.tokenizer.encode([text.lower() for text in texts] if self.lower_case else texts)

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return one row of features for each row of tokens."""
        return self.run(*padded(rows, padding=self.padding, length=self.length, left=self.fill_left))
