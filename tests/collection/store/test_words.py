from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.arrays import BoolArray, IntArray
from diptych.collection.item import Item
from diptych.collection.store import words as word_module
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.collection.store.words import (
    Phrase,
    WordHits,
    find_words,
    phrases_of,
    put_said_rows,
    said_rows,
    tokens,
)
from tests.collection.store.rows import add_caption, add_content, add_item
from tests.collection.test_word_search import CAPTIONS, FOUND

ALPHABET = ("red", "dog", "dogs", "sea")


def put(db: Connection, item: Item, picture_text: str | None = None) -> tuple[int, list[int]]:
    """Store an item with what is said of it, and return its id and those of its captions."""
    content = add_content(db)
    number = add_item(db, content)
    captions = [add_caption(db, number, content) for _ in item.captions]
    keys: list[int | None] = [None, *captions]
    rows = [(number, key, *row) for key, row in zip(keys, said_rows(item, picture_text), strict=True)]
    put_said_rows(db, rows)
    return number, captions


def described(captions: Sequence[str], **fields: object) -> Item:
    return Item(**{"id": "x", "path": None, "content_hash": None, "captions": tuple(captions)} | fields)  # type: ignore[arg-type]


def all_of(ids: IntArray) -> BoolArray:
    return np.ones(len(ids), dtype=bool)


def find(store: Store, sought: Sequence[str], allowed: Sequence[int] | None = None, **options: Any) -> WordHits:
    def are_allowed(ids: IntArray) -> BoolArray:
        return all_of(ids) if allowed is None else np.isin(ids, allowed)

    options = {"needs_all": True} | options
    with store.reading() as db:
        return find_words(db, [phrases_of(word) for word in sought], are_allowed, n_rows=100, **options)


def test_languages_are_found_by_their_words(store: Store) -> None:
    made = store.write(lambda db: [put(db, described([caption]))[1][0] for caption in CAPTIONS])
    found = {word: sorted(map(made.index, find(store, [word], of_captions=True).ids.tolist())) for word in FOUND}
    assert found == FOUND
    assert find(store, ["黒犬"]).n_found == 0


def test_a_sign_is_found_wherever_it_stands(store: Store) -> None:
    store.write(lambda db: [put(db, described([caption])) for caption in ("黑狗", "狗", "大狗在跑", "猫")])
    assert sorted(find(store, ["狗"]).ids.tolist()) == [1, 2, 3]
    assert len(tokens("कुत्ता हिन्दी")) == 2


def test_an_item_is_found_by_all_that_is_said_of_it(store: Store) -> None:
    item = described(["a cat"], path="Beach/IMG_1.jpg", labels=("Hund",), metadata={"caption": ["Faro", {"x": 7}]})
    number, captions = store.write(lambda db: put(db, item, "STOP here"))
    for sought in (["beach", "1"], ["hund"], ["faro", "7"], ["stop", "hund"], ["cat"]):
        assert find(store, sought).ids.tolist() == [number], sought
    assert not len(find(store, ["beach", "cat"]).ids)
    assert not len(find(store, ["jpg"]).ids)
    assert not len(find(store, ["cat"], in_captions=False).ids)
    assert find(store, ["cat"], of_captions=True).ids.tolist() == captions
    assert not len(find(store, ["hund"], of_captions=True).ids)
    store.write(lambda db: db.run("UPDATE said SET label = 'katze' WHERE kind = 0"))
    assert not len(find(store, ["hund"]).ids)
    store.write(lambda db: db.run("DELETE FROM item"))
    assert not len(find(store, ["cat", "katze"], needs_all=False).ids)
    if store.engine == "sqlite":
        store.write(lambda db: db.run("INSERT INTO word (word, rank) VALUES ('integrity-check', 1)"))


texts = st.lists(st.lists(st.sampled_from(ALPHABET), max_size=5).map(" ".join), max_size=6)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=3, unique=True), st.booleans(), st.booleans())
def test_ranking_is_by_bm25(store: Store, texts: list[str], sought: list[str], needs_all: bool, forms: bool) -> None:
    store.write(lambda db: (db.run("DELETE FROM item"), db.run("DELETE FROM said")))
    made = store.write(lambda db: [put(db, described([text]))[0] for text in texts])
    words = [[Phrase((word,)), *([Phrase(("sea", "red"))] if forms else [])] for word in sought]
    with store.reading() as db:
        hits = find_words(db, words, all_of, needs_all=needs_all, n_rows=20)
    expected = brute_force(texts, words, 20, needs_all)
    assert dict(zip(hits.ids.tolist(), hits.scores.tolist(), strict=True)) == pytest.approx(
        {made[place]: score for place, score in expected.items()}
    )
    keys = list(zip((-hits.scores).tolist(), hits.ids.tolist(), strict=True))
    assert keys == sorted(keys)


def brute_force(texts: Sequence[str], words: Sequence[list[Phrase]], n: int, needs_all: bool) -> dict[int, float]:
    held = [text.split() for text in texts]

    def times(phrase: Phrase, text: list[str]) -> int:
        size = len(phrase.tokens)
        return sum(tuple(text[at : at + size]) == phrase.tokens for at in range(len(text)))

    counts = [[sum(times(phrase, text) for phrase in phrases) for phrases in words] for text in held]
    matching = [place for place, one in enumerate(counts) if (all if needs_all else any)(one)]
    if not matching:
        return {}
    mean = sum(len(held[place]) for place in matching) / len(matching)
    having = [sum(bool(one[number]) for one in counts) for number in range(len(words))]
    return {
        place: sum(
            math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(held[place]) / mean))
            for tf, df in zip(counts[place], having, strict=True)
        )
        for place in matching
    }


def test_many_are_ranked_among_the_newest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_CANDIDATES", 20), ("MAX_CANDIDATES_BEHIND_FILTER", 80), ("MAX_RANKED", 5)):
        monkeypatch.setattr(word_module, name, value)
    put_all = [f"dog {'red' * (number in (41, 44, 47, 50))}" for number in range(60)]
    made = store.write(lambda db: [put(db, described([text]))[0] for text in put_all])
    hits = find(store, ["dog", "red"], needs_all=False)
    assert (len(hits.ids), hits.n_found, hits.is_newest_of_more) == (5, 20, True)
    # Those with the rarer word, and of the others the newest.
    assert set(hits.ids.tolist()) == {made[place] for place in (41, 44, 47, 50, 59)}
    # Behind a filter further ones are looked at.
    hits = find(store, ["dog"], allowed=made[:4])
    assert (sorted(hits.ids.tolist()), hits.is_newest_of_more) == (made[:4], False)


def test_damage_of_the_index_is_seen(store: Store) -> None:
    if store.engine != "sqlite":
        return
    store.write(lambda db: put(db, described(["red dog"])))
    store.write(lambda db: db.run("DROP TRIGGER said_changed"))
    store.write(lambda db: db.run("UPDATE said SET caption_words = 'sea'"))
    with pytest.raises(Exception) as problem:
        store.write(lambda db: db.run("INSERT INTO word (word, rank) VALUES ('integrity-check', 1)"))
    assert isinstance(problem.value.__cause__, sqlite3.Error) or "is damaged" in str(problem.value)


def test_too_many_are_only_counted(store: Store) -> None:
    made = store.write(lambda db: [put(db, described([text]))[0] for text in ("red dog", "red sea", "dog")])
    assert find(store, ["red"], max_found=3).ids.tolist() == made[:2]
    hits = find(store, ["red"], max_found=2)
    assert (len(hits.ids), hits.n_found) == (0, 2)
