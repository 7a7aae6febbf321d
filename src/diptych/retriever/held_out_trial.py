"""Models learned from parts of the pairs, tried on the others beside the one that they might replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data import Pairs
from diptych.data.sample_photographs import sample_photographs
from diptych.encoders.text.word_pipeline import clean_query
from diptych.metrics import AP, bootstrap_difference, randomisation_test
from diptych.models import QueryBankNormalized
from diptych.protocols import evaluate_model
from diptych.retriever.adapted_model import AdaptedModel
from diptych.retriever.calibration import Calibration, HeldOutScores, calibrate, shared_quantile, short_queries
from diptych.retriever.comparison import Comparison
from diptych.retriever.held_out_pairs import UnpairedItems, evaluate_among, precision_per_picture

if TYPE_CHECKING:
    from diptych.retriever.base import RetrieverBase

_N_GIBBERISH = 50
_PRIOR = 0.01
# Of what is there, by the decision whether it is there at all.
_MAY_BE_REFUSED = 0.05


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
        self._scales: list[float] = []
        # Two rows each: best scores, and how far they lie above what the bank asks for.
        self._margins_absent: list[FloatArray] = []
        self._margins_there: list[FloatArray] = []
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
            self._ask(new, pictures, judged, test, featured)

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
        """Return the probabilities of held-out scores, with a least match that refuses nonsense as the present did."""
        fitted = calibrate(self._scores, _PRIOR)
        if not self._refused_old or self._present is None:
            return fitted
        n_refused, count = int(np.concatenate(self._refused_old).sum()), int(np.median(self._sizes))
        plain, by_bank = np.sort(np.concatenate(self._margins_absent, axis=1))
        refused = plain[n_refused - 1] if n_refused else -np.inf
        # A little above the last one that has to be refused: between numbers, cut-offs go through logarithms.
        last = float(fitted.probability(refused, "text_to_image")) * (1 + 1e-6)
        among = max(fitted.cutoff_among(count), last)
        # Among more pictures nonsense scores more, with the new one as with the present one.
        numbers = np.unique([count, *np.geomspace(100, 100_000, 10).astype(int)])
        present = self._present.cutoff_among(count)
        cutoffs = [min(1.0, among * self._present.cutoff_among(number) / present) for number in numbers.tolist()]
        fitted.cutoffs_ = np.array([numbers, cutoffs], dtype=np.float64)
        fitted.cutoff_ = float(max(cutoffs))
        if self._is_by_bank:
            there = shared_quantile([part[1] for part in self._margins_there], _MAY_BE_REFUSED)
            refused = by_bank[n_refused - 1] if n_refused else -np.inf
            fitted.presence_ = self._present.calibration_.presence_ * np.mean(self._scales)
            fitted.presence_[0] = max(there, np.nextafter(refused, np.inf))
        return fitted

    @property
    def _is_by_bank(self) -> bool:
        """Whether every model that was tried has points of the bank: one centred on the collection has none."""
        return len(self._scales) == len(self._sizes)

    def _with_rest(self, found: Comparison) -> Comparison:
        assert self._present is not None
        fitted, count = self.calibration(), int(np.median(self._sizes))
        old, new = self._known(self._present), np.mean(self._rest_new, axis=0)

        def are_matches(margins: Sequence[FloatArray]) -> BoolArray:
            plain, by_bank = np.concatenate(margins, axis=1)
            if self._is_by_bank:
                return np.asarray(by_bank >= float(fitted.presence_[0]))
            return fitted.probability(plain, "text_to_image") >= fitted.cutoff_among(count)

        found.set_params(
            rest_old=float(old.mean()),
            rest_new=float(new.mean()),
            # What is no better than luck cannot be forgotten.
            rest_low=max(bootstrap_difference(new, old).low, min(0.0, self._rest_chance - float(old.mean()))),
            n_rest=len(old),
            refused_old=float(np.concatenate(self._refused_old).mean()),
            refused_new=float(1 - are_matches(self._margins_absent).mean()),
            n_absent=len(self._absent),
            answered_old=float(np.concatenate(self._answered_old).mean()),
            answered_new=float(are_matches(self._margins_there).mean()),
        )
        return found

    def _ask(self, new: RetrieverBase, pictures: AnyArray, judged: RetrieverBase, test: Pairs, featured: Pairs) -> None:
        """Ask both as a search would: whether the present one finds a match, and by how much the new one's is better.

        Where the present one knows texts by its bank, the new one does so too, at the scale of its scores: more is
        asked of strange texts than of familiar ones.
        """
        present, seen, answered, margins = self._present, judged.featured(test), [], []
        assert present is not None
        for texts, points, best, is_known in self._asked(judged, judged.images_to_points(seen.images), test, seen):
            answered.append(np.asarray(is_known & present.has_match(texts, points, best, test.n_images)))
        scale = _bank_scale(new, present)
        for texts, points, best, is_known in self._asked(new, pictures, test, featured):
            by_bank = best
            if scale is not None and (known := new.familiarity(points)) is not None:
                short = [float(present.is_short_query(text)) for text in texts]
                evidence = np.column_stack([np.full(len(texts), np.log(test.n_images)), short, known])
                by_bank = best - evidence @ present.calibration_.presence_[1:] * scale
            # Words in which the encoder finds nothing have no match, as in every search.
            margins.append(np.where(is_known, [best, by_bank], -np.inf))
        self._scales += [] if scale is None else [scale]
        self._refused_old.append(~answered[0])
        self._answered_old += answered[1:]
        self._margins_absent.append(margins[0])
        self._margins_there += margins[1:]

    def _asked(
        self, retriever: RetrieverBase, pictures: AnyArray, test: Pairs, featured: Pairs
    ) -> Iterator[tuple[Sequence[str], AnyArray, FloatArray, BoolArray]]:
        """Yield queries for nothing, captions and words: the texts, points, best scores, and which say anything."""
        words = short_queries(test)
        kinds: list[tuple[Sequence[str], FloatArray]] = [
            (self._absent, retriever.query_features(self._absent)),
            (cast(Sequence[str], test.texts), np.asarray(featured.texts)),
            *([(words, retriever.query_features(words))] if words else []),
        ]
        for texts, features in kinds:
            points = retriever.texts_to_points(features)
            best = retriever.space.compare(points, pictures, "text_query").max(axis=1)
            yield texts, points, best, np.any(features, axis=1)

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


def _bank_scale(new: RetrieverBase, present: RetrieverBase) -> float | None:
    """Return how many times larger scores of the bank's model are in the new one; None where there is no such part."""
    of_present = present.model_.kept_ if isinstance(present.model_, AdaptedModel) else present.model_
    if not isinstance(of_present, QueryBankNormalized) or not hasattr(present.calibration_, "presence_"):
        return None
    if not isinstance(new.model_, AdaptedModel) or new.model_.kept_ is not of_present or new.model_.is_centred:
        return None
    before = present.model_.factors_[0] if isinstance(present.model_, AdaptedModel) else 1.0
    return float(new.model_.factors_[0] / before)
