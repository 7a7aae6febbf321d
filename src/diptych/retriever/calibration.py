"""From scores to probabilities of relevance, learned from pairs that the model has not seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data import Pairs
from diptych.encoders.text.visualness import concept_names
from diptych.encoders.text.word_pipeline import find_stop_words
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.estimators import BaseEstimator
from diptych.metrics import AP, SharedLabel, evaluate_scores
from diptych.space import SEARCH_DIRECTIONS, SearchDirection, Space

_SLOPE_PENALTY = 1e-9
_MOST_SCORES = 300_000
_USUAL_CUTOFF = 0.1
_USUAL_SHARE = 0.5
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
    short_line_ : array of two numbers, only where short queries were held out
        Intercept and slope of a word or two that look for pictures: they fit many pictures, each with a lower score.
    presence_ : array, only where queries for what is and for what is not there were compared
        What the least score of a match is, linear in the logarithm of the number of pictures, whether the query is
        short, and how near the model's bank is to it (`QueryBankNormalized.familiarity`); the constant comes first.
    line_shares_ : array of two numbers
        As a share of the best answer's probability, where the good answers end: of short queries and of others.
    copy_line_ : array of two numbers, only where copies of pictures were compared
        Intercept and slope of a picture being a copy of another: saved again, or its mirror image.
    joined_share_ : float, only where words were held out that some pictures show together
        The cut-off of words joined by a plus, as a share of a single one's: what shows both shows each less clearly.

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
    short_line_: FloatArray
    presence_: FloatArray
    line_shares_: FloatArray
    copy_line_: FloatArray
    joined_share_: float

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

    def probability(self, scores: ArrayLike, direction: SearchDirection, *, is_short: bool = False) -> FloatArray:
        """Return the probability of relevance of each score; ``is_short`` for a word or two that look for pictures."""
        place = _place(direction)
        intercept, slope = self.intercepts_[place], self.slopes_[place]
        if is_short and direction == "text_to_image" and hasattr(self, "short_line_"):
            intercept, slope = self.short_line_
        logits = intercept + slope * np.asarray(scores, dtype=np.float64)
        likely = _expit(logits)
        if direction == "image_to_image" and hasattr(self, "copy_line_"):
            of_copy = _expit(self.copy_line_[0] + self.copy_line_[1] * np.asarray(scores, dtype=np.float64))
            likely = 1 - (1 - likely) * (1 - of_copy)
        return likely

    def cutoff_among(self, count: int, *, is_short: bool = False, is_joined: bool = False) -> float:
        """Return the cut-off of a search among so many items: the fewer, the lower the best of them scores.

        Between the numbers that were tried it goes by the logarithm of both, beyond them it stays. A score that is no
        good match for a caption is none for a word either, whatever its probability is then. ``is_joined`` for the mean
        probability of several such words at once.
        """
        cutoff = self.cutoff_
        if hasattr(self, "cutoffs_"):
            numbers, cutoffs = np.log(self.cutoffs_)
            cutoff = float(np.exp(np.interp(np.log(max(count, 1)), numbers, cutoffs)))
        if not (is_short and 0 < cutoff < 1):
            return cutoff
        score = (np.log(cutoff / (1 - cutoff)) - self.intercepts_[0]) / self.slopes_[0]
        of_word = float(self.probability(score, "text_to_image", is_short=True))
        return of_word * getattr(self, "joined_share_", 1.0) if is_joined else of_word

    def cutoff_of(self, familiarity: FloatArray, count: int, *, is_short: bool) -> float:
        """Return the cut-off of one text among so many pictures, by what the model's bank knows of it."""
        known = np.concatenate([[1.0, np.log(max(count, 1)), float(is_short)], familiarity])
        return float(self.probability(known @ self.presence_, "text_to_image", is_short=is_short))

    def line_share(self, *, is_short: bool) -> float:
        """Return the share of the best answer's probability above which an answer to a text is good."""
        return float(self.line_shares_[0 if is_short else 1]) if hasattr(self, "line_shares_") else _USUAL_SHARE

    def rescaled(self, factor: float) -> Self:
        """Return the same probabilities for scores that are so many times smaller."""
        alike = deepcopy(self)
        alike.slopes_ = self.slopes_ * factor
        if hasattr(self, "short_line_"):
            alike.short_line_ = self.short_line_ * (1.0, factor)
        return alike

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


