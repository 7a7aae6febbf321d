from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.collection.browse.item_catalogue import FullText, words_of
from diptych.collection.search.ranking import fuse_rankings

texts = st.lists(
    st.lists(st.sampled_from(["red", "boat", "sea", "dog"]), max_size=6).map(" ".join), min_size=1, max_size=6
)


def plain_bm25(documents: list[str], words: str) -> list[float]:
    split = [document.split() for document in documents]
    mean = sum(map(len, split)) / len(split) or 1.0
    scores = []
    for document in split:
        score = 0.0
        for word in words.split():
            holders = sum(word in other for other in split)
            frequency = document.count(word)
            rarity = math.log(1 + (len(split) - holders + 0.5) / (holders + 0.5))
            score += rarity * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * len(document) / mean))
        scores.append(score)
    return scores


@given(texts, st.lists(st.sampled_from(["red", "boat", "unknown"]), max_size=3).map(" ".join))
def test_gains_are_those_of_the_formula(documents: list[str], words: str) -> None:
    np.testing.assert_allclose(FullText(documents).scores(words), plain_bm25(documents, words), atol=1e-12)


def test_no_captions_no_gains() -> None:
    assert len(FullText([]).scores("red")) == 0


def test_words_have_no_case_and_no_accents() -> None:
    assert words_of("ÉTÉ: straße, naïve") == ["ete", "strasse", "naive"]


rankings = st.lists(st.integers(0, 20), max_size=10, unique=True)


@given(rankings, rankings)
def test_fusion_is_symmetric_and_complete(first: list[int], second: list[int]) -> None:
    assert sorted(fuse_rankings(first, second, 0.5)) == sorted(set(first) | set(second))
    assert fuse_rankings(first, [], 0.5) == first
    gains = dict.fromkeys(first + second, 0.0)
    for ranking, share in ((first, 0.7), (second, 0.3)):
        for rank, row in enumerate(ranking, start=1):
            gains[row] += share / (60 + rank)
    fused = fuse_rankings(first, second, 0.3)
    assert all(gains[a] >= gains[b] - 1e-12 for a, b in itertools.pairwise(fused))
