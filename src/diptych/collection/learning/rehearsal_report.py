"""The result of a rehearsal: two retrievers on the same questions, in numbers, in words and by example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.errors import counted
from diptych.metrics import bootstrap_difference, randomisation_test

QuestionKind = Literal["captions", "queries"]
Outcome = Literal["better", "worse", "mixed", "undecided"]
RECIPROCAL_RANK = "reciprocal rank"
_EXAMPLES = 10
# Enough to tell luck from more; the least p is then 0.00005.
_TRIALS = 20_000


@dataclass(frozen=True)
class MeasuredDifference:
    """A measure with both search models, and how far luck explains the difference.

    >>> from diptych.collection.learning import MeasuredDifference
    >>> found = MeasuredDifference("R@1", old=0.25, new=0.5, low=0.1, high=0.4, p_value=0.002)
    >>> found.difference, found.p_text
    (0.25, '0.0020')
    """

    measure: str
    """The name of the measure."""
    old: float
    """Its mean with the present search model."""
    new: float
    """Its mean with the one that was tried."""
    low: float
    """The lower end of new − old, with a confidence of 95 %."""
    high: float
    """The upper end."""
    p_value: float
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""

    @property
    def difference(self) -> float:
        """By how much the new retriever is better."""
        return self.new - self.old

    @property
    def p_text(self) -> str:
        """The p-value as tables print it."""
        return "<0.0001" if self.p_value < 0.0001 else f"{self.p_value:.4f}"


@dataclass(frozen=True)
class RehearsedQuestion:
    """A question whose right answer came further up or down."""

    text: str
    """The caption or the query."""
    asked: float
    """How often it was asked; 1 for a caption."""
    old_rank: float
    """The place of the first right answer in the sample, with the present search model."""
    new_rank: float
    """Its place with the one that was tried."""
    right: tuple[str, ...]
    """The ids of the right answers."""
    old_answers: tuple[str, ...]
    """The ids of the first answers of the present search model."""
    new_answers: tuple[str, ...]
    """The ids of the first answers of the one that was tried."""


@dataclass(frozen=True)
class RehearsedQuestions:
    """What came out of one kind of question."""

    kind: QuestionKind
    """Captions, each of which should find its picture, or logged queries, which should find what was clicked."""
    n_questions: int
    """How many were asked."""
    n_units: int
    """How many of them are independent: pictures, or queries of different words."""
    differences: tuple[MeasuredDifference, ...]
    """The reciprocal rank first."""
    no_match_old: float
    """The share of questions that the present search model answers with no good match."""
    no_match_new: float
    """The same of the one that was tried."""
    n_won: int
    """Questions whose right answer came further up."""
    n_lost: int
    """Questions whose right answer went down."""
    won: tuple[RehearsedQuestion, ...] = ()
    """Those whose right answer came up furthest."""
    lost: tuple[RehearsedQuestion, ...] = ()
    """Those whose right answer went down furthest."""

    @property
    def counted(self) -> str:
        """How many there are, in words."""
        if self.kind == "captions":
            return f"{counted(self.n_questions, 'caption')} of {counted(self.n_units, 'picture')}"
        return counted(self.n_questions, "logged query", "logged queries")

    def outcome(self, alpha: float) -> Outcome:
        """Return True if the new retriever answers these better by more than luck."""
        main = self.differences[0]
        if main.p_value >= alpha or not main.difference:
            return "undecided"
        return "better" if main.difference > 0 else "worse"

    @classmethod
    def measured(
        cls,
        kind: QuestionKind,
        questions: Sequence[RehearsedQuestion],
        units: IntArray,
        no_match: tuple[BoolArray, BoolArray],
        measures: Sequence[tuple[str, FloatArray, FloatArray]],
        *,
        random_state: int,
    ) -> RehearsedQuestions:
        """Test the values of each question under both retrievers; questions of one unit stand or fall together."""
        asked = np.array([question.asked for question in questions])
        differences = []
        for name, old, new in measures:
            per_unit = [_unit_values(values, asked, units) for values in (new, old)]
            interval = bootstrap_difference(*per_unit, seed=random_state)
            test = randomisation_test(*per_unit, trials=_TRIALS, seed=random_state)
            before, after = (float(np.average(values, weights=asked)) for values in (old, new))
            differences.append(MeasuredDifference(name, before, after, interval.low, interval.high, test.p_value))
        # How many times further up: from the fourth place to the second is as much as from the second to the first.
        gain = np.array([np.log(question.old_rank / question.new_rank) for question in questions])
        return cls(
            kind=kind,
            n_questions=len(questions),
            n_units=len(np.unique(units)),
            differences=tuple(differences),
            no_match_old=float(np.average(no_match[0], weights=asked)),
            no_match_new=float(np.average(no_match[1], weights=asked)),
            n_won=int((gain > 0).sum()),
            n_lost=int((gain < 0).sum()),
            won=_examples(questions, units, gain),
            lost=_examples(questions, units, -gain),
        )


def _unit_values(values: FloatArray, weights: FloatArray, units: IntArray) -> FloatArray:
    """Return one value for each unit, so that their plain mean is the weighted mean over the questions.

    >>> _unit_values(np.array([1.0, 0.0, 0.5]), np.array([1.0, 1.0, 2.0]), np.array([0, 0, 1])).tolist()
    [0.5, 0.5]
    """
    _, places = np.unique(units, return_inverse=True)
    sums = np.bincount(places.reshape(-1), weights * values)
    return np.asarray(sums * len(sums) / weights.sum())


def _examples(
    questions: Sequence[RehearsedQuestion], units: IntArray, gain: FloatArray
) -> tuple[RehearsedQuestion, ...]:
    """Return the questions that gained most, one for each unit."""
    shown: dict[int, RehearsedQuestion] = {}
    for row in np.argsort(-gain, kind="stable").tolist():
        if gain[row] > 0 and len(shown) < _EXAMPLES:
            shown.setdefault(int(units[row]), questions[row])
    return tuple(shown.values())


@dataclass(frozen=True)
class RehearsalReport:
    """Two retrievers, side by side, on a sample of a collection.

    ``questions`` has captions, logged queries, or both. ``n_unjudged`` counts logged queries without a clicked picture
    in the sample; ``overlap`` is the share of their first ten answers that both retrievers have in common. ``seconds``
    is what encoding the sample took, ``reencode_seconds`` what changing the whole collection would take at that pace.
    ``notes`` are what a reader should know before believing the numbers.
    """

    old: str
    old_fingerprint: str
    new: str
    new_fingerprint: str
    n_sample: int
    n_captioned: int
    n_clicked: int
    n_pictures: int
    n_captions: int
    random_state: int
    alpha: float
    questions: tuple[RehearsedQuestions, ...]
    n_unjudged: int
    overlap: float | None
    seconds: float
    reencode_seconds: float
    reads_pictures: bool
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What all kinds of questions say together; a kind that cannot tell stands back."""
        said = {group.outcome(self.alpha) for group in self.questions} - {"undecided"}
        if len(said) > 1:
            return "mixed"
        return said.pop() if said else "undecided"

    @property
    def verdict(self) -> tuple[str, ...]:
        """The outcome of each kind of question in plain words."""
        return tuple(self._sentence(group) for group in self.questions)

    @property
    def sampled(self) -> str:
        """What was drawn, in words."""
        whole = f"all {counted(self.n_sample, 'picture')}"
        part = f"{self.n_sample:,} of {counted(self.n_pictures, 'picture')}, those with captions or clicks first"
        drawn = whole if self.n_sample == self.n_pictures else part
        return f"{drawn} ({self.n_captioned:,} with captions, {self.n_clicked:,} clicked)"

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with the outcome and the verdict."""
        return {**asdict(self), "outcome": self.outcome, "verdict": list(self.verdict)}

    def _sentence(self, group: RehearsedQuestions) -> str:
        main, outcome = group.differences[0], group.outcome(self.alpha)
        chance = f"p = {main.p_value:.3f}" if main.p_value >= 0.001 else "p < 0.001"
        numbers = f"{main.measure} {main.old:.2f} → {main.new:.2f}, {chance} over {group.counted}"
        if outcome == "undecided":
            return f"No difference between {self.old} and {self.new} that luck may not bring: {numbers}"
        return f"{self.new} is {outcome}: {numbers}"


def reencoding_words(report: RehearsalReport) -> str:
    """Return what changing the whole collection would take, in words."""
    whole = f"{counted(report.n_pictures, 'picture')} and {counted(report.n_captions, 'caption')}"
    if not report.reads_pictures:
        return f"Changing over reads no picture: the new points of {whole} are made from stored features."
    seconds = report.reencode_seconds
    hours, minutes = seconds / 3600, seconds / 60
    told = f"{hours:.1f} hours" if hours >= 2 else f"{minutes:.0f} minutes" if minutes >= 2 else f"{seconds:.0f} s"
    return f"Encoding {whole} for it would take about {told} on this machine, at the pace of the sample."


def unjudged_words(report: RehearsalReport, overlap: float) -> str:
    """Return what can be said of logged queries without a clicked picture in the sample."""
    verb = "has" if report.n_unjudged == 1 else "have"
    unjudged = counted(report.n_unjudged, "logged query", "logged queries")
    return (
        f"{unjudged} {verb} no clicked picture here, so that nothing "
        f"says which answers are right. Of the first ten, both search models have {overlap:.0%} in common."
    )
