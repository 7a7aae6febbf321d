"""Queries that ask for something by its name find it by its words; descriptions are left to similarity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from diptych.collection import Collection, Record
from diptych.collection.sought_words import SoughtWords, other_number
from tests.doubles import ToyRetriever


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Four pictures, which are only searched."""
    photos = tmp_path_factory.mktemp("named")
    facts: dict[str, dict[str, Any]] = {
        "IMG_2034": {"captions": ["a brown dog runs on the beach"], "labels": ["dog"]},
        "berlin-wall": {
            "captions": ["people near a wall"],
            "metadata": {"keywords": ["Anna Kaliso"], "camera": "Zenit"},
        },
        "other": {"metadata": {"keywords": ["Anna"], "description": "Schloß am See"}},
        "fourth": {"labels": ["golden retriever"]},
    }
    for name in facts:
        (photos / f"{name}.png").write_text(name)
    with Collection.create(photos / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as collection:
        collection.add([Record(photos / f"{name}.png", **known) for name, known in facts.items()])
        yield collection


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2034", {"IMG_2034": ("file name",)}),
        ("Berlin", {"berlin-wall": ("file name",)}),
        ("kaliso", {"berlin-wall": ("keyword",)}),
        ("anna", {"berlin-wall": ("keyword",), "other": ("keyword",)}),
        ("zenit", {"berlin-wall": ("camera",)}),
        ("schloss", {"other": ("description",)}),
        ("dog", {"IMG_2034": ("caption", "label")}),
        # One or more of a kind, but what is quoted as it stands.
        ("dogs", {"IMG_2034": ("caption", "label")}),
        ("a person", {"berlin-wall": ("caption",)}),
        ('"people near"', {"berlin-wall": ("caption",)}),
        ("golden retriever", {"fourth": ("label",)}),
        ('"runs on the beach"', {"IMG_2034": ("caption",)}),
        # A name among words that describe: the name is outside of captions, the rest is left to similarity.
        ("kaliso laughing at a table with friends", {"berlin-wall": ("keyword",)}),
    ],
)
def test_words_are_found_and_it_is_said_where(
    named: Collection, words: str, expected: dict[str, tuple[str, ...]]
) -> None:
    found = named.search(words)
    worded = {answer.path.stem: answer.matched_fields for answer in found if answer.has_words}
    assert worded == expected
    assert {answer.path.stem for answer in found[: len(expected)]} == set(expected)
    assert (found.mode, found.no_good_match) == ("both", False)
    assert len(found) == 4


@pytest.mark.parametrize(
    "words",
    [
        "two cats asleep on a sofa",
        "a dog near a wall, jumping over a ball",
        '"beach on the runs"',
        "camera",
        "cameras",
        '"dogs"',
        "keywords",
        "png",
        "xyzzy",
    ],
)
def test_what_is_not_there_by_name_is_compared_by_meaning(named: Collection, words: str) -> None:
    """Neither the names of metadata nor the endings of files are words that anybody looks for."""
    found = named.search(words)
    alone = named.search(words, hybrid=False)
    assert [answer.has_words for answer in found] == [False] * 4
    assert (found.found, found.mode) == (alone.found, "similarity")
    assert bool(found.notes) == ('"' in words)


def test_the_choice_can_be_made_for_it(named: Collection) -> None:
    alone = named.search("2034", hybrid=False)
    assert (alone.mode, {answer.matched_by for answer in alone}) == ("similarity", {("points",)})
    assert named.search("2034", hybrid=1.0).mode == "words"
    joined = named.search("2034 cats", hybrid=True)
    assert joined.mode == "both"
    first = next(answer for answer in joined if "words" in answer.matched_by)
    assert (first.path.stem, first.matched_fields, first.has_words) == ("IMG_2034", ("file name",), False)


def test_a_filter_holds_for_words_too(named: Collection) -> None:
    found = named.search("anna", filter='camera="Zenit"')
    assert [answer.path.stem for answer in found] == ["berlin-wall"]


def test_pages_fit_together(named: Collection) -> None:
    whole = named.search("anna")
    assert [answer.id for start in range(4) for answer in named.search("anna", 1, offset=start)] == [
        answer.id for answer in whole
    ]
    assert not named.search("anna", 1, offset=3).no_good_match


def test_a_picture_asked_for_besides_leaves_words_alone(named: Collection) -> None:
    item = named["other.png"].id
    assert named.search(f"2034 + item:{item}").mode == "similarity"


def test_words_that_describe_are_told_from_names() -> None:
    assert not SoughtWords.of("a dog with a red ball in the snow").asks_by_name
    assert SoughtWords.of("a dog with a frobnicated ball in the snow").telling == ("frobnicated",)
    assert SoughtWords.of("Straße 7").words == ("strasse", "7")


def test_ordinary_words_and_counts_name_nothing() -> None:
    """English words that no list of captions has, and how many there are; a capital or more digits make a name."""
    for words in ("two starry rockets over the desert", "2 boats at the beach near 3 houses"):
        assert not SoughtWords.of(words).telling
    assert SoughtWords.of("Lisbon at night with many lights").telling == ("lisbon",)
    assert SoughtWords.of("the boats of 2034 at the beach").telling == ("2034",)


def test_ordinary_words_name_something_only_together(named: Collection) -> None:
    assert SoughtWords.of("a brown dog").together == "brown dog"
    assert SoughtWords.of("the dog").together == SoughtWords.of('"brown dog"').together == ""
    found = named.search("brown dog")[0]
    assert found.path is not None
    assert (found.path.stem, found.has_words) == ("IMG_2034", True)
    assert not named.search("people wall")[0].has_words


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("cat", "cats"),
        ("bus", "buses"),
        ("fox", "foxes"),
        ("beach", "beaches"),
        ("baby", "babies"),
        ("toy", "toys"),
        ("man", "men"),
    ],
)
def test_one_is_found_by_many_and_many_by_one(one: str, many: str) -> None:
    assert (other_number(one), other_number(many)) == (many, one)


@pytest.mark.parametrize("word", ["2034", "gas2", "zoé", "ox", "犬"])
def test_what_is_no_english_noun_has_no_other_number(word: str) -> None:
    assert other_number(word) is None
