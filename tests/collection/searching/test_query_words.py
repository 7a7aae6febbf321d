"""What people write into a search box: what they do not want to see, and words with a slip."""

from __future__ import annotations

import pytest

from diptych.collection import Collection, Query, Record, parse_query
from diptych.collection.item import Item
from diptych.collection.searching.query_words import Correction, corrected, wanted_and_unwanted
from diptych.collection.store.store import Store
from diptych.collection.store.words import count_words
from diptych.collection.store.writing import put_items


def nothing(_: object) -> dict[str, int]:
    """Count the words of an empty collection."""
    return {}


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("no dogs", "", ["dogs"]),
        ("without people", "", ["people"]),
        ("beach not crowded", "beach", ["crowded"]),
        ("a beach but no people", "a beach", ["people"]),
        ("street at night, no cars, no people", "street at night", ["cars", "people"]),
        ("city without cars or people", "city", ["cars", "people"]),
        ("nobody on the beach", "the beach", ["people"]),
        ("keine Hunde", "", ["Hunde"]),
        ("Strand ohne Leute", "Strand", ["Leute"]),
        ("playa sin gente", "playa", ["gente"]),
        ("plage sans voitures", "plage", ["voitures"]),
        ("海滩没有人", "海滩", ["人"]),
        ("没有狗的海滩", "海滩", ["狗"]),
    ],
)
def test_what_is_not_wanted_is_taken_away(text: str, wanted: str, unwanted: list[str]) -> None:
    assert wanted_and_unwanted(text) == (wanted, unwanted)


@pytest.mark.parametrize(
    "text",
    [
        "a no parking sign",
        "no smoking",
        "not only dogs",
        "nothing",
        "the dog is not looking",
        "sin city",
        "cachorro no parque",
        "a man without a shirt",
        "a boy without a ball runs into the big blue pool",
        "dog",
        "no",
        "without",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert wanted_and_unwanted(text) == (text, [])


def test_unwanted_words_become_negative_terms_unless_they_are_quoted() -> None:
    query = parse_query("a beach but no people")
    assert [(term.value, term.weight) for term in query.terms] == [("a beach", 1.0), ("people", -0.5)]
    assert query.unwanted == ("people",)
    assert parse_query(str(query)).unwanted == ("people",)
    (quoted,) = parse_query('"a beach but no people"').terms
    assert quoted.is_quoted
    assert Query.text("a beach but no people").unwanted == ()
    assert [term.value for term in parse_query("no exit + sea").terms] == ["no exit", "sea"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("swiming pool", Correction("swimming pool", is_sure=True)),
        ("two dogs runing in the snow", Correction("two dogs running in the snow", is_sure=True)),
        ("Mountian", Correction("Mountain", is_sure=False)),
        ("bech", Correction("beach", is_sure=False)),
        ("ein Hund am Strnd", Correction("ein Hund am Strand", is_sure=False)),
    ],
)
def test_slips_are_corrected_and_sure_ones_are_told_apart(text: str, expected: Correction) -> None:
    assert corrected(text, nothing) == expected


@pytest.mark.parametrize(
    "text",
    [
        "IMG_2034.jpg",
        "DSCF1234",
        "Kaufland",
        "yosemite",
        "two dogs on a beach",
        "perros en la playa",
        "una montaña nevada al atardecer",
        "ein Schmetterling auf einer Blume",
        "un chien sur la plage",
        "海滩上的狗",
        "ann@example.org",
        "x2",
        "",
    ],
)
def test_names_files_numbers_and_other_languages_are_not_corrected(text: str) -> None:
    assert corrected(text, nothing) is None


def test_the_words_of_the_collection_are_known_and_come_first() -> None:
    assert corrected("a bech", lambda words: {"bech": 1}) is None
    assert corrected("grizzley", lambda words: {"grizzley": 0}) == corrected("grizzley", nothing)
    assert corrected("kaufand", lambda words: {"kaufland": 9}) == Correction("kaufland", is_sure=True)


def test_a_sure_correction_is_searched_for_and_others_are_offered(collection: Collection) -> None:
    picture = next(iter(sorted(collection.root.glob("*.png"))))
    collection.add([Record(picture, captions=("a swimming pool", "kaufland"), metadata={"author": "Ann Zzyx"})])
    plain, misspelt = collection.search("swimming pool"), collection.search("swiming pool")
    assert (plain.did_you_mean, plain.is_corrected) == (None, False)
    assert (misspelt.did_you_mean, misspelt.is_corrected) == ("swimming pool", True)
    assert [answer.score for answer in misspelt] == [answer.score for answer in plain]
    offered = collection.search("bech")
    assert (offered.did_you_mean, offered.is_corrected) == ("beach", False)
    for known in ("kaufland", "zzyx", '"swiming pool"', "2024"):
        assert collection.search(known).did_you_mean is None
    joined = collection.search("swiming pool - 0.5:peopel")
    assert joined.did_you_mean == "swimming pool - 0.5:people"


def test_words_are_counted_in_everything_that_is_said_of_items(store: Store) -> None:
    items = [Item("x", "x.jpg", "00", captions=("a red car", "cars"), caption_ids=("1", "2"), labels=("Car",))]
    store.write(lambda db: put_items(db, items))
    with store.reading() as db:
        assert count_words(db, ["car", "cars", "x", "boat"]) == {"car": 2, "cars": 1, "x": 1}
        assert count_words(db, ["boat"]) == count_words(db, []) == {}
