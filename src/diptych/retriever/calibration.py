"""From scores to probabilities of relevance, learned from pairs that the model has not seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.data import Pairs
from diptych.encoders import imagenet_concepts
from diptych.encoders.text.word_pipeline import find_stop_words
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.estimators import BaseEstimator
from diptych.space import SEARCH_DIRECTIONS, SearchDirection, Space

_SLOPE_PENALTY = 1e-9
_MOST_SCORES = 300_000
_USUAL_CUTOFF = 0.1
_WORD = re.compile(r"[a-z]{3,}")


class Calibration(BaseEstimator):
    """The probability that an answer is relevant, given its score: p = σ(α + β·score), one line per direction.

    The line is fitted by logistic regression on pairs that the model has not seen: what belongs together against what
    does not. How common relevant items are decides α, and no set of pairs can tell it for another collection, so it is
    stated: ``prior`` is the share of a collection taken to be relevant to a query, before looking. Judgements of a
    user's own answers, drawn as the answers come, need no such assumption: pass ``prior=None``.

    Platt, "Probabilistic outputs for support vector machines", 1999; King and Zeng, "Logistic regression in rare
    events data", 2001, for the prior.

    Parameters
    ----------
    prior : float or None
        The share of relevant items; None takes the share in the data given to `fit`.

    Attributes
    ----------
    intercepts_, slopes_ : arrays of four numbers, in the order of ``SEARCH_DIRECTIONS``.
    cutoff_ : float
        The probability below which the best answer is no good match; 0.1 unless held-out queries have said better.
    cutoffs_ : array of two rows, only where short queries were held out from enough pictures
        Numbers of pictures, and the cut-off among so many.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.retriever import Calibration
    >>> rng = np.random.default_rng(0)
    >>> relevant = rng.random(4000) < 0.5
    >>> scores = rng.normal(size=4000) + 2 * relevant
    >>> calibration = Calibration(prior=0.5).fit({"text_to_image": (scores, relevant)})
    >>> calibration.probability([1.0], "text_to_image").round(1).tolist()
    [0.5]
    """

    intercepts_: FloatArray
    slopes_: FloatArray
    cutoff_: float
    cutoffs_: FloatArray

    def __init__(self, *, prior: float | None = 0.01) -> None:
        self.prior = prior

    def fit(self, judged: Mapping[SearchDirection, tuple[ArrayLike, ArrayLike]]) -> Self:
        """Learn from scores and relevance (0 to 1) of each direction; one that is absent borrows text_to_image."""
        if not judged:
            raise InvalidInputError("calibration needs the scores and relevance of at least one direction")
        if self.prior is not None and not 0 < self.prior < 1:
            raise InvalidInputError(f"prior must lie between 0 and 1, got {self.prior}")
        lines = {direction: self._line(*values, direction) for direction, values in judged.items()}
        spare = lines.get("text_to_image", next(iter(lines.values())))
        chosen = [lines.get(direction, spare) for direction in SEARCH_DIRECTIONS]
        self.intercepts_ = np.array([intercept for intercept, _ in chosen])
        self.slopes_ = np.array([slope for _, slope in chosen])
        self.cutoff_ = _USUAL_CUTOFF
        return self

    @classmethod
    def assumed(cls, slope: float, intercepts: ArrayLike) -> Self:
        """Return what stands in until pairs or judgements say more: lines of one slope, with the usual cut-off."""
        assumed = cls()
        assumed.slopes_ = np.full(len(SEARCH_DIRECTIONS), slope)
        assumed.intercepts_ = np.full(len(SEARCH_DIRECTIONS), intercepts)
        assumed.cutoff_ = _USUAL_CUTOFF
        return assumed

    def probability(self, scores: ArrayLike, direction: SearchDirection) -> FloatArray:
        """Return the probability of relevance of each score."""
        place = _place(direction)
        values = np.asarray(scores, dtype=np.float64)
        return np.asarray(expit(self.intercepts_[place] + self.slopes_[place] * values))

    def cutoff_among(self, count: int) -> float:
        """Return the cut-off of a search among so many items: the fewer, the lower the best of them scores.

        Between the numbers that were tried it goes by the logarithm of both, beyond them it stays.
        """
        if not hasattr(self, "cutoffs_"):
            return self.cutoff_
        numbers, cutoffs = np.log(self.cutoffs_)
        return float(np.exp(np.interp(np.log(max(count, 1)), numbers, cutoffs)))

    def slope(self, direction: SearchDirection) -> float:
        """Return by how much a unit of score raises the logarithm of the odds that an answer is relevant."""
        return float(self.slopes_[_place(direction)])

    def _line(self, scores: ArrayLike, relevance: ArrayLike, direction: str) -> tuple[float, float]:
        values: FloatArray = np.asarray(scores, dtype=np.float64).ravel()
        truth: FloatArray = np.asarray(relevance, dtype=np.float64).ravel()
        if values.shape != truth.shape or not 0 < truth.sum() < len(truth):
            raise InvalidInputError(f"{direction}: calibration needs scores of relevant and of irrelevant answers")
        values, truth, counts = _thinned(values, truth)
        share = float(np.average(truth, weights=counts)) if self.prior is None else self.prior
        relevant, other = counts * truth, counts * (1 - truth)
        relevant, other = relevant * (share / relevant.sum()), other * ((1 - share) / other.sum())
        return _weighted_logistic(values, relevant / (relevant + other), relevant + other)


def _place(direction: SearchDirection) -> int:
    if direction not in SEARCH_DIRECTIONS:
        raise UnknownNameError("search direction", direction, SEARCH_DIRECTIONS)
    return SEARCH_DIRECTIONS.index(direction)


def _thinned(values: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Keep what is relevant and a draw of the rest, with how many each one stands for."""
    is_relevant = truth > 0.5
    others = np.flatnonzero(~is_relevant)
    room = max(1, _MOST_SCORES - int(is_relevant.sum()))
    if len(others) <= room:
        return values, truth, np.ones(len(values))
    drawn = np.random.default_rng(0).choice(others, room, replace=False)
    kept = np.concatenate([np.flatnonzero(is_relevant), drawn])
    return values[kept], truth[kept], np.where(is_relevant[kept], 1.0, len(others) / room)


