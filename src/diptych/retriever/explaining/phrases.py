"""Pieces of sentences."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_CHARACTERS = 60


def quoted(text: str) -> str:
    """Return a text in quotation marks, cut where it is long.

    >>> from diptych.retriever.explaining.phrases import quoted
    >>> quoted("a red boat")
    '“a red boat”'
    """
    short = " ".join(text.split())
    return f"“{short if len(short) <= _MOST_CHARACTERS else short[: _MOST_CHARACTERS - 1].rstrip() + '…'}”"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence.

    >>> from diptych.retriever.explaining.phrases import listed
    >>> listed(["boat", "bird", "sea"])
    'boat, bird and sea'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def per_cent(share: float) -> str:
    """Return a probability as people say it.

    >>> from diptych.retriever.explaining.phrases import per_cent
    >>> per_cent(0.625), per_cent(0.002)
    ('62 %', 'under 1 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> from diptych.retriever.explaining.phrases import counted
    >>> counted(1, "class", "classes"), counted(2, "label")
    ('1 class', '2 labels')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
