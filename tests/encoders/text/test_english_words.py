"""Words of English are those of simplemma, whether they come from the package or from the file that was made of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from simplemma import is_known

from diptych.encoders.text import english_words
from diptych.encoders.text.english_words import is_english_word

WORDS = (
    *("dog", "dogs", "corgi", "kaufland", "berlin", "anna", "usa", "iphone", "mcdonald", "x2", "2034", "a", "og", "zz"),
    *("café", "don't", "o'neill", "naïve", "straße", "Berlin", "DOG", "a dog", "a\ndog"),
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own; what another one held is forgotten."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path / "diptych" / "words"
    forget()


def forget() -> None:
    is_english_word.cache_clear()
    english_words._plain_words.cache_clear()


def known() -> list[bool]:
    forget()
    return [is_english_word(word) for word in WORDS]


def test_words_are_known_that_the_package_knows(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [is_known(word, lang="en") for word in WORDS]
    assert expected[:4] == [True, True, True, False]
    assert known() == expected
    assert len(list(cache.iterdir())) == 1

    def unpacked() -> set[str]:
        raise AssertionError("the file was not read")

    monkeypatch.setattr(english_words, "_unpacked", unpacked)
    assert known() == expected


def test_a_file_that_was_damaged_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the package holds is the same every time, and unpacked once.
    monkeypatch.setattr(english_words, "_unpacked", functools.cache(english_words._unpacked))
    expected = known()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    other = (b"", b"dog\n", b"\n\n")
    for damaged in (*other, whole[:-5], whole.replace(b"\ncorgi\n", b"\nkorgi\n"), whole[:70] + b"kaufland\n"):
        file.write_bytes(damaged)
        assert known() == expected
        assert file.read_bytes() == whole


def test_words_are_known_where_no_file_can_be_written(cache: Path) -> None:
    cache.parent.write_text("a file in the place of the folder")
    assert known() == [is_known(word, lang="en") for word in WORDS]