def _expit(logits: FloatArray) -> FloatArray:
    # SciPy has this function, and importing it takes longer than a search.
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-logits)))


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
        value = -(
            weights * (targets * scipy.special.log_expit(logits) + (1 - targets) * scipy.special.log_expit(-logits))
        ).sum()
        error = weights * (scipy.special.expit(logits) - targets)
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


_MOST_PICTURES, _MOST_TEXTS, _ENOUGH_PICTURES = 1000, 3000, 500
# Joined words: so many pairs, each in the captions of one picture in two hundred.
_FEWEST_JOINED, _MOST_JOINED, _TOGETHER = 20, 1000, 0.005


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """The scores of a model among pairs that it has not seen, and which of them belong together; rows are texts.

    With labels an answer is relevant when it shares one with the query. Without, a text is relevant to its own picture
    and to the other texts of that picture, which undercounts: `calibrate` is told how many others fit. ``short`` are
    scores of words that have a picture to find, ``short_belong`` the pictures whose captions hold them.
    """

    text_to_image: FloatArray
    image_to_text: FloatArray
    among_texts: FloatArray
    among_images: FloatArray
    belong: FloatArray
    texts_belong: FloatArray
    images_belong: FloatArray | None
    short: FloatArray | None = None
    short_belong: BoolArray | None = None

    @classmethod
    def of(
        cls,
        space: Space,
        image_points: AnyArray,
        text_points: AnyArray,
        pairs: Pairs,
        *,
        short_points: AnyArray | None = None,
        short_belong: BoolArray | None = None,
    ) -> Self:
        """Compare the points of held-out pairs, of a draw of them where there are very many."""
        rows = np.random.default_rng(0).permutation(pairs.n_images)[:_MOST_PICTURES]
        texts = np.flatnonzero(np.isin(pairs.owners, rows))
        texts = np.sort(np.random.default_rng(1).permutation(texts)[:_MOST_TEXTS])
        images_at, texts_at = image_points[rows], text_points[texts]
        among_images: FloatArray | None
        if pairs.labels is not None and pairs.text_labels is not None:
            of_images, of_texts = pairs.labels[rows], pairs.text_labels[texts]
            belong, among_texts = _agree(of_texts, of_images), _agree(of_texts, of_texts)
            among_images = _agree(of_images, of_images)
        else:
            places = np.full(pairs.n_images, -1)
            places[rows] = np.arange(len(rows))
            owners = places[pairs.owners[texts]]
            belong, among_texts, among_images = _agree(owners, np.arange(len(rows))), _agree(owners, owners), None
        return cls(
            space.compare(texts_at, images_at, "text_query"),
            space.compare(images_at, texts_at, "image_query").T,
            space.compare(texts_at, texts_at, "text_query"),
            space.compare(images_at, images_at),
            belong,
            among_texts,
            among_images,
            None if short_points is None else space.compare(short_points, image_points, "text_query"),
            short_belong,
        )


