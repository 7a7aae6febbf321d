"""Explanations: why an answer is there, as views of bars with a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Contribution:
    """What one class, label, word or part adds to a score; negative where it counts against the answer.

    >>> from diptych.retriever import Contribution
    >>> Contribution("boat", query=0.5, answer=0.25, contribution=0.125).term
    0
    """

    name: str
    """The class, label, word or pair."""
    query: float | None
    """How strong it is in the query, such as a class probability, where there is such a number."""
    answer: float | None
    """How strong it is in the answer, where there is such a number."""
    contribution: float
    """What it adds to the score; below 0 it counts against the answer."""
    term: int = 0
    """The number of the query's term that it belongs to, from 0."""


ViewKind = Literal["parts", "classes", "labels", "words"]


@dataclass(frozen=True)
class View:
    """The bars of one idea."""

    kind: ViewKind
    """What the bars stand for."""
    title: str
    """A heading for the bars."""
    sentence: str
    """What the bars say together."""
    bars: tuple[Contribution, ...]
    """Words in the order of the text, everything else with the weightiest first."""
    note: str
    """What was left out, and how the numbers were made."""
    remainder: float | None = None
    """What everything without a bar adds: with the bars it sums to the score. None where they do not."""

    @property
    def additive(self) -> bool:
        """Whether bars and remainder sum to the score."""
        return self.remainder is not None

    @property
    def weight(self) -> float:
        """How much of the score the bars speak about."""
        return sum(abs(bar.contribution) for bar in self.bars)


@dataclass(frozen=True)
class ExplainedTerm:
    """A term of the query and what it brings."""

    name: str
    """The words, or the name of the picture."""
    weight: float
    """Its weight in the query."""
    score: float
    """The score of the answer for this term alone."""
    contribution: float
    """Its part of the score of the whole query; the parts of all terms sum to it."""


ExplanationKind = Literal["parts", "classes", "labels", "words", "none"]


@dataclass(frozen=True)
class Explanation:
    """Why an answer is there: a sentence, the bars of the view that tells most, and further views.

    Made by :func:`diptych.retriever.explain`.

    ============ ==========================================================================================
    ``parts``    fusions: what each of the fused models brings
    ``classes``  semantic models: the class probabilities of query and answer side by side
    ``labels``   networks with a classifier, ConSE's too: the labels seen in a picture and how near they are
    ``words``    projections: what the score loses without each word
    ``none``     the model's coordinates have no meaning that could be told
    ============ ==========================================================================================
    """

    summary: str
    """The explanation in plain English."""
    score: float
    """The score of the answer."""
    terms: tuple[ExplainedTerm, ...]
    """The terms of the query, each with its part of the score."""
    views: tuple[View, ...] = ()
    """All views, the one that tells most first."""

    @property
    def kind(self) -> ExplanationKind:
        """What the bars stand for."""
        return self.views[0].kind if self.views else "none"

    @property
    def bars(self) -> tuple[Contribution, ...]:
        """The bars of the first view."""
        return self.views[0].bars if self.views else ()

    @property
    def note(self) -> str:
        """What the bars leave out, and how the score was made."""
        return self.views[0].note if self.views else ""


_MOST_CHARACTERS = 60


def quoted(text: str) -> str:
    """Return a text in quotation marks, cut where it is long.

    >>> quoted("a red boat")
    '“a red boat”'
    """
    short = " ".join(text.split())
    return f"“{short if len(short) <= _MOST_CHARACTERS else short[: _MOST_CHARACTERS - 1].rstrip() + '…'}”"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence.

    >>> listed(["boat", "bird", "sea"])
    'boat, bird and sea'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def per_cent(share: float) -> str:
    """Return a probability as people say it.

    >>> per_cent(0.625), per_cent(0.002)
    ('62 %', 'under 1 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"
