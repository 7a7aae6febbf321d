"""From a text to its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from diptych.encoders.text.lemmas import lemma
from diptych.encoders.text.stop_words import find_stop_words

_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True)
class WordPipeline:
    """Cuts a text into the words that count: lower case, no punctuation, no single letters.

    All encoders that look at words share it, so that they agree on what a word is. With ``stop_words="pictures"`` and
    ``lemmas=True`` it is the preprocessing of Dong et al., "Cross-media similarity evaluation for web image retrieval
    in the wild", 2018.

    Parameters
    ----------
    stop_words:
        ``"english"`` leaves out the list of scikit-learn, ``"pictures"`` the function words of English and words such
        as photo and picture; None keeps all.
    lemmas:
        True replaces words of more than three letters by their dictionary form, in English; the code of another
        language, such as ``"de"``, in that language. Needs the package simplemma.

    Examples
    --------
    >>> from diptych.encoders import WordPipeline
    >>> WordPipeline(stop_words="pictures", lemmas=True).words("A picture of two dogs, running!")
    ['two', 'dog', 'run']
    """

    stop_words: str | None = "english"
    lemmas: bool | str = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text in order, repeated ones repeatedly."""
        dropped = find_stop_words(self.stop_words)
        words = [word for word in _WORD.findall(text.lower()) if word not in dropped]
        if self.lemmas is False:
            return words
        language = "en" if self.lemmas is True else self.lemmas
        # A stop word can hide behind an inflected form.
        return [form for form in (lemma(word, language) for word in words) if form not in dropped]
