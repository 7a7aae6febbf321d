from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from diptych.encoders import Tfidf, TfidfTopics, WordPipeline
from diptych.encoders.text.tfidf import learn_vocabulary
from diptych.encoders.text.word_pipeline import FUNCTION_WORDS, PICTURE_WORDS, lemma
from diptych.errors import InvalidInputError, MissingPackageError


@given(st.text(max_size=80))
@pytest.mark.parametrize("stop_words", [None, "english"])
def test_plain_words_are_those_of_scikit_learn(stop_words: str | None, text: str) -> None:
    assert WordPipeline(stop_words=stop_words).words(text) == CountVectorizer(stop_words=stop_words).build_analyzer()(
        text
    )


@given(st.text(max_size=80))
def test_words_are_clean_whatever_the_text(text: str) -> None:
    words = WordPipeline(stop_words="pictures", lemmas=True).words(text)
    assert not set(words) & (FUNCTION_WORDS | PICTURE_WORDS)
    assert all(word == word.lower() and not word.isspace() for word in words)
    assert WordPipeline(stop_words="pictures").words(" ".join(words)) == [word for word in words if len(word) > 1]


def test_picture_words_and_function_words_go_and_visible_words_stay() -> None:
    pipeline = WordPipeline(stop_words="pictures")
    assert pipeline.words("Pictures of the fire, in FRONT of two images; a photo, pics") == ["fire", "front", "two"]
    assert WordPipeline(stop_words="english").words("a photo of the fire") == ["photo"]


def test_queries_in_another_number_become_the_same_words() -> None:
    pipeline = WordPipeline(stop_words="pictures", lemmas=True)
    assert pipeline.words("images of soccer balls!") == pipeline.words("the soccer ball") == ["soccer", "ball"]


@pytest.mark.parametrize(
    ("word", "form"),
    [("dogs", "dog"), ("children", "child"), ("wearing", "wear"), ("was", "was"), ("men", "men"), ("grass", "grass")],
)
def test_lemmas_of_words_longer_than_three_letters(word: str, form: str) -> None:
    assert lemma(word) == form


def test_a_stop_word_behind_an_inflected_form_goes_too() -> None:
    assert WordPipeline(stop_words="english", lemmas=True).words("shows boats") == ["boat"]


def test_lemmas_without_the_package_name_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplemma", None)
    lemma.cache_clear()
    with pytest.raises(MissingPackageError, match=r"pip install simplemma==2\.0\.0"):
        WordPipeline(lemmas=True).words("boats")
    assert WordPipeline().words("boats") == ["boats"]


def test_an_unknown_list_of_stop_words_names_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="'english', 'pictures', got 'french'"):
        Tfidf(stop_words="french").fit(["red boat"])


def test_lemmas_join_the_columns_of_one_word_and_change_the_identity() -> None:
    texts = ["two dogs", "one dog", "dogs and boats"]
    assert Tfidf(min_documents=1, stop_words="pictures").fit(texts).vocabulary_ == (
        "boats",
        "dog",
        "dogs",
        "one",
        "two",
    )
    with_lemmas = Tfidf(min_documents=1, stop_words="pictures", lemmas=True).fit(texts)
    assert with_lemmas.vocabulary_ == ("boat", "dog", "one", "two")
    assert (
        TfidfTopics().identity == "TfidfTopics(lemmas=False, min_documents=2, n_components=100, stop_words='english')"
    )
    assert "lemmas=True" in TfidfTopics(lemmas=True).identity


def test_the_commonest_words_are_kept_and_equals_by_the_alphabet() -> None:
    texts = ["cat dog", "cat boat", "dog boat ship"]
    assert learn_vocabulary(texts, WordPipeline(), 1) == ("boat", "cat", "dog", "ship")
    assert learn_vocabulary(texts, WordPipeline(), 1, max_words=2) == ("boat", "cat")