def _weighted_logistic(values: FloatArray, targets: FloatArray, weights: FloatArray) -> tuple[float, float]:
    middle, spread = float(np.average(values, weights=weights)), float(values.std()) or 1.0
    standard = (values - middle) / spread

    def loss(line: FloatArray) -> tuple[float, FloatArray]:
        logits = line[0] + line[1] * standard
        value = -(weights * (targets * log_expit(logits) + (1 - targets) * log_expit(-logits))).sum()
        error = weights * (expit(logits) - targets)
        penalty = _SLOPE_PENALTY * line[1] ** 2
        return float(value + penalty), np.array([error.sum(), error @ standard + 2 * _SLOPE_PENALTY * line[1]])

    # A larger score never means less: the ranking is the model's, the probability only reads it.
    bounds = [(None, None), (1e-6, None)]
    exact = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    found = scipy.optimize.minimize(
        loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=bounds, options=exact
    )
    intercept, slope = found.x
    return float(intercept - slope * middle / spread), float(slope / spread)


_MOST_PICTURES, _MOST_TEXTS, _ENOUGH_FOR_FIFTHS = 1000, 3000, 500


def calibrate(
    space: Space,
    image_points: AnyArray,
    text_points: AnyArray,
    pairs: Pairs,
    prior: float,
    *,
    short_points: AnyArray | None = None,
) -> Calibration:
    """Fit a calibration on held-out pairs.

    With labels an answer is relevant when it shares one with the query. Without, a text is relevant to its own picture
    and to the other texts of that picture, which undercounts: ``prior`` says how many others fit. No pairs tell which
    two pictures belong together, so picture-to-picture search learns the probability that their captions describe one.
    The cut-off is what the best answers to 99 % of the held-out texts reach, each with a picture to find. A word
    or two get lower scores than a caption does: ``short_points`` are such queries with a picture to find among the
    held-out ones, and the cut-off is then what 95 % of the texts and the short queries reach, each kind counting as
    much as the other. The fewer pictures there are, the lower is the best score of a word that fits many: where there
    are enough, short queries are also asked among a fifth of the pictures at a time, for `Calibration.cutoff_among`.
    """
    rows = np.random.default_rng(0).permutation(pairs.n_images)[:_MOST_PICTURES]
    texts = np.flatnonzero(np.isin(pairs.owners, rows))
    texts = np.sort(np.random.default_rng(1).permutation(texts)[:_MOST_TEXTS])
    images_at, texts_at = image_points[rows], text_points[texts]
    places = np.full(pairs.n_images, -1)
    places[rows] = np.arange(len(rows))
    owners = places[pairs.owners[texts]]
    across: Across = {
        "text_to_image": space.compare(texts_at, images_at, "text_query"),
        "image_to_text": space.compare(images_at, texts_at, "image_query").T,
    }
    among_texts = space.compare(texts_at, texts_at, "text_query")
    among_images = space.compare(images_at, images_at)
    if pairs.labels is not None and pairs.text_labels is not None:
        fitted = _by_labels(across, among_texts, among_images, pairs.labels[rows], pairs.text_labels[texts])
    else:
        fitted = _by_partners(across, among_texts, among_images, owners, prior)
    best = fitted.probability(across["text_to_image"].max(axis=1), "text_to_image")
    fitted.cutoff_ = float(np.quantile(best, 0.01))
    if short_points is not None:
        scores = space.compare(short_points, image_points, "text_query")
        found = fitted.probability(scores.max(axis=1), "text_to_image")
        fitted.cutoff_ = shared_quantile([best, found], 0.05)
        count = scores.shape[1]
        if count >= _ENOUGH_FOR_FIFTHS:
            found = fitted.probability(_best_of_fifths(scores), "text_to_image")
            few = min(shared_quantile([best, found], 0.05), fitted.cutoff_)
            fitted.cutoffs_ = np.array([[count / 5, count], [few, fitted.cutoff_]])
    return fitted


