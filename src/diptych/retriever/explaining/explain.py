"""Why an answer is there, for every kind of model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.retriever.explaining.class_probabilities import ClassProbabilities
from diptych.retriever.explaining.combination import term_factors
from diptych.retriever.explaining.combined_labels import CombinedLabels
from diptych.retriever.explaining.explained_term import ExplainedTerm
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.explanation import Explanation, ExplanationKind
from diptych.retriever.explaining.feature_pairs import FeaturePairs
from diptych.retriever.explaining.fused_parts import FusedParts
from diptych.retriever.explaining.left_out_words import LeftOutWords
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import listed, quoted
from diptych.retriever.explaining.seen_labels import SeenLabels
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View
from diptych.retriever.retriever import Retriever

# The first that has something to say about a match tells most; the others come as further views.
EXPLAINERS: tuple[Explainer, ...] = (
    FusedParts(),
    ClassProbabilities(),
    CombinedLabels(),
    LeftOutWords(),
    SeenLabels(),
    FeaturePairs(),
)


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
    for semantic models, as in figures 12 and 13 of Costa Pereira et al. (2014); the labels that ConSE mixes; what the
    score loses without each word for projections into a common space; and the pairs of named features of a linear
    projection. See :class:`Explanation`.

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
    _check(terms, factors)
    found = Subject.of(retriever, answer)
    matches = [Match(retriever, Subject.of(retriever, term), found, class_names) for term in terms]
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


def _check(terms: Sequence[Any], weights: Sequence[float]) -> None:
    if not terms:
        raise InvalidInputError("the query is empty; give words or a picture")
    if len(terms) != len(weights):
        raise InvalidInputError(f"give one weight for each term, got {len(weights)} for {len(terms)}")
    if any(not np.isfinite(weight) or weight == 0 for weight in weights):
        raise InvalidInputError("the weight of a query term is a number other than 0")


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
        views += _merged(of_terms)
    return tuple(views)


def _weighted(view: View, term: int, factor: float) -> View:
    bars = tuple(replace(bar, contribution=factor * bar.contribution, term=term) for bar in view.bars)
    return replace(view, bars=bars, remainder=None if view.remainder is None else factor * view.remainder)


def _merged(views: Sequence[View]) -> list[View]:
    titles = dict.fromkeys(view.title for view in views)
    return [_merge([view for view in views if view.title == title]) for title in titles]


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
    told = views[0].sentence if views else _near(matches[0], score)
    if len(terms) == 1 and terms[0].weight > 0:
        return told
    parts = [
        f"{quoted(term.name)} {'brings' if term.contribution >= 0 else 'takes away'} {abs(term.contribution):.2f}"
        for term in terms
    ]
    return f"Of the score {score:.2f}, {listed(parts)}. {told}"


def _near(match: Match, score: float) -> str:
    return (
        f"Query and answer have the score {score:.3f} in the space {match.space.name}, whose coordinates have no "
        "names to tell more."
    )
