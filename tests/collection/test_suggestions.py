from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.collection import Collection, Record
from diptych.collection.store.suggestions import SuggestionCounts, SuggestionIndex, _cut, suggestions
from diptych.encoders.text.word_pipeline import FUNCTION_WORDS
from diptych.errors import InvalidInputError

WORDS = ["dog", "door", "red", "Red", "the", "of", "a", "café", "dogs", "7", "x"]
CAPTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def index_of(*captions: str, labels: tuple[str, ...] = ()) -> SuggestionIndex:
    counts = SuggestionCounts()
    counts.add(labels, captions)
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
        ends = [key for key in allowed if suggestion.text.endswith(key) and allowed[key] == suggestion.count]
        assert ends
    whole = sorted((-count, key) for key, count in allowed.items() if key.startswith(typed))
    expected = [key for _, key in whole][:limit]
    assert [suggestion.text for suggestion in found[: len(expected)]] == expected


@settings(deadline=None, max_examples=50)
@given(st.text("aàß9٣½'’-_ \n\u0130\u4e00\U0001f600", max_size=30))
def test_words_are_letters_and_digits_with_single_joints_between_them(text: str) -> None:
    assert _cut(text) == re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)


def test_phrases_labels_and_last_words() -> None:
    # In two segments, which are asked as one.
    made = [
        index_of("A golden retriever runs", "the golden retriever sleeps", "golden hour"),
        index_of("snow", labels=("Golden Gate", "Snow")),
    ]
    assert texts(made, "GOL") == ["golden", "golden retriever", "Golden Gate"]
    assert texts(made, "golden ") == ["golden retriever", "Golden Gate"]
    assert texts(made, "two golden r") == ["two golden retriever", "two golden runs"]
    assert texts(made, "a sn") == ["a Snow"]
    assert suggestions(made, "snow", 8)[0].kind == "label"
    assert texts(made, "the") == []
    assert texts(made, "zzz") == []
    assert texts(made, "", limit=2) == ["golden", "golden retriever"]


def test_suggestions_follow_the_collection(collection: Collection) -> None:
    assert collection.suggestions("d") == []
    collection.add([Record(captions=["a dog"], id="1")])
    assert [one.text for one in collection.suggestions("d")] == ["dog"]
    collection.update("1", captions=["a dragon"])
    assert [one.text for one in collection.suggestions("D")] == ["dragon"]
    with pytest.raises(InvalidInputError, match="limit"):
        collection.suggestions("d", limit=0)
