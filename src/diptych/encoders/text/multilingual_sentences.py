"""Sentences by two networks: one that knows English best, and one that knows many languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.text.languages import reads_as_english
from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.text_network import PretrainedTextEncoder
from diptych.encoders.text.universal_sentence_encoder import UNDERSTOOD, UniversalSentenceEncoder
from diptych.encoders.text.visualness import named_concept

# What people put before the name of a thing; "a dog" is "dog" to them, and was something else to the networks.
_BEFORE_NAME = re.compile(r"(?:(?:an?|the) )?(?:(?:photo|picture|image)s? of (?:(?:an?|the) )?)?")


@dataclass(kw_only=True, eq=False, repr=False)
class MultilingualSentences(PretrainedTextEncoder):
    """The features of `SentenceEncoder` and of `UniversalSentenceEncoder` side by side, each of unit length.

    The first reads English alone, and better; what it makes of other languages would spoil them. So its columns are
    zero for a text that is hardly English, by the letters and by the share of words that an English dictionary has: a
    model that is to serve other languages learns from some texts with these columns left out. A text without any
    letters keeps them.

    A query that only names a thing, "dog", "a dog" or "photos of dogs", is read by `query_forms`: its features are the
    mean of theirs. With ``"minilm-captions"``, that is; nobody has tried the forms with the other.

    Parameters
    ----------
    english:
        The ``source`` of the first: ``"minilm"``, or ``"minilm-captions"``, which was trained to find photographs.
    batch_size:
        Texts encoded at once.
    n_threads:
        Threads of the networks; by default one for each processor.

    Examples
    --------
    >>> from diptych.encoders import MultilingualSentences
    >>> english, german = MultilingualSentences().transform(["a dog on the beach", "ein Hund am Strand"])
    >>> english.shape, bool(german[:384].any()), bool(english[384:] @ german[384:] > 0.7)
    ((896,), False, True)
    """

    revision: ClassVar[int] = 2

    english: str = "minilm"

    understood_languages = UNDERSTOOD

    @property
    def weights_digest(self) -> str:
        """The digests of both networks."""
        return " ".join(encoder.fingerprint for encoder in self._parts())

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return sum(encoder.n_features for encoder in self._parts())

    def check_weights(self) -> None:
        """Raise unless both networks are there."""
        for encoder in self._parts():
            encoder.check_weights()

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of features per text."""
        self._check_texts(items)
        return self._features([(text, reads_as_english(text)) for text in items])

    def transform_queries(self, items: Sequence[str]) -> FloatArray:
        """Return one row of features per query: the mean over what it is read as."""
        if self.english != "minilm-captions":
            return self.transform(items)
        self._check_texts(items)
        # What stands before a name may tell the language that the name alone does not.
        routed = [(text, reads_as_english(text)) for text in items]
        forms = [[(form, keeps) for form in (query_forms(text) if keeps else (text,))] for text, keeps in routed]
        starts = np.cumsum([0, *map(len, forms)])
        features = self._features([form for alike in forms for form in alike])
        return np.stack([features[first:last].mean(axis=0) for first, last in pairwise(starts)])

    def _features(self, routed: Sequence[tuple[str, bool]]) -> FloatArray:
        english, multilingual = self._parts()
        texts, is_english = [text for text, _ in routed], np.array([keeps for _, keeps in routed])
        parts = np.zeros((len(texts), self.n_features), dtype=np.float32)
        if is_english.any():
            known = [text for text, keeps in routed if keeps]
            parts[is_english, : english.n_features] = unit_rows(english.transform(known))
        parts[:, english.n_features :] = unit_rows(multilingual.transform(texts))
        return parts

    def _parts(self) -> tuple[SentenceEncoder, UniversalSentenceEncoder]:
        speed: dict[str, Any] = {"batch_size": self.batch_size, "n_threads": self.n_threads}
        return self._made_once(
            (self.english, *speed.values()),
            lambda: (SentenceEncoder(source=self.english, **speed), UniversalSentenceEncoder(**speed)),
        )


def query_forms(text: str) -> tuple[str, ...]:
    """Return what an English query is read as: the bare name of a thing and a sentence with it, or the query as it is.

    What people type before a name ("a", "a photo of") lowers the scores of all that shows it, and a name in a sentence
    finds it better than the name alone. A plural keeps its own form beside the sentence.

    >>> from diptych.encoders.text.multilingual_sentences import query_forms
    >>> query_forms("a photo of a dog"), query_forms("Dining tables"), query_forms("a dog runs")
    (('dog', 'there is a dog'), ('dining tables', 'there is a dining table'), ('a dog runs',))
    """
    words = " ".join(text.lower().split())
    before = _BEFORE_NAME.match(words)
    name = words[before.end() :] if before else words
    # Single letters are names of vitamins and the like.
    concept = named_concept(name) if len(name) > 1 else None
    return (text,) if concept is None else (name, f"there is a {concept}")
