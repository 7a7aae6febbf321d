from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.service.clicks import ClickLog, UnknownSearchError
from diptych.service.clicks.interleaving import sign_test

SWAPPED = {"left": "right", "right": "left", "both": "both", "neither": "neither"}
CHOICES = sorted(SWAPPED)


def search(log: ClickLog, query: str, retriever: str, target: str = "images", fingerprint: str = "f") -> str:
    search_id = log.record_search(
        query=query,
        retriever=retriever,
        fingerprint=fingerprint,
        target=target,
        shown=[("x", 1)],
        no_good_match=False,
        best_probability=0.5,
    )
    assert search_id is not None
    return search_id


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_exact(wins: int, losses: int) -> None:
    n = wins + losses
    tail = sum((Fraction(comb(n, i), 2**n) for i in range(min(wins, losses) + 1)), Fraction(0))
    assert sign_test(wins, losses) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-12)
    assert sign_test(wins, losses) == sign_test(losses, wins)


@given(st.lists(st.tuples(st.permutations(["a", "b", "c"]), st.sampled_from(CHOICES), st.booleans()), max_size=12))
@settings(max_examples=20, deadline=None)
def test_votes_are_counted_whichever_side_a_retriever_was_on(votes: list[tuple[list[str], str, bool]]) -> None:
    expected: dict[tuple[str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "c.sqlite") as log:
        for number, ((one, other, _), choice, changes_mind) in enumerate(votes):
            left, right = search(log, f"query {number}", one), search(log, f"query {number}", other)
            if changes_mind:
                log.record_vote(left=right, right=left, choice="both")
            log.record_vote(left=left, right=right, choice=choice)
            pair = (min(one, other), max(one, other))
            expected.setdefault(pair, Counter())[choice if pair == (one, other) else SWAPPED[choice]] += 1
        pairs = log.votes()
    assert [(pair.left, pair.right) for pair in pairs] == sorted(expected)
    for pair in pairs:
        counts = expected[pair.left, pair.right]
        found = {"left": pair.left_wins, "right": pair.right_wins, "both": pair.both, "neither": pair.neither}
        assert found == {choice: counts[choice] for choice in CHOICES}
        assert pair.p_value == sign_test(counts["left"], counts["right"])


def test_only_one_query_with_two_retrievers_compares(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
        dog = search(log, "dog", "one")
        for other in (
            dog,
            search(log, "dog", "one"),
            search(log, "cat", "two"),
            search(log, "dog", "two", target="texts"),
        ):
            with pytest.raises(InvalidInputError, match="two retrievers"):
                log.record_vote(left=dog, right=other, choice="left")
        with pytest.raises(UnknownSearchError):
            log.record_vote(left=dog, right="00" * 16, choice="left")
        log.record_vote(left=dog, right=search(log, "dog", "one", fingerprint="g"), choice="left")
        (pair,) = log.votes()
        assert (pair.left_fingerprint, pair.right_fingerprint, pair.left_wins) == ("f", "g", 1)


def test_votes_over_http(running_service: Callable[..., Any]) -> None:
    service = running_service()
    log = service.context.click_logs["scenes"]
    left, right = search(log, "a red circle", "one"), search(log, "a red circle", "two")
    votes = f"{service.url}/v1/collections/scenes/votes"
    sent = {"left": left, "right": right, "choice": "right"}
    assert httpx.post(votes, json=sent).status_code in (401, 403)
    answer = httpx.post(votes, json=sent, headers=service.headers)
    assert (answer.status_code, answer.json()) == (201, {"id": 1})
    (pair,) = httpx.get(votes).json()["pairs"]
    names = ("left", "right", "left_wins", "right_wins", "both", "neither", "p_value")
    assert [pair[name] for name in names] == ["one", "two", 0, 1, 0, 0, 1.0]
    refused = httpx.post(votes, json={**sent, "right": left}, headers=service.headers)
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/invalid-input")
    unknown = httpx.post(votes, json={**sent, "right": "00" * 16}, headers=service.headers)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "/problems/no-such-search")
    assert httpx.post(votes, json={**sent, "choice": "x"}, headers=service.headers).status_code == 422
