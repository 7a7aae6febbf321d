"""Why an answer is there, for every kind of model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.text.word_pipeline import find_stop_words
from diptych.errors import InvalidInputError, counted
from diptych.models import CrossModalModel, FusedModel, Random
from diptych.retriever.explaining.explanation import (
    Contribution,
    ExplainedTerm,
    Explanation,
    ExplanationKind,
    View,
    ViewKind,
    listed,
    quoted,
)
from diptych.retriever.explaining.label_views import ClassProbabilities, SeenLabels
from diptych.retriever.explaining.match import Explainer, Match, Subject, inner_model, term_factors
from diptych.retriever.retriever import Retriever

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_MOST_WORDS = 20
_NAMED = 3
# A word that moves the score by less than this share of what the strongest one does is not worth a mention.
_WORTH_NAMING = 0.2


class LeftOutWords(Explainer):
    """For every model with a text on either side: what the score loses when each word is left out.

    Li, Monroe and Jurafsky, "Understanding neural networks through representation erasure", 2016.
    """

    kind: ClassVar[ViewKind] = "words"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Return True if points follow from what the text says."""
        return not isinstance(inner_model(model), Random)

    def views(self, match: Match) -> list[View]:
        """Return the words of the query, then those of the answer, where they are texts."""
        if not self.reads_model(match.retriever.model_):
            return []
        views = [self._view(match, side) for side in (match.query, match.answer) if side.words is not None]
        return [view for view in views if view is not None]

    def _view(self, match: Match, side: Subject) -> View | None:
        words = side.words or ""
        chosen, n_skipped = _chosen(words)
        if not chosen:
            return None
        without = [" ".join((words[: word.start()] + words[word.end() :]).split()) for word in chosen]
        scores = match.scores_instead(side, match.text_points(side, without))
        whole = match.score
        # Nothing is left without an only word: it brings the whole score.
        alone = whole - match.score_of_nothing
        losses = [whole - float(score) if rest else alone for rest, score in zip(without, scores, strict=True)]
        bars = [Contribution(word[0], None, None, loss) for word, loss in zip(chosen, losses, strict=True)]
        title = "Words of the query" if side is match.query else "Words of the text"
        note = (
            f"Each word was left out and the rest encoded again: its contribution is what the score, {whole:.3f}, "
            "loses. Words help each other, so the losses do not add up to it."
        )
        note += f" {counted(n_skipped, 'word')} of this long text were not tried." if n_skipped else ""
        note += _correction_note(match)
        return View(self.kind, title, _left_out_sentence(match, bars), tuple(bars), note)


def _chosen(text: str) -> tuple[list[re.Match[str]], int]:
    """Return the words to leave out in turn; of a long text the first that are not mere function words."""
    words = list(_WORD.finditer(text))
    if len(words) <= _MOST_WORDS:
        return words, 0
    dropped = find_stop_words("english")
    telling = [word for word in words if word[0].lower() not in dropped][:_MOST_WORDS]
    return telling, len(words) - len(telling)


def _left_out_sentence(match: Match, bars: list[Contribution]) -> str:
    dropped = find_stop_words("english")
    telling = [bar for bar in bars if bar.name.lower() not in dropped and len(bar.name) > 1] or bars
    least = _WORTH_NAMING * max(abs(bar.contribution) for bar in telling)
    ranked = sorted(telling, key=lambda bar: -abs(bar.contribution))
    named = [bar for bar in ranked if abs(bar.contribution) >= least and bar.contribution != 0]
    wanted = [quoted(bar.name) for bar in named if bar.contribution > 0][:_NAMED]
    unwanted = [quoted(bar.name) for bar in named if bar.contribution < 0][:_NAMED]
    noun = f"this {match.answer_noun}"
    if not wanted and not unwanted:
        return f"No single word decides about {noun}."
    parts = []
    if wanted:
        parts.append(f"{listed(wanted)} matched {noun} best")
    if unwanted:
        parts.append(
            f"{listed(unwanted)} {'counts' if len(unwanted) == 1 else 'count'} against {'it' if wanted else noun}"
        )
    return "; ".join(parts) + "."


def _correction_note(match: Match) -> str:
    if match.space.name != "corrected" or match.query.side == match.answer.side:
        return ""
    others = "texts" if match.answer.side == "image" else "pictures"
    return (
        f" {float(match.answer.point[0, -2]):.3f} was taken off it beforehand, because that is how near this "
        f"{match.answer_noun} lies to ordinary {others}, whatever is asked."
    )


