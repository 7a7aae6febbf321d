"""Whether a short text is English, and whether a search model understands its language; both by letters and words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection

from diptych.encoders.text.english_words import is_english_word

MAX_WORD_LETTERS = 200
"""Longer words are no words of any language: they are left out."""
MAX_LETTERS_READ = 400
"""How many characters of a text are read; more words do not make the answer any surer."""

# Every language has words that English has too; an English query has a name or two that no dictionary has.
_MIN_ENGLISH_SHARE = 0.7
# What a person is told must be right nearly always.
_MAX_ENGLISH_SHARE_NOTED = 0.5
_MIN_WORDS_NOTED = 3
# Text in another script is rarely without a Latin name; a Latin text is, but for a symbol.
_MIN_SHARE_OF_SCRIPT = 1 / 3
_LANGUAGES_OF_SCRIPT = {
    "ARABIC": {"ar"},
    "CYRILLIC": {"ru"},
    "HANGUL": {"ko"},
    "THAI": {"th"},
    "CJK": {"ja", "zh"},
    "IDEOGRAPHIC": {"ja", "zh"},
    "HIRAGANA": {"ja"},
    "KATAKANA": {"ja"},
    "KATAKANA-HIRAGANA": {"ja"},
}
# Letters of neighbours that share a script: of Persian and Urdu, of Ukrainian, Belarusian and Serbian.
_FOREIGN_LETTERS = {"ARABIC": "پچژگکیٹڈڑےۓھہں", "CYRILLIC": "іїєґўђћџљњјѓќѕ"}
# Letters of languages in Latin script beyond a to z.
_LATIN_LETTERS = {
    "de": "äöüß",
    "en": "",
    "es": "áéíñóúü",
    "fr": "àâæçèéêëîïôœùûüÿ",
    "it": "àèéìíîòóùú",
    "nl": "áèéëíïóöúü",
    "pl": "ąćęłńóśźż",
    "pt": "àáâãçéêíóôõú",
    "tr": "âçğıîöşûü",
}
_NOTE = "This looks like a language that the search model does not understand well; try English."


def reads_as_english(text: str) -> bool:
    """Return True if a text has no letters, or Latin ones and mostly words of the English dictionary.

    >>> from diptych.encoders.text.languages import reads_as_english
    >>> [reads_as_english(text) for text in ("a red car", "ein rotes Auto", "собака", "42")]
    [True, False, False, True]
    """
    script = _script(text)
    return script is None or (script == "LATIN" and _english_share(text) >= _MIN_ENGLISH_SHARE)


def language_note(text: str, understood: Collection[str]) -> str | None:
    """Return a sentence for a person who asks in a language that is not understood; None where that is not sure.

    Languages are codes in ISO 639-1. Scripts tell whether a text is in one of those understood; in Latin script its
    letters do, and where only English is understood, its words. One word may be a name.

    >>> from diptych.encoders.text.languages import language_note
    >>> language_note("dva psi na pláži", {"en", "es", "de"})
    'This looks like a language that the search model does not understand well; try English.'
    >>> [language_note(text, {"en"}) for text in ("two dogs", "pizza", "café de Paris")]
    [None, None, None]
    """
    script = _script(text)
    if script is None or reads_as_english(text):
        return None
    if script == "LATIN":
        is_known = _may_be_understood(text, understood)
    else:
        is_known = bool(_LANGUAGES_OF_SCRIPT.get(script, set()).intersection(understood))
        is_known = is_known and not set(_FOREIGN_LETTERS.get(script, "")).intersection(text)
    return None if is_known else _NOTE


def _may_be_understood(text: str, understood: Collection[str]) -> bool:
    """Return True if a Latin text may be in one of these languages."""
    words = _words(text)
    if len(words) < _MIN_WORDS_NOTED:
        return True
    if not set(_LATIN_LETTERS).intersection(understood) - {"en"}:
        return _english_share(text) > _MAX_ENGLISH_SHARE_NOTED
    letters = {letter for language in understood for letter in _LATIN_LETTERS.get(language, "")}
    used = {letter for word in words for letter in word if letter.isalpha() and not letter.isascii()}
    return used <= letters


def _script(text: str) -> str | None:
    """Return the script of most letters as Unicode names it; another than Latin where it has a third of them."""
    letters = [letter for letter in unicodedata.normalize("NFKC", text[:MAX_LETTERS_READ]) if letter.isalpha()]
    if not letters:
        return None
    scripts = Counter(unicodedata.name(letter, "UNKNOWN").split()[0] for letter in letters)
    latin = scripts.pop("LATIN", 0)
    if len(letters) - latin < _MIN_SHARE_OF_SCRIPT * len(letters):
        return "LATIN"
    return scripts.most_common(1)[0][0]


def _english_share(text: str) -> float:
    words = _words(text)
    return sum(map(is_english_word, words)) / len(words) if words else 0.0


def _words(text: str) -> list[str]:
    # The capital dotted I of Turkish leaves its dot behind.
    lower = unicodedata.normalize("NFKC", text).lower().replace("\u0307", "")
    words = re.findall(r"[^\W\d_]+", lower[:MAX_LETTERS_READ])
    return [word for word in words if len(word) <= MAX_WORD_LETTERS]
