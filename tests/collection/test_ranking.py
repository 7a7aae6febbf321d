from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from diptych.collection.search.ranking import fuse_rankings

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