def calibrate(parts: Sequence[HeldOutScores], prior: float) -> Calibration:
    """Fit a calibration on held-out scores: of one model, or of several that were learned from other folds each.

    No pairs tell which two pictures belong together, so without labels picture-to-picture search learns the probability
    that their captions describe one. The cut-off is what the best answers to 99 % of the held-out texts reach, each
    with a picture to find. A word or two get lower scores than a caption does: with short queries, the cut-off is what
    95 % of the texts and of these reach, each kind counting as much as the other; a word that the model finds hardly
    better than chance does has no good match, and does not count. Two of the others that some pictures show together
    are joined, for what 95 % of such pairs reach. The fewer pictures there are, the lower is the best score of a word
    that fits many: where there are enough, short queries are also asked among a fifth of the pictures at a time, for
    `Calibration.cutoff_among`.
    """
    fitted = _by_partners(parts, prior) if parts[0].images_belong is None else _by_labels(parts)

    def probability(best: list[FloatArray]) -> FloatArray:
        return fitted.probability(np.concatenate(best), "text_to_image")

    best = probability([part.text_to_image.max(axis=1) for part in parts])
    fitted.cutoff_ = float(np.quantile(best, 0.01))
    asked = [part.short[kept] for part in parts if part.short is not None and (kept := _findable(part)).any()]
    if asked:
        fitted.cutoff_ = shared_quantile([best, probability([scores.max(axis=1) for scores in asked])], 0.05)
        count = min(scores.shape[1] for scores in asked)
        if count >= _ENOUGH_PICTURES:
            fifths = [np.array_split(np.random.default_rng(0).permutation(part.shape[1]), 5) for part in asked]
            best_of = [[part[:, some].max(axis=1) for some in five] for part, five in zip(asked, fifths, strict=True)]
            found = probability([np.median(each, axis=0) for each in best_of])
            few = min(shared_quantile([best, found], 0.05), fitted.cutoff_)
            fitted.cutoffs_ = np.array([[count / 5, count], [few, fitted.cutoff_]])
    judged = [(part.short, part.short_belong) for part in parts if part.short is not None]
    known = [(scores, belong.astype(np.float64)) for scores, belong in judged if belong is not None]
    if known and 0 < np.mean([belong.mean() for _, belong in known]) < 1:
        # How many pictures a word fits is seen in their captions: nothing is assumed.
        words = Calibration(prior=None).fit({"text_to_image": _pooled(known)})
        fitted.short_line_ = np.array([words.intercepts_[0], words.slopes_[0]])
        joined = np.concatenate([_best_together(part, fitted) for part in parts])
        if len(joined) >= _FEWEST_JOINED:
            single = fitted.cutoff_among(max(scores.shape[1] for scores, _ in known), is_short=True)
            fitted.joined_share_ = min(1.0, float(np.quantile(joined, 0.05)) / single)
    return fitted


def _best_together(part: HeldOutScores, fitted: Calibration) -> FloatArray:
    """Return the best mean probability of two words at once, for a draw of those that some pictures show together."""
    if part.short is None or part.short_belong is None:
        return np.zeros(0)
    found = _findable(part)
    belong, likely = part.short_belong[found], fitted.probability(part.short[found], "text_to_image", is_short=True)
    shared = belong.astype(np.float32) @ belong.T.astype(np.float32)
    pairs = np.argwhere(np.triu(shared, 1) >= max(_TOGETHER * belong.shape[1], 2))
    drawn = np.random.default_rng(0).permutation(pairs)[:_MOST_JOINED]
    return np.array([np.sqrt((likely[one] * likely[other]).max()) for one, other in drawn])


def _findable(part: HeldOutScores) -> BoolArray:
    """Return which of the short queries find their pictures at least twice as early as chance does.

    Of few pictures too few have a word to tell, and all count.
    """
    assert part.short is not None
    if part.short_belong is None or part.short.shape[1] < _ENOUGH_PICTURES:
        return np.ones(len(part.short), dtype=bool)
    relevance = SharedLabel(np.eye(len(part.short), dtype=bool), part.short_belong.T)
    precisions = evaluate_scores(part.short, relevance, [AP()], empty="zero").values[AP()]
    return np.asarray(precisions >= 2 * part.short_belong.mean(axis=1))


