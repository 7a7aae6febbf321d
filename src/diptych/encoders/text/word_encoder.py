"""What the encoders that look at words share."""

from __future__ import annotations

from typing import ClassVar

from diptych.encoders.encoder import Encoder, Modality
from diptych.encoders.text.word_pipeline import WordPipeline


class WordEncoder(Encoder):
    """An encoder of texts with the parameters of :class:`WordPipeline`: ``stop_words`` and ``lemmas``.

    >>> from diptych.encoders import TfidfTopics
    >>> TfidfTopics(lemmas=True).pipeline
    WordPipeline(stop_words='english', lemmas=True)
    """

    modality: ClassVar[Modality] = "text"

    stop_words: str | None
    lemmas: bool | str

    @property
    def identity(self) -> str:
        """As for every encoder, but lemmas are named only where there are any.

        They came later than the other parameters, and features made before them must be found under their old name.
        """
        return super().identity.replace("lemmas=False, ", "", 1)

    @property
    def pipeline(self) -> WordPipeline:
        """What cuts the texts into words."""
        return WordPipeline(stop_words=self.stop_words, lemmas=self.lemmas)
