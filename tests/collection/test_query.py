from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.collection import Query, parse_query
from diptych.collection.searching.query import MAX_QUERY_CHARACTERS, MAX_TERMS
from diptych.errors import InvalidInputError


def terms(query: Query) -> list[tuple[str, str, float]]:
    return [(term.kind, str(term.value), term.weight) for term in query.terms]


@pytest.mark.parametrize(
    "text",
    [
        "a dog",
        "well-known t-shirt",
        "-snow",
        "C++ and c-",
        "16:9 screen",
        "at 10:30",
        'he said "no"',
        "a+b",
        "how to read a .jpg",
        "2010",
        "a -b",
    ],
)
def test_plain_text_stays_plain(text: str) -> None:
    assert terms(parse_query(text)) == [("text", text, 1.0)]


@given(st.text(st.characters(blacklist_categories=("Cs",)), min_size=1).filter(str.strip))
def test_text_without_marks_is_untouched(text: str) -> None:
    if not any(mark in text for mark in '+-:".'):
        assert terms(parse_query(text)) == [("text", text.strip(), 1.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog + sea - snow", [("text", "dog", 1), ("text", "sea", 1), ("text", "snow", -1)]),
        ('"2:golden retriever" + sea', [("text", "golden retriever", 2), ("text", "sea", 1)]),
        ("2:golden retriever - 0.5:snow", [("text", "golden retriever", 2), ("text", "snow", -0.5)]),
        ("- snow", [("text", "snow", -1)]),
        ("+ snow", [("text", "snow", 1)]),
        ('"salt - pepper" + sea', [("text", "salt - pepper", 1), ("text", "sea", 1)]),
        ('"16:9" - 2: 2010', [("text", "16:9", 1), ("text", "2010", -2)]),
        (".5:dog", [("text", "dog", 0.5)]),
        ("item:abc - 2:item:d", [("item", "abc", 1), ("item", "d", -2)]),
        ("dog\t+\ncat", [("text", "dog", 1), ("text", "cat", 1)]),
    ],
)
def test_terms_weights_and_signs(text: str, expected: list[tuple[str, str, float]]) -> None:
    assert terms(parse_query(text)) == expected


def test_an_existing_file_is_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my photo.JPG").touch()
    (tmp_path / "notes.txt").touch()
    assert terms(parse_query("2:my photo.JPG - notes.txt")) == [
        ("picture", "my photo.JPG", 2),
        ("text", "notes.txt", -1),
    ]


@pytest.mark.parametrize("name", ["salt - pepper.jpg", "a + b.png", "- b.png", "2:c.png"])
def test_an_existing_file_whose_name_holds_operators_is_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    assert terms(parse_query(name)) == [("picture", name, 1)]


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_query_asks_for_words(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^type some words"):
        parse_query(text)


def test_a_missing_picture_is_an_error_that_names_it() -> None:
    with pytest.raises(InvalidInputError, match=r"no picture 'photo\.jpg'"):
        parse_query("dog + photo.jpg")


def test_pictures_are_looked_up_where_the_caller_says() -> None:
    known = {"photo.jpg": Path("/elsewhere/photo.jpg")}
    found = parse_query("dog + photo.jpg", find_picture=known.get)
    assert terms(found)[1] == ("picture", "/elsewhere/photo.jpg", 1)


@pytest.mark.parametrize("text", ["", "  ", "dog + ", "dog -", "+ ", "-", "dog + - cat", "+ + cat", '""'])
def test_an_incomplete_query_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="write what to look for"):
        parse_query(text)


word = st.text("abcdefghij -+", min_size=1, max_size=12).map(str.strip).filter(bool)
weight = st.sampled_from([1.0, -1.0, 2.0, -0.5, 3.25])


@given(st.lists(st.tuples(word, weight), min_size=1, max_size=4))
def test_a_query_written_down_is_read_back(parts: list[tuple[str, float]]) -> None:
    query = parts[0][1] * Query.text(parts[0][0])
    for text, factor in parts[1:]:
        query = query + factor * Query.text(text)
    assert terms(parse_query(str(query))) == terms(query)


def test_operators_build_queries() -> None:
    query = 2 * Query.text("a") - (Query.text("b") + 3 * Query.item("c"))
    assert [(term.kind, term.weight) for term in query.terms] == [("text", 2), ("text", -1), ("item", -3)]
    assert query.words == "a"


@pytest.mark.parametrize("factor", [0, float("nan"), float("inf")])
def test_a_weight_is_a_number_other_than_zero(factor: float) -> None:
    with pytest.raises(InvalidInputError, match="weight"):
        factor * Query.text("a")


def test_a_query_has_bounded_words_and_terms() -> None:
    parse_query("a" * MAX_QUERY_CHARACTERS)
    with pytest.raises(InvalidInputError, match="at most 2,000 characters, got 2,001"):
        parse_query("a" * (MAX_QUERY_CHARACTERS + 1))
    with pytest.raises(InvalidInputError, match="at most 2,000 characters, got 3,000"):
        Query.text("a" * 1500) + Query.text("b" * 1500)
    with pytest.raises(InvalidInputError, match="at most 16 terms, got 17"):
        parse_query(" + ".join("a" * (MAX_TERMS + 1)))
