"""Suggestions: words, phrases and labels by their beginnings, the most frequent first."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.collection.item import Item
from diptych.collection.store import suggestions as suggestions_module
from diptych.collection.store.items import put_items, remove_items
from diptych.collection.store.store import Store
from diptych.collection.store.suggestions import (
    SuggestionCache,
    SuggestionCounts,
    SuggestionIndex,
    suggestions,
)
from diptych.encoders.text.word_pipeline import FUNCTION_WORDS
from diptych.errors import InvalidInputError

WORDS = ["dog", "door", "red", "Red", "the", "of", "a", "café", "dogs", "7", "x"]
CAPTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def index_of(*captions: str, labels: tuple[str, ...] = ()) -> SuggestionIndex:
    counts = SuggestionCounts()
    counts.add_labels((label, 1) for label in labels)
    counts.add_captions(captions)
    return counts.index()


def texts(made: list[SuggestionIndex], prefix: str, limit: int = 8) -> list[str]:
    return [suggestion.text for suggestion in suggestions(made, prefix, limit)]


@settings(deadline=None, max_examples=100)
@given(st.lists(CAPTIONS, max_size=6), st.text("dorec aghtf7x", max_size=7), st.integers(1, 5))
def test_against_a_plain_list(captions: list[str], prefix: str, limit: int) -> None:
    words = [caption.casefold().split() for caption in captions]
    single = Counter(word for line in words for word in line)
    pairs = Counter(" ".join(pair) for line in words for pair in pairwise(line))
    junk = FUNCTION_WORDS | {"7", "x"}
    allowed = {word: count for word, count in single.items() if word not in junk}
    allowed |= {pair: n for pair, n in pairs.items() if n > 1 and not junk & set(pair.split())}
    found = suggestions([index_of(*captions)], prefix, limit)
    assert len({suggestion.text for suggestion in found}) == len(found) <= limit
    typed = " ".join(prefix.split()) + (" " if prefix.strip() and prefix[-1].isspace() else "")
    for suggestion in found:
        assert suggestion.text.casefold().startswith(typed.casefold())
        assert [key for key in allowed if suggestion.text.endswith(key) and allowed[key] == suggestion.count]
    whole = sorted((-count, key) for key, count in allowed.items() if key.startswith(typed))
    expected = [key for _, key in whole][:limit]
    assert [suggestion.text for suggestion in found[: len(expected)]] == expected


def test_phrases_labels_and_last_words() -> None:
    # In two indexes, which are asked as one.
    made = [
        index_of("A golden retriever runs", "the golden retriever sleeps", "golden hour"),
        index_of("snow", labels=("Golden Gate", "Snow")),
    ]
    assert texts(made, "GOL") == ["golden", "golden retriever", "Golden Gate"]
    assert texts(made, "golden ") == ["golden retriever", "Golden Gate"]
    assert texts(made, "two golden r") == ["two golden retriever", "two golden runs"]
    assert texts(made, "a sn") == ["a Snow"]
    assert suggestions(made, "snow", 8)[0].kind == "label"
    assert texts(made, "the") == texts(made, "zzz") == texts(made, "\ud800") == []
    assert texts([index_of("the dog's long-haired_ears -", "dog's ears")], "") == ["dog's", "ears", "long-haired"]
    assert texts(made, "", limit=2) == ["golden", "golden retriever"]
    with pytest.raises(InvalidInputError, match="limit"):
        suggestions(made, "d", 0)


def put(store: Store, name: str, caption: str, *labels: str) -> None:
    item = Item(name, None, None, labels=labels, captions=(caption,), caption_ids=(name,))
    store.write(lambda db: put_items(db, [item]))


def asked(cache: SuggestionCache, store: Store, prefix: str) -> list[tuple[str, int]]:
    with store.reading() as db:
        return [(one.text, one.count) for one in cache.suggestions(db, prefix, 8)]


def test_suggestions_follow_a_small_collection(store: Store) -> None:
    cache = SuggestionCache(store)
    assert asked(cache, store, "d") == []
    put(store, "1", "a dog")
    assert asked(cache, store, "d") == [("dog", 1)]
    put(store, "1", "a dragon", "Door")
    assert asked(cache, store, "D") == [("Door", 1), ("dragon", 1)]
    assert not list(store.derived.glob("suggestions-*"))


def test_suggestions_of_a_large_collection_are_kept_and_counted_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestions_module, "MAX_ITEMS_IN_MEMORY", 2)
    monkeypatch.setattr(suggestions_module, "MAX_CHANGED", 3)
    monkeypatch.setattr(suggestions_module, "MAX_PHRASES", 2)
    monkeypatch.setattr(suggestions_module, "CAPTIONS_AT_ONCE", 2)
    for number in range(40):
        put(store, f"{number}", "a red dog", "Dog", "red")
    cache = SuggestionCache(store)
    assert asked(cache, store, "re") == [("red", 40), ("red dog", 40)]
    put(store, "new", "a red dragon", "Dog")
    assert asked(cache, store, "d") == [("Dog", 41), ("dragon", 1)]
    assert asked(SuggestionCache(store), store, "d") == [("Dog", 41), ("dragon", 1)]
    ids = range(1, 31)
    store.write(lambda db: remove_items(db, list(ids)))
    asked(cache, store, "d")
    cache.wait()
    assert asked(cache, store, "d") == asked(SuggestionCache(store), store, "d") == [("Dog", 11), ("dragon", 1)]
    assert len(list(store.derived.glob("suggestions-*"))) == 1
