"""Queries as words, and how visual they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.encoders import Visualness, clean_query, imagenet_concepts, visual_share
from diptych.encoders.text.visualness import concept_names, named_concept
from diptych.encoders.text.word_pipeline import FUNCTION_WORDS, PICTURE_WORDS, query_words
from diptych.errors import InvalidInputError


def test_a_name_is_found_whole_and_nothing_else_is() -> None:
    names = imagenet_concepts()
    assert [named_concept(name.lower()) for name in (names[0], names[-1])] == [names[0].lower(), names[-1].lower()]
    looked_for = ["dog", "og", "do", "dogs", "", "#", f"{names[0]}\n{names[1]}", "hot", "a", "zebras", "benches"]
    found = {name for name in looked_for if named_concept(name)}
    assert found == concept_names().intersection(looked_for) | {"dogs", "zebras", "benches"}


# Query, visualness and visible words as tables II and VI of Dong et al. (2018) print them.
PUBLISHED = [
    ("[flower]", 1),
    ("[soccer ball]", 1),
    ("[dog] and [cat]", 1),
    ("[tattoo] design", 0.5),
    ("barack obama [family]", 0.333),
    ("hot weather [girl]", 0.333),
    ("funny", 0),
    ("saying and quote", 0),
    ("2001 ford expedition part", 0),
    ("6v [battery] small", 0.333),
    ("[ling] simpson", 0.5),
    ("[family] photo", 1),
    ("[woman] [bicycle]", 1),
]
CONCEPTS = ["dog", "hot dog", "red hot dog stand", "cat", "trash can", "french fries", "mine", "elder", "T-shirt"]
WORDS = ["dog", "dogs", "hot", "red", "stand", "cat", "the", "and", "photo", "quote", "trash", "can", "mine", "elder"]


@pytest.fixture(scope="module")
def imagenet() -> Visualness:
    return Visualness()


@pytest.fixture(scope="module")
def small() -> Visualness:
    return Visualness(concepts=CONCEPTS)


@pytest.mark.parametrize(("marked", "printed"), PUBLISHED)
def test_the_published_examples_come_out_as_printed(imagenet: Visualness, marked: str, printed: float) -> None:
    found = imagenet.of(marked.replace("[", "").replace("]", ""))
    assert round(found.visualness, 3) == printed
    assert found.marked == marked


@pytest.mark.parametrize(
    "marked",
    [
        "[driving] lesson",
        "[jack o' lantern]",
        "[jack in the box]",
        "[picture frame]",
        "[trash can]",
        "[elder] [tree]",
        "old [tree]",
        "[good] morning",
        "[fall] leaves",
    ],
)
def test_the_documented_peculiarities_of_the_vocabulary(imagenet: Visualness, marked: str) -> None:
    assert imagenet.of(marked.replace("[", "").replace("]", "")).marked == marked


def test_a_list_of_celebrities_makes_the_published_example_visual() -> None:
    found = Visualness(["Barack Obama"]).of("barack obama family")
    assert found.visualness == 1
    assert [span.concept for span in found.spans] == ["Barack Obama", "family"]


def test_the_concepts_are_those_of_imagenet() -> None:
    concepts = imagenet_concepts()
    assert len(concepts) == len(set(concepts)) == 37_006
    assert {"flower", "soccer ball", "golden retriever", "Canis familiaris"} <= set(concepts)
    # Concepts of WordNet without pictures.
    assert not {"democracy", "funny", "quotation"} & set(concepts)


@pytest.mark.parametrize(
    ("query", "marked", "visualness"),
    [
        ("hot quote", "hot quote", 0),
        ("red hot dogs", "red [hot dogs]", 2 / 3),
        ("Red Hot Dog Stand", "[Red Hot Dog Stand]", 1),
        ("dog-cat", "[dog]-[cat]", 1),
        # A stop word belongs to a name, but is not counted.
        ("blue trash cans", "blue [trash cans]", 0.5),
        ("trash cat", "trash [cat]", 0.5),
        # A name of stop words alone says nothing.
        ("mine", "mine", 0),
        ("a mine dog", "a mine [dog]", 1),
        # Number does not matter, on either side.
        ("french fry", "[french fry]", 1),
        ("elders", "[elders]", 1),
        # What a concept is a form of is no concept.
        ("old dog", "old [dog]", 0.5),
        ("a t-shirt, t shirts!", "a [t-shirt], [t shirts]!", 1),
        ("photos of the", "photos of the", 0),
        ("", "", 0),
        ("🐕 dog's quote", "🐕 [dog]'s quote", 0.5),
    ],
)
def test_the_longest_name_counts_and_only_whole_ones(
    small: Visualness, query: str, marked: str, visualness: float
) -> None:
    found = small.of(query)
    assert found.marked == marked
    assert found.visualness == pytest.approx(visualness)


def by_hand(query: str) -> tuple[int, int]:
    """Count visible words and words with nothing but lists and slices, for words that have one form."""
    words = query.split()
    names = [name.lower().split() for name in CONCEPTS]
    dropped = FUNCTION_WORDS | PICTURE_WORDS
    seen, place = 0, 0
    while place < len(words):
        found = [name for name in names if words[place : place + len(name)] == name]
        counting = [word for word in max(found, key=len, default=[]) if word not in dropped]
        seen += len(counting)
        place += len(max(found, key=len)) if counting else 1
    return seen, sum(word not in dropped for word in words)


@given(st.lists(st.sampled_from([word for word in WORDS if word != "dogs"]), max_size=9).map(" ".join))
@settings(max_examples=150, deadline=None)
def test_spans_and_counts_are_those_of_counting_by_hand(query: str) -> None:
    found = Visualness(concepts=CONCEPTS).of(query)
    assert (found.n_visual, found.n_words) == by_hand(query)
    for span in found.spans:
        assert query[span.start : span.end] == span.concept
    assert all(left.end <= right.start for left, right in zip(found.spans, found.spans[1:], strict=False))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_whatever_is_asked_has_a_visualness(text: str) -> None:
    measure = Visualness(concepts=CONCEPTS)
    found = measure.of(text)
    assert 0 <= found.n_visual <= found.n_words == len(clean_query(text))
    assert found.marked.replace("[", "").replace("]", "") == text.replace("[", "").replace("]", "")
    assert [text[word.start : word.end] for word in query_words(text)] == [
        text[word.start : word.end].strip() for word in query_words(text)
    ]
    words = [word.word for word in query_words(text) if word.counts]
    assert Visualness(words[:1], concepts=CONCEPTS).of(text).n_visual >= bool(words)


def test_many_queries_at_once(small: Visualness) -> None:
    assert small.scores(["dog", "quote", "dog quote"]).tolist() == [1, 0, 0.5]
    assert small.scores([]).shape == (0,)
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        small.scores("dog")
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        Visualness("dog", concepts=CONCEPTS)
    with pytest.raises(InvalidInputError, match="must be a string, got a int"):
        small.of(7)


def test_a_share_is_strict_and_weighted_by_clicks() -> None:
    rng = np.random.default_rng(0)
    scores, clicks = rng.choice([0, 1 / 3, 0.5, 1], 200), rng.integers(0, 50, 200)
    for threshold in (0, 1 / 3, 0.5, 0.7, 1):
        above = [row for row in range(200) if scores[row] > threshold]
        assert visual_share(scores, threshold) == pytest.approx(len(above) / 200)
        weighted = sum(clicks[row] for row in above) / clicks.sum()
        assert visual_share(scores, threshold, clicks) == pytest.approx(weighted)
    assert visual_share(scores, 1) == 0
    assert visual_share([0.5, 1], 0.5, [1, 3]) == 0.75
    assert math.isnan(visual_share([], 0.5))
    assert math.isnan(visual_share([1], 0.5, [0]))


def test_shares_refuse_what_does_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="each query needs"):
        visual_share([0.5], 0.5, [1, 2])
    with pytest.raises(InvalidInputError, match="not negative"):
        visual_share([0.5], 0.5, [-1])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Picture of a DOG", "dog"),
        ("dogs images, pics & photos", "dog"),
        ('jessie "t  v" show', "jessie tv show"),
        ('"  U s   A " army', "usa army"),
        ("U.S.A. map", "usa map"),
        ('"3 d" figures', "3d figure"),
        ('"3 dimensional" shapes', "3 dimensional shape"),
        ("t v", "t v"),
        ('this u"s', "u s"),
        ("a woman's bag", "woman bag"),
        ("Don’t worry", "worry"),
        ("O'Neill", "oneill"),
        ("snake_case t-shirt", "snake case t shirt"),
        ("men women", "men woman"),
        ("the of and", ""),
    ],
)
def test_queries_become_the_words_that_count(query: str, words: str) -> None:
    assert clean_query(query) == tuple(words.split())


@given(st.lists(st.sampled_from(["red", "cars", "the", "photos", "women", "running"]), max_size=6))
def test_order_number_and_case_leave_the_same_words(words: list[str]) -> None:
    assert sorted(clean_query(" ".join(words))) == sorted(clean_query(", ".join(reversed(words)).upper() + "!"))
    assert set(clean_query(" ".join(words))) <= {"red", "car", "woman", "run"}
