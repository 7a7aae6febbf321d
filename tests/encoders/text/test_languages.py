from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data import data_folder
from diptych.encoders import guess_language, language_probabilities
from diptych.encoders.text import languages
from diptych.encoders.text.languages import LANGUAGES, OTHER, _LetterCounts, language_note

SHORT = {
    language: queries
    for language, *queries in (
        line.split("\t")
        for line in Path(__file__).with_name("short_queries.tsv").read_text(encoding="utf-8").splitlines()
    )
}
BENCHMARK = Path(__file__).parents[3] / "bench" / "language_queries.tsv"


def test_there_are_short_queries_of_every_language() -> None:
    assert SHORT.keys() == LANGUAGES.keys()
    assert {len(queries) for queries in SHORT.values()} == {20}


@given(
    words=st.lists(st.text("ab\u00e9", min_size=1), min_size=1, unique=True), letters=st.text("ab\u00e9 ", max_size=3)
)
def test_letters_in_a_row_are_counted_wherever_they_begin(words: list[str], letters: str) -> None:
    marked = "".join(f"  {word} " for word in words)
    if letters.strip():
        assert _LetterCounts(words)[letters] == sum(marked.startswith(letters, place) for place in range(len(marked)))


@pytest.mark.parametrize("n_letters", [200, 201, 300, 3000])
def test_words_of_any_length_are_read(n_letters: int) -> None:
    word = ("abcdefghij" * 300)[:n_letters]
    assert sum(language_probabilities(word).values()) == pytest.approx(1)
    assert guess_language(f"ein Hund am Strand {word}") == "de"


def test_a_long_text_costs_no_more_than_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    monkeypatch.setattr(languages, "_evidence", lambda word: words.append(word) or {"en": -1.0})
    language_probabilities("straw berries " * 10_000)
    assert sum(map(len, words)) <= languages.MAX_LETTERS_READ


@pytest.mark.parametrize("language", SHORT)
def test_most_short_queries_are_recognised(language: str) -> None:
    guesses = [guess_language(query) for query in SHORT[language]]
    assert guesses.count(language) >= 18, dict(zip(SHORT[language], guesses, strict=True))


def test_english_is_told_from_everything_else() -> None:
    wrong = [
        query
        for language, queries in SHORT.items()
        for query in queries
        if (guess_language(query) == "en") != (language == "en")
    ]
    assert len(wrong) <= 3, wrong


def test_a_translated_query_is_in_its_language() -> None:
    languages, *rows = (line.split("\t") for line in BENCHMARK.read_text(encoding="utf-8").splitlines())
    assert len(rows) == 25
    assert len(languages) == len(set(languages)) == 15
    wrong = [
        query
        for row in rows
        for language, query in zip(languages, row, strict=True)
        if guess_language(query) != language
    ]
    assert len(wrong) <= 5, wrong


@pytest.mark.data("multi30k")
@pytest.mark.parametrize("language", ["cs", "de", "en", "fr"])
def test_captions_are_recognised(language: str) -> None:
    file = data_folder() / "multi30k" / f"test_2016_flickr.{language}.gz"
    captions = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()[:200]
    assert sum(guess_language(caption) == language for caption in captions) >= 0.985 * len(captions)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("ZWEI HUNDE", "de"),
        ("muz na kole", "cs"),
        ("zolty pies na plazy", "pl"),
        ("İKİ KÖPEK", "tr"),
        ("e\u0301cole et enfants", "fr"),
        ("ein Snowboarder springt durch die Luft", "de"),
        ("a samurai with a katana", "en"),
        ("LEGO 城市", "zh"),
        ("東京の夜", "ja"),
        ("ｔｗｏ　ｄｏｇｓ", "en"),
        ("собака і кіт", OTHER),
        ("سگ در پارک", OTHER),
        ("कुत्ता दौड़ रहा है", OTHER),
        ("ένας σκύλος", OTHER),
        ("một con chó trên bãi biển", OTHER),
    ],
)
def test_how_a_language_is_written_does_not_mislead(text: str, language: str) -> None:
    assert guess_language(text) == language


@pytest.mark.parametrize("text", ["", " ", "42", "🐶 !?", "2024-05-01"])
def test_what_has_no_letters_has_no_language(text: str) -> None:
    assert language_probabilities(text) == {}
    assert guess_language(text) is None


def test_what_is_the_same_in_several_languages_stays_open() -> None:
    probabilities = language_probabilities("tennis")
    assert 0.3 < probabilities["en"] < 0.7
    assert probabilities["de"] == pytest.approx(probabilities["it"], rel=0.1)


@given(st.text(max_size=20))
@settings(max_examples=30)
def test_probabilities_add_up_and_the_likeliest_comes_first(text: str) -> None:
    probabilities = language_probabilities(text)
    assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)
    assert not probabilities or sum(probabilities.values()) == pytest.approx(1)
    assert probabilities.keys() <= {*LANGUAGES, OTHER}


@pytest.mark.parametrize(
    ("text", "named"),
    [("dva psi na pláži", "Czech"), ("ein Hund am Strand", "German"), ("собака", "Russian"), ("二匹の犬", "Japanese")],
)
def test_a_language_that_is_not_understood_is_named(text: str, named: str) -> None:
    note = language_note(text, {"en"})
    assert note == f"This looks like {named}, which the search model does not understand well; try English."
    assert language_note(text, set(LANGUAGES)) is None


def test_a_language_without_a_name_in_another_script_is_not_understood_either() -> None:
    for understood in ({"en"}, set(LANGUAGES)):
        assert language_note("δύο σκυλιά", understood) == (
            "This looks like a language that the search model does not understand well; try English."
        )


@pytest.mark.parametrize(
    "text",
    ["", "42", "pes", "Strand", "two dogs", "tapas bar", "xqzv bnmk", "labrador welpe", "café de Paris"],
)
def test_nothing_is_said_of_english_nor_of_what_is_not_sure(text: str) -> None:
    assert language_note(text, {"en"}) is None
    assert language_note(text, set()) is None