def _best_of_fifths(scores: FloatArray) -> FloatArray:
    """Return the best score of each query among a fifth of the pictures: the median over the fifths."""
    fifths = np.array_split(np.random.default_rng(0).permutation(scores.shape[1]), 5)
    return np.asarray(np.median([scores[:, fifth].max(axis=1) for fifth in fifths], axis=0))


def short_queries(pairs: Pairs) -> list[str]:
    """Return single words that people may ask for pictures with: names of things in the captions of some of them.

    A word counts that names a concept of ImageNet, alone or without its plural's s, in the captions of at least one
    picture in a hundred.

    >>> from diptych.data import Pairs
    >>> from diptych.retriever.calibration import short_queries
    >>> short_queries(Pairs(["1.jpg", "2.jpg"], ["two dogs on a beach", "it is very nice there"]))
    ['beach', 'dogs']
    """
    concepts = {concept.lower() for concept in imagenet_concepts()}
    pictures: dict[str, set[int]] = {}
    for owner, text in zip(pairs.owners.tolist(), pairs.texts, strict=True):
        for word in set(_WORD.findall(text.lower())) - find_stop_words("english"):
            if word in concepts or word.removesuffix("s") in concepts:
                pictures.setdefault(word, set()).add(owner)
    return sorted(word for word, seen in pictures.items() if len(seen) >= 0.01 * pairs.n_images)


def shared_quantile(parts: list[FloatArray], share: float) -> float:
    """Return the value below which a share of all parts lies, each part counting as much as the others."""
    values = np.concatenate(parts)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[np.searchsorted(below, share)]])


Across = Mapping[SearchDirection, FloatArray]


def _by_labels(
    across: Across, among_texts: FloatArray, among_images: FloatArray, of_images: AnyArray, of_texts: AnyArray
) -> Calibration:
    between = _agree(of_texts, of_images)
    judged: dict[SearchDirection, tuple[FloatArray, FloatArray]] = {
        **{way: (scores, between) for way, scores in across.items()},
        "image_to_image": _without_self(among_images, _agree(of_images, of_images)),
        "text_to_text": _without_self(among_texts, _agree(of_texts, of_texts)),
    }
    return Calibration(prior=None).fit({way: pair for way, pair in judged.items() if 0 < pair[1].mean() < 1})


def _by_partners(
    across: Across, among_texts: FloatArray, among_images: FloatArray, owners: IntArray, prior: float
) -> Calibration:
    partners = (owners[:, None] == np.arange(among_images.shape[0])[None, :]).astype(np.float64)
    judged: dict[SearchDirection, tuple[FloatArray, FloatArray]]
    judged = {way: (scores, partners) for way, scores in across.items()}
    siblings = _without_self(among_texts, (owners[:, None] == owners[None, :]).astype(np.float64))
    if siblings[1].sum() == 0:
        return Calibration(prior=prior).fit(judged)
    judged["text_to_text"] = siblings
    through_texts = Calibration(prior=prior).fit(judged).probability(among_texts, "text_to_text")
    means = partners / np.maximum(partners.sum(axis=0), 1)
    judged["image_to_image"] = _without_self(among_images, means.T @ through_texts @ means)
    return Calibration(prior=prior).fit(judged)


def _agree(first: AnyArray, second: AnyArray) -> FloatArray:
    if first.ndim == 1:
        return np.asarray(first[:, None] == second[None, :], dtype=np.float64)
    return (first.astype(np.float64) @ second.astype(np.float64).T > 0).astype(np.float64)


def _without_self(scores: FloatArray, relevance: FloatArray) -> tuple[FloatArray, FloatArray]:
    others: BoolArray = ~np.eye(len(scores), dtype=bool)
    return scores[others], relevance[others]