class FusedParts(Explainer):
    """For a fusion of models: the score is the sum of what its parts bring, weight × score / scale each."""

    kind: ClassVar[ViewKind] = "parts"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Return True if the model is a fusion."""
        return isinstance(inner_model(model), FusedModel)

    def views(self, match: Match) -> list[View]:
        """Return one bar for each part, the weightiest first; they sum to the score."""
        model = inner_model(match.retriever.model_)
        if not isinstance(model, FusedModel):
            return []
        brought = model.contributions(match.query.point, match.answer.point)
        bars = [Contribution(name, None, None, float(values[0])) for name, values in brought.items()]
        bars.sort(key=lambda bar: -abs(bar.contribution))
        told = [_brought(bar) for bar in bars if bar.contribution != 0]
        nothing = f"No part of the model says anything about this {match.answer_noun}."
        sentence = f"Of the score {match.score:.2f}, {listed(told)}." if told else nothing
        weights = [f"{name} {weight:.2f}" for name, weight in zip(model.part_names_, model.weights_, strict=True)]
        note = f"The model is a sum of parts with the weights {listed(weights)}; the bars add up to the score."
        return [View(self.kind, "Parts of the model", sentence, tuple(bars), note, remainder=0.0)]


def _brought(part: Contribution | ExplainedTerm) -> str:
    verb = "brings" if part.contribution >= 0 else "takes away"
    return f"{quoted(part.name)} {verb} {abs(part.contribution):.2f}"


# The first that has something to say about a match tells most; the others come as further views.
_KINDS = (FusedParts, ClassProbabilities, LeftOutWords, SeenLabels)
EXPLAINERS: tuple[Explainer, ...] = tuple(kind() for kind in _KINDS)


def explain(
    retriever: Retriever,
    query: Any,
    answer: Any,
    *,
    weights: Sequence[float] | None = None,
    class_names: Sequence[str] | None = None,
) -> Explanation:
    """Return why ``answer`` has its score for ``query``.

    Each kind of model is explained by what its coordinates mean: what each part of a fusion brings; class probabilities
    for semantic models, as in figures 12 and 13 of Costa Pereira et al. (2014); what the score loses without each word
    for projections into a common space; and the labels that a network sees in a picture. See :class:`Explanation`.

    Parameters
    ----------
    retriever :
        The one whose search gave the answer.
    query, answer :
        Words (a string), a picture (a path object, an array, a Pillow image), or a :class:`Subject` with features
        that are known already. A list or tuple of them as the query is a combined query.
    weights :
        One number for each term of a combined query, negative for what the answers should be unlike.
    class_names :
        Names of a semantic model's classes, such as ``Pairs.class_names``, where it learned from numbers or from an
        indicator of several classes; by default the classes as it learned them.

    Examples
    --------
    >>> from diptych import Retriever
    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA
    >>> from diptych.retriever import explain
    >>> pairs = load_dataset("scenes", n_train=120, n_test=20, size=32).train
    >>> parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> retriever = Retriever(model=CCA(n_components=8), cache=False, **parts).fit(pairs, baseline=None)
    >>> explanation = explain(retriever, "a red ball", pairs.images[0])
    >>> explanation.kind, [bar.name for bar in explanation.bars]
    ('words', ['a', 'red', 'ball'])
    """
    if not isinstance(retriever, Retriever):
        raise InvalidInputError(f"a {type(retriever).__name__} cannot be explained; explain a diptych.Retriever")
    terms = list(query) if isinstance(query, (list, tuple)) else [query]
    factors = [1.0] * len(terms) if weights is None else [float(weight) for weight in weights]
    if not terms:
        raise InvalidInputError("the query is empty; give words or a picture")
    if len(terms) != len(factors):
        raise InvalidInputError(f"give one weight for each term, got {len(factors)} for {len(terms)}")
    if any(not np.isfinite(weight) or weight == 0 for weight in factors):
        raise InvalidInputError("the weight of a query term is a number other than 0")
    found = Subject.of(retriever, answer)
    matches = [Match(retriever, Subject.of(retriever, term, asks=True), found, class_names) for term in terms]
    return _explanation(matches, factors)


def explanation_kind(model: Any) -> ExplanationKind:
    """Return the kind of explanation that a model, or a retriever by its model, gives for words and pictures.

    >>> from diptych.models import CCA, SCM, Random
    >>> from diptych.retriever import explanation_kind
    >>> explanation_kind(SCM()), explanation_kind(CCA()), explanation_kind(Random())
    ('classes', 'words', 'none')
    """
    inner = getattr(model, "model_", None) if isinstance(model, Retriever) else model
    if not isinstance(inner, CrossModalModel):
        return "none"
    return next((explainer.kind for explainer in EXPLAINERS if explainer.reads_model(inner)), "none")


def _explanation(matches: Sequence[Match], weights: Sequence[float]) -> Explanation:
    factors = term_factors(matches, weights)
    terms = tuple(
        ExplainedTerm(match.query.name, weight, match.score, float(factor * match.score))
        for match, weight, factor in zip(matches, weights, factors, strict=True)
    )
    views = _views(matches, factors)
    score = sum(term.contribution for term in terms)
    return Explanation(_summary(matches, terms, views, score), score, terms, views)


def _views(matches: Sequence[Match], factors: FloatArray) -> tuple[View, ...]:
    """Return the views of all terms, those of one idea together."""
    views: list[View] = []
    for explainer in EXPLAINERS:
        of_terms = [
            _weighted(view, number, float(factor))
            for number, (match, factor) in enumerate(zip(matches, factors, strict=True))
            for view in explainer.views(match)
        ]
        titles = dict.fromkeys(view.title for view in of_terms)
        views += [_merge([view for view in of_terms if view.title == title]) for title in titles]
    return tuple(views)


def _weighted(view: View, term: int, factor: float) -> View:
    bars = tuple(replace(bar, contribution=factor * bar.contribution, term=term) for bar in view.bars)
    return replace(view, bars=bars, remainder=None if view.remainder is None else factor * view.remainder)


def _merge(views: Sequence[View]) -> View:
    # The strongest term speaks in the sentence; the bars of all are there.
    first = max(views, key=lambda view: view.weight)
    remainders = [view.remainder for view in views if view.remainder is not None]
    return replace(
        first,
        bars=tuple(bar for view in views for bar in view.bars),
        remainder=sum(remainders) if len(remainders) == len(views) else None,
    )


def _summary(matches: Sequence[Match], terms: Sequence[ExplainedTerm], views: Sequence[View], score: float) -> str:
    nameless = (
        f"Query and answer have the score {score:.3f} in the space {matches[0].space.name}, whose coordinates have no "
        "names to tell more."
    )
    told = views[0].sentence if views else nameless
    if len(terms) == 1 and terms[0].weight > 0:
        return told
    return f"Of the score {score:.2f}, {listed([_brought(term) for term in terms])}. {told}"
