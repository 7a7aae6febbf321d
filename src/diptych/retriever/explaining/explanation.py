"""Explanations: why an answer is there, as views of bars with a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Contribution:
    """What one class, label, word or pair of features adds to a score; negative where it counts against the answer.

    ``query`` and ``answer`` say how strong it is on each side, such as a class probability, None where the side has no
    such number; ``term`` is the number of the query's term that it belongs to, from 0.

    >>> from diptych.retriever import Contribution
    >>> Contribution("boat", 0.5, 0.25, 0.125).document()
    {'name': 'boat', 'query': 0.5, 'answer': 0.25, 'contribution': 0.125, 'term': 0}
    """

    name: str
    query: float | None
    answer: float | None
    contribution: float
    term: int = 0

    def document(self) -> dict[str, Any]:
        """Return the bar as plain values."""
        return asdict(self)


ViewKind = Literal["parts", "classes", "labels", "words", "pairs"]


@dataclass(frozen=True)
class View:
    """The bars of one idea, a sentence that sums them up, and what they leave out.

    ``bars`` of words come in the order of the text, all others with the weightiest first. Where ``additive``, the bars
    and the ``remainder`` (what was not worth a bar of its own) sum to the score; elsewhere the remainder is None.
    """

    kind: ViewKind
    title: str
    sentence: str
    bars: tuple[Contribution, ...]
    note: str
    remainder: float | None = None

    @property
    def additive(self) -> bool:
        """Whether bars and remainder sum to the score."""
        return self.remainder is not None

    @property
    def weight(self) -> float:
        """How much of the score the bars speak about."""
        return sum(abs(bar.contribution) for bar in self.bars)

    def document(self) -> dict[str, Any]:
        """Return the view as plain values."""
        told = {"kind": self.kind, "title": self.title, "sentence": self.sentence}
        bars = [bar.document() for bar in self.bars]
        return {**told, "bars": bars, "additive": self.additive, "remainder": self.remainder, "note": self.note}


@dataclass(frozen=True)
class ExplainedTerm:
    """A term of the query: its weight, its own score with the answer, and its part of the whole score.

    ``contribution`` is the part; the parts of all terms sum to the score of the query.
    """

    name: str
    weight: float
    score: float
    contribution: float

    def document(self) -> dict[str, Any]:
        """Return the term as plain values."""
        return asdict(self)


ExplanationKind = Literal["parts", "classes", "labels", "words", "pairs", "none"]


@dataclass(frozen=True)
class Explanation:
    """Why an answer is there: a sentence, the bars of the view that tells most, and further views.

    Made by :func:`diptych.retriever.explain`.

    ============ ==========================================================================================
    ``parts``    fusions: what each of the fused models brings
    ``classes``  semantic models: the class probabilities of query and answer side by side
    ``labels``   ConSE, and networks with a classifier: the labels seen in a picture and how near they are
    ``words``    projections: what the score loses without each word
    ``pairs``    linear projections of named features: the pairs of features that make up the score
    ``none``     the model's coordinates have no meaning that could be told
    ============ ==========================================================================================
    """

    summary: str
    score: float
    terms: tuple[ExplainedTerm, ...]
    views: tuple[View, ...] = ()

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

    def document(self) -> dict[str, Any]:
        """Return the explanation as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "summary": self.summary,
            "score": self.score,
            "terms": [term.document() for term in self.terms],
            "bars": [bar.document() for bar in self.bars],
            "note": self.note,
            "views": [view.document() for view in self.views],
        }


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
