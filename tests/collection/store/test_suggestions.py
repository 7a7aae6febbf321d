"""Suggestions: words, phrases and labels by their beginnings, the most frequent first."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.collection.item import Item
from diptych.collection.store import suggestions as suggestions_module
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.collection.store.suggestions import Suggestion, SuggestionCache
from diptych.collection.store.writing import put_items, remove_items
from diptych.encoders.text.word_pipeline import FUNCTION_WORDS
from diptych.errors import InvalidInputError

WORDS = ["dog", "door", "red", "Red", "the", "of", "a", "café", "dogs", "7", "x"]
CAPTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def put(store: Store, captions: list[str], labels: tuple[str, ...] = (), first: int = 0) -> None:
    """Store an item for each caption, and no others from a number on."""

    def job(db: Connection) -> None:
        remove_items(db, db.ids("SELECT id FROM item WHERE id > ?", (first,)))
        items = [
            Item(f"{first + n}", None, None, labels=labels, captions=(caption,), caption_ids=(f"{first + n}",))
            for n, caption in enumerate(captions)
        ]
        put_items(db, items)

    store.write(job)


def asked(store: Store, prefix: str, limit: int = 8, cache: SuggestionCache | None = None) -> list[Suggestion]:
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        return (cache or SuggestionCache()).suggestions(db, columns, prefix, limit)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CAPTIONS, max_size=6), st.text("dorec aghtf7x", max_size=7), st.integers(1, 5))
def test_against_a_plain_list(store: Store, captions: list[str], prefix: str, limit: int) -> None:
    put(store, captions)
    words = [caption.casefold().split() for caption in captions]
    single = Counter(word for line in words for word in line)
    pairs = Counter(" ".join(pair) for line in words for pair in pairwise(line))
    junk = FUNCTION_WORDS | {"7", "x"}
    allowed = {word: count for word, count in single.items() if word not in junk}
    allowed |= {pair: n for pair, n in pairs.items() if n > 1 and not junk & set(pair.split())}
    found = asked(store, prefix, limit)
    assert len({suggestion.text for suggestion in found}) == len(found) <= limit
    typed = " ".join(prefix.split()) + (" " if prefix.strip() and prefix[-1].isspace() else "")
    for suggestion in found:
        assert suggestion.text.casefold().startswith(typed.casefold())
        assert [key for key in allowed if suggestion.text.endswith(key) and allowed[key] == suggestion.count]
    whole = sorted((-count, key) for key, count in allowed.items() if key.startswith(typed))
    expected = [key for _, key in whole][:limit]
    assert [suggestion.text for suggestion in found[: len(expected)]] == expected


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("GOL", ["golden", "golden retriever", "Golden Gate"]),
        ("golden ", ["golden retriever", "Golden Gate"]),
        ("two golden r", ["two golden retriever", "two golden runs"]),
        ("a sn", ["a Snow"]),
        ("the", []),
        ("zzz", []),
        ("\ud800", []),
    ],
)
def test_phrases_labels_and_last_words(store: Store, prefix: str, expected: list[str]) -> None:
    put(store, ["A golden retriever runs", "the golden retriever sleeps", "golden hour", "snow"])
    put(store, ["snow"], ("Golden Gate", "Snow"), first=4)
    assert [suggestion.text for suggestion in asked(store, prefix)] == expected


def test_words_with_marks_and_limits(store: Store) -> None:
    put(store, ["the dog's long-haired_ears -", "dog's ears"])
    assert [suggestion.text for suggestion in asked(store, "")] == ["dog's", "ears", "long-haired"]
    assert [suggestion.text for suggestion in asked(store, "", limit=2)] == ["dog's", "ears"]
    with pytest.raises(InvalidInputError, match="limit"):
        asked(store, "d", 0)


@pytest.mark.parametrize("counted_again", [5_000, 0])
def test_suggestions_follow_changes(store: Store, monkeypatch: pytest.MonkeyPatch, counted_again: int) -> None:
    monkeypatch.setattr(suggestions_module, "MAX_COUNTED_AGAIN", counted_again)
    cache = SuggestionCache()
    assert asked(store, "d", cache=cache) == []
    put(store, ["a dog"])
    assert asked(store, "d", cache=cache) == [Suggestion("dog", "caption", 1)]
    put(store, ["a dragon"], ("Door", "Dog"), first=1)
    found = [Suggestion("Dog", "label", 1), Suggestion("Door", "label", 1), Suggestion("dragon", "caption", 1)]
    assert asked(store, "D", cache=cache) == found
    put(store, ["a red door"])
    left = [Suggestion("door", "caption", 1)]
    # Of many captions, those of removed items stay counted until the collection is opened again.
    kept = left if counted_again else [Suggestion(word, "caption", 1) for word in ("dog", "door", "dragon")]
    assert asked(store, "d", cache=cache) == kept
    assert asked(store, "d") == left


def test_of_many_captions_the_newest_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions_module, "MAX_CAPTIONS", 2)
    put(store, ["a dog", "a dragon", "a red door"])
    assert [suggestion.text for suggestion in asked(store, "d")] == ["door", "dragon"]