def short_queries(pairs: Pairs) -> list[str]:
    """Return single words that people may ask for pictures with: names of things in the captions of some of them.

    A word counts that names a concept of ImageNet, alone or without its plural's s, in the captions of at least one
    picture in a hundred.

    >>> from diptych.data import Pairs
    >>> from diptych.retriever.calibration import short_queries
    >>> short_queries(Pairs(["1.jpg", "2.jpg"], ["two dogs on a beach", "it is very nice there"]))
    ['beach', 'dogs']
    """
    concepts = concept_names()
    words = _pictures_by_word(pairs, find_stop_words("english"))
    named = (word for word in words if word in concepts or word.removesuffix("s") in concepts)
    return sorted(word for word in named if len(words[word]) >= 0.01 * pairs.n_images)


def pictures_with(words: Sequence[str], pairs: Pairs) -> BoolArray:
    """Return which pictures (columns) have a word in their captions, in the singular or with an s."""
    known, has = _pictures_by_word(pairs, frozenset()), np.zeros((len(words), pairs.n_images), dtype=bool)
    for row, word in enumerate(words):
        for form in (word, f"{word}s", word.removesuffix("s")):
            has[row, sorted(known.get(form, ()))] = True
    return has


def _pictures_by_word(pairs: Pairs, left_out: frozenset[str]) -> dict[str, set[int]]:
    pictures: dict[str, set[int]] = {}
    for owner, text in zip(pairs.owners.tolist(), pairs.texts, strict=True):
        for word in set(_WORD.findall(text.lower())) - left_out:
            pictures.setdefault(word, set()).add(owner)
    return pictures


def shared_quantile(parts: list[FloatArray], share: float) -> float:
    """Return the value below which a share of all parts lies, each part counting as much as the others."""
    values = np.concatenate(parts)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[np.searchsorted(below, share)]])


Judged = dict[SearchDirection, tuple[FloatArray, FloatArray]]


def _across(parts: Sequence[HeldOutScores]) -> Judged:
    return {
        "text_to_image": _pooled([(part.text_to_image, part.belong) for part in parts]),
        "image_to_text": _pooled([(part.image_to_text, part.belong) for part in parts]),
        "text_to_text": _pooled([_without_self(part.among_texts, part.texts_belong) for part in parts]),
    }


def _pooled(parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    scores, relevance = zip(*parts, strict=True)
    return np.concatenate([part.ravel() for part in scores]), np.concatenate([part.ravel() for part in relevance])


def _by_labels(parts: Sequence[HeldOutScores]) -> Calibration:
    judged = _across(parts)
    alike = [(part.among_images, part.images_belong) for part in parts if part.images_belong is not None]
    judged["image_to_image"] = _pooled([_without_self(*part) for part in alike])
    return Calibration(prior=None).fit({way: pair for way, pair in judged.items() if 0 < pair[1].mean() < 1})


def _by_partners(parts: Sequence[HeldOutScores], prior: float) -> Calibration:
    judged = _across(parts)
    if judged["text_to_text"][1].sum() == 0:
        del judged["text_to_text"]
        return Calibration(prior=prior).fit(judged)
    texts = Calibration(prior=prior).fit(judged)
    described = []
    for part in parts:
        means = part.belong / np.maximum(part.belong.sum(axis=0), 1)
        through_texts = texts.probability(part.among_texts, "text_to_text")
        described.append(_without_self(part.among_images, means.T @ through_texts @ means))
    judged["image_to_image"] = _pooled(described)
    return Calibration(prior=prior).fit(judged)


def _agree(first: AnyArray, second: AnyArray) -> FloatArray:
    if first.ndim == 1:
        return np.asarray(first[:, None] == second[None, :], dtype=np.float64)
    return (first.astype(np.float64) @ second.astype(np.float64).T > 0).astype(np.float64)


def _without_self(scores: FloatArray, relevance: FloatArray) -> tuple[FloatArray, FloatArray]:
    others: BoolArray = ~np.eye(len(scores), dtype=bool)
    return scores[others], relevance[others]
