"""Which texts read as English, and which get a note that their language is not understood."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from diptych.data import data_folder
from diptych.encoders.text import languages
from diptych.encoders.text.languages import language_note, reads_as_english
from diptych.encoders.text.universal_sentence_encoder import UNDERSTOOD

SHORT = {
    language: queries
    for language, *queries in (
        line.split("\t")
        for line in Path(__file__).with_name("short_queries.tsv").read_text(encoding="utf-8").splitlines()
    )
}
BENCHMARK = Path(__file__).parents[3] / "bench" / "language_queries.tsv"
OTHER_SCRIPTS = {"ar", "ja", "ko", "ru", "th", "zh"}
# Two or three words, many of which English has too: tennis, restaurant, train.
MAX_TAKEN_FOR_ENGLISH = 3


@pytest.mark.parametrize("language", SHORT)
def test_short_queries_are_english_or_not(language: str) -> None:
    taken = [query for query in SHORT[language] if reads_as_english(query)]
    if language == "en":
        assert taken == SHORT["en"]
    else:
        assert len(taken) <= (0 if language in OTHER_SCRIPTS else MAX_TAKEN_FOR_ENGLISH), taken


def test_translated_queries_are_not_english() -> None:
    with BENCHMARK.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len(rows) == 25
    assert all(reads_as_english(row["en"]) for row in rows)
    taken = [text for row in rows for language, text in row.items() if language != "en" and reads_as_english(text)]
    assert len(taken) <= 1, taken


@pytest.mark.data("multi30k")
def test_captions_are_told_apart_and_only_those_of_unknown_languages_get_a_note() -> None:
    for language in ("cs", "de", "en", "fr"):
        file = data_folder() / "multi30k" / f"test_2016_flickr.{language}.gz"
        captions = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()[:100]
        english = sum(map(reads_as_english, captions)) / len(captions)
        assert english == 1 if language == "en" else english <= 0.02
        noted = sum(language_note(caption, UNDERSTOOD) is not None for caption in captions) / len(captions)
        assert noted >= 0.95 if language == "cs" else noted == 0
        noted = sum(language_note(caption, {"en"}) is not None for caption in captions) / len(captions)
        assert noted == 0 if language == "en" else noted >= 0.75


@pytest.mark.parametrize("text", ["", " ", "42", "🐶 !?", "2024-05-01", "a samurai with a katana", "ｔｗｏ　ｄｏｇｓ"])
def test_what_is_read_by_the_english_network(text: str) -> None:
    assert reads_as_english(text)


@pytest.mark.parametrize("n_letters", [200, 201, 300, 3000])
def test_words_of_any_length_are_read(n_letters: int) -> None:
    word = ("abcdefghij" * 300)[:n_letters]
    assert not reads_as_english(word)
    assert not reads_as_english(f"ein Hund am Strand {word}")
    assert language_note(word, {"en"}) is None


def test_a_long_text_costs_no_more_than_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    monkeypatch.setattr(languages, "is_english_word", lambda word: words.append(word) is None)
    assert reads_as_english("straw berries " * 10_000)
    assert sum(map(len, words)) <= languages.MAX_LETTERS_READ


@pytest.mark.parametrize(
    "text",
    [
        *("δύο σκυλιά", "שני כלבים בחוף", "कुत्ता दौड़ रहा है", "собака і кіт", "سگ در پارک ۓ", "dva psi na pláži"),
        *("một con chó trên bãi biển", "två hundar på stranden"),
    ],
)
def test_letters_of_no_known_language_get_a_note(text: str) -> None:
    for understood in ({"en"}, UNDERSTOOD):
        assert language_note(text, understood) == (
            "This looks like a language that the search model does not understand well; try English."
        )


@pytest.mark.parametrize(
    "text",
    ["ein Hund am Strand", "собака", "二匹の犬", "LEGO 城市", "東京の夜", "İki köpek plajda", "e\u0301cole et enfants"],
)
def test_a_language_that_is_understood_gets_none(text: str) -> None:
    assert language_note(text, {"en"}) is not None
    assert language_note(text, UNDERSTOOD) is None


@pytest.mark.parametrize(
    "text",
    ["", "42", "pes", "Strand", "two dogs", "tapas bar", "xqzv bnmk", "labrador welpe", "café de Paris", "Anna Kaliso"],
)
def test_nothing_is_said_of_english_nor_of_what_is_not_sure(text: str) -> None:
    assert language_note(text, {"en"}) is None
    assert language_note(text, UNDERSTOOD) is None
