"""Models learned from parts of the pairs, tried on the others beside the one that they might replace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data import Pairs
from diptych.data.sample_photographs import sample_photographs
from diptych.encoders.text.word_pipeline import clean_query
from diptych.metrics import AP, bootstrap_difference, randomisation_test
from diptych.protocols import evaluate_model
from diptych.retriever.calibration import Calibration, HeldOutScores, calibrate, short_queries
from diptych.retriever.comparison import Comparison
from diptych.retriever.held_out_pairs import UnpairedItems, evaluate_among, precision_per_picture

if TYPE_CHECKING:
    from diptych.retriever.base import RetrieverBase

_N_GIBBERISH = 50
_PRIOR = 0.01


def with_distinguishing_labels(pairs: Pairs) -> Pairs:
    """Leave out labels that do not tell any two pictures apart: the captions are what is to be found then."""
    if pairs.labels is None or len(np.unique(pairs.labels, axis=0)) > 1:
        return pairs
    return Pairs(pairs.images, pairs.texts, ids=pairs.ids, owners=pairs.owners, text_ids=pairs.text_ids)


def absent_queries(pairs: Pairs) -> list[str]:
    """Return queries for things that no text of the pairs speaks of, for what cannot be seen, and for nothing at all.

    >>> from diptych.data import Pairs
    >>> from diptych.retriever.held_out_trial import absent_queries
    >>> asked = absent_queries(Pairs(["1.jpg", "2.jpg"], ["a vulture in a tree", "a geyser"]))
    >>> "a vulture" in asked, "a hypothesis" in asked, len(asked) == len(set(asked))
    (False, True, True)
    """
    told = {word for text in pairs.texts for word in clean_query(text)}
    listed = Path(__file__).with_name("absent_queries.txt").read_text(encoding="utf-8").splitlines()
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    gibberish = [
        " ".join("".join(rng.choice(letters, rng.integers(4, 10))) for _ in range(rng.integers(1, 4)))
        for _ in range(_N_GIBBERISH)
    ]
    return [*(query for query in listed if told.isdisjoint(clean_query(query))), *gibberish]


class HeldOutTrial:
    """Gathers what new models do with pairs they have not seen, and what the present one does with the same.

    One's own captions say whether something was learned, photographs of the package whether the rest is still known,
    and queries for nothing where the cut-off has to be. Photographs and such queries need encoders, and are left out
    where the pairs are features.

    Parameters
    ----------
    pairs :
        All pairs.
    present :
        What the new model would replace, None where there is nothing.
    unpaired :
        Pictures without texts, among which texts have to find their own as well.
    """

    def __init__(self, pairs: Pairs, present: RetrieverBase | None, unpaired: UnpairedItems | None = None) -> None:
        is_raw = not (pairs.has_image_features or pairs.has_text_features)
        self._present = present
        self._unpaired = unpaired or UnpairedItems()
        self._absent = absent_queries(pairs) if is_raw and present is not None else []
        self._rest = _photographs() if is_raw and present is not None else None
        self._featured: dict[tuple[str, str], Pairs] = {}
        self._new: list[FloatArray] = []
        self._old: list[FloatArray] = []
        self._chance: list[float] = []
        self._rest_new: list[FloatArray] = []
        self._rest_chance = 0.0
        self._scores: list[HeldOutScores] = []
        self._best_absent: list[FloatArray] = []
        self._unknown: list[BoolArray] = []
        self._refused_old: list[BoolArray] = []
        self._answered_old: list[BoolArray] = []
        self._sizes: list[int] = []

    def add(self, new: RetrieverBase, judged: RetrieverBase | None, test: Pairs, featured: Pairs) -> None:
        """Try one part; ``judged`` is the present one, or its like where it had seen these pictures.

        ``featured`` are the held-out pairs with features of the new one.
        """
        evaluated = evaluate_among(new.model_, featured, self._unpaired.featured(new)[0])
        self._new.append(precision_per_picture(evaluated, test.owners))
        self._chance += [evaluated.chance(AP())] * test.n_images
        self._sizes.append(test.n_images)
        pictures = new.images_to_points(featured.images)
        texts = new.texts_to_points(featured.texts)
        self._scores.append(new.held_out_scores(pictures, texts, test, featured))
        if judged is None:
            return
        evaluated = evaluate_among(judged.model_, judged.featured(test), self._unpaired.featured(judged)[0])
        self._old.append(precision_per_picture(evaluated, test.owners))
        if self._rest is not None:
            self._rest_new.append(self._known(new))
            best, unknown = _best(new, pictures, self._absent)
            self._best_absent.append(best)
            self._unknown.append(unknown)
            self._ask_present(judged, test)

    def comparison(self) -> Comparison:
        """Return what was found."""
        new = np.concatenate(self._new)
        found = Comparison(n_held_out=len(new), new=float(np.nanmean(new)), chance=float(np.mean(self._chance)))
        if not self._old or self._present is None:
            return found
        old = np.concatenate(self._old)
        spread = bootstrap_difference(new, old)
        found.set_params(
            baseline=self._present.name,
            old=float(np.nanmean(old)),
            p_value=randomisation_test(new, old).p_value,
            low=spread.low,
            high=spread.high,
        )
        return self._with_rest(found) if self._rest is not None else found

    def calibration(self) -> Calibration:
        """Return the probabilities of held-out scores, with a cut-off that refuses nonsense as the present one did."""
        fitted = calibrate(self._scores, _PRIOR)
        if not self._refused_old or self._present is None:
            return fitted
        found = np.sort(np.where(np.concatenate(self._unknown), 0.0, self._absent_probability(fitted)))
        n_refused = int(np.concatenate(self._refused_old).sum())
        count = int(np.median(self._sizes))
        # A little above the last one that has to be refused: between numbers, cut-offs go through logarithms.
        among = max(fitted.cutoff_among(count), found[n_refused - 1] * (1 + 1e-6) if n_refused else 0.0)
        # Among more pictures nonsense scores more, with the new one as with the present one.
        numbers = np.unique([count, *np.geomspace(100, 100_000, 10).astype(int)])
        present = self._present.cutoff_among(count)
        cutoffs = [min(1.0, among * self._present.cutoff_among(number) / present) for number in numbers.tolist()]
        fitted.cutoffs_ = np.array([numbers, cutoffs], dtype=np.float64)
        fitted.cutoff_ = float(max(cutoffs))
        return fitted

    def _with_rest(self, found: Comparison) -> Comparison:
        assert self._present is not None
        fitted, count = self.calibration(), int(np.median(self._sizes))
        cutoff = fitted.cutoff_among(count)
        old, new = self._known(self._present), np.mean(self._rest_new, axis=0)
        refused = np.concatenate(self._unknown) | (self._absent_probability(fitted) < cutoff)
        best = [part.text_to_image.max(axis=1) for part in self._scores]
        best += [part.short.max(axis=1) for part in self._scores if part.short is not None]
        answered = fitted.probability(np.concatenate(best), "text_to_image") >= cutoff
        found.set_params(
            rest_old=float(old.mean()),
            rest_new=float(new.mean()),
            # What is no better than luck cannot be forgotten.
            rest_low=max(bootstrap_difference(new, old).low, min(0.0, self._rest_chance - float(old.mean()))),
            n_rest=len(old),
            refused_old=float(np.concatenate(self._refused_old).mean()),
            refused_new=float(refused.mean()),
            n_absent=len(self._absent),
            answered_old=float(np.concatenate(self._answered_old).mean()),
            answered_new=float(answered.mean()),
        )
        return found

    def _ask_present(self, judged: RetrieverBase, test: Pairs) -> None:
        """Ask the present retriever as a search would: its points, and its decision whether there is a match."""
        present = self._present
        assert present is not None
        featured = judged.featured(test)
        pictures = judged.images_to_points(featured.images)

        def answered(texts: Sequence[str], features: FloatArray) -> BoolArray:
            points = judged.texts_to_points(features)
            best = judged.space.compare(points, pictures, "text_query").max(axis=1)
            # Words in which the encoder finds nothing have no match, as in every search.
            is_known = np.any(features, axis=1)
            return np.asarray(is_known & present.has_match(texts, points, best, test.n_images))

        self._refused_old.append(~answered(self._absent, judged.query_features(self._absent)))
        self._answered_old.append(answered(cast(Sequence[str], test.texts), np.asarray(featured.texts)))
        if words := short_queries(test):
            self._answered_old.append(answered(words, judged.query_features(words)))

    def _absent_probability(self, fitted: Calibration) -> FloatArray:
        return fitted.probability(np.concatenate(self._best_absent), "text_to_image")

    def _known(self, retriever: RetrieverBase) -> FloatArray:
        """Return how well each photograph of the package is found."""
        assert self._rest is not None
        key = retriever.image_fingerprint, retriever.text_fingerprint
        if key not in self._featured:
            self._featured[key] = retriever.featured(self._rest)
        evaluated = evaluate_model(retriever.model_, self._featured[key])
        self._rest_chance = evaluated.chance(AP())
        return precision_per_picture(evaluated, self._rest.owners)


def _photographs() -> Pairs:
    photographs = sample_photographs()
    counts = [len(photograph.captions) for photograph in photographs]
    texts = [caption for photograph in photographs for caption in photograph.captions]
    return Pairs(
        [photograph.path for photograph in photographs], texts, owners=np.repeat(np.arange(len(counts)), counts)
    )


def _best(retriever: RetrieverBase, pictures: AnyArray, queries: list[str]) -> tuple[FloatArray, BoolArray]:
    """Return the best score of each query, and whether the encoder finds nothing in its words."""
    features = retriever.query_features(queries)
    scores = retriever.space.compare(retriever.texts_to_points(features), pictures, "text_query")
    return scores.max(axis=1), ~np.any(features, axis=1)
