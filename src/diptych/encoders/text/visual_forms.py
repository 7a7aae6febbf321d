"""The forms under which a word may stand in a list of names."""

from __future__ import annotations

from functools import lru_cache

from diptych.encoders.text.lemmas import lemma

_SHORTEST = 4
# A list of words lacks the plurals of rare ones, and knows some only as verbs: leaves, shelves.
_PLURALS = (
    ("ves", "f"),
    ("ves", "fe"),
    ("ies", "y"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("s", ""),
)


@lru_cache(maxsize=1 << 18)
def visual_forms(word: str) -> tuple[str, ...]:
    """Return a lower-case word itself, its dictionary form, and what it may be the plural of; each once.

    >>> from diptych.encoders.text.visual_forms import visual_forms
    >>> visual_forms("leaves"), visual_forms("dog")
    (('leaves', 'leave', 'leaf', 'leafe'), ('dog',))
    """
    forms = [word, lemma(word)]
    if len(word) >= _SHORTEST and not word.endswith("ss"):
        forms += [word.removesuffix(ending) + singular for ending, singular in _PLURALS if word.endswith(ending)]
    return tuple(dict.fromkeys(forms))
