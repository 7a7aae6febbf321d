"""Two sentence networks side by side, and which of them a text goes through."""

from __future__ import annotations

import pickle

import numpy as np

from diptych.encoders import MultilingualSentences, SentenceEncoder, SideBySide, UniversalSentenceEncoder
from diptych.encoders.text.languages import reads_as_english
from diptych.encoders.text.multilingual_sentences import UNDERSTOOD, query_forms

TEXTS = ["a dog runs on the beach", "ein Hund läuft am Strand", "一只狗在海滩上跑", "two girls", "1, 2, 3"]


def test_english_goes_through_both_networks_and_the_rest_through_one() -> None:
    features = MultilingualSentences().transform(TEXTS)
    assert features.shape == (5, 896)
    np.testing.assert_allclose(features[:, 384:], UniversalSentenceEncoder().transform(TEXTS), atol=1e-6)
    english = [0, 3, 4]
    np.testing.assert_allclose(
        features[english, :384], SentenceEncoder().transform([TEXTS[row] for row in english]), atol=1e-5
    )
    assert not features[[1, 2], :384].any()


def test_a_copy_in_another_process_gives_the_same() -> None:
    encoder = MultilingualSentences(n_threads=1)
    features = encoder.transform(TEXTS[:2])
    again = pickle.loads(pickle.dumps(encoder))
    assert again.fingerprint == encoder.fingerprint == MultilingualSentences(batch_size=3).fingerprint
    np.testing.assert_allclose(again.transform(TEXTS[:2]), features, atol=1e-6)


def test_what_may_be_english_is_taken_for_it() -> None:
    assert all(map(reads_as_english, ("a man", "dog", "people in a restaurant", "a red car on the street", "", "?!")))
    assert not any(map(reads_as_english, ("deux chiens dans la neige", "собака", "犬", "ein rotes Auto")))
    assert {"en", "zh", "de"} <= UNDERSTOOD
    assert "cs" not in UNDERSTOOD


def test_the_english_part_may_be_one_trained_on_captions() -> None:
    plain, trained = MultilingualSentences(), MultilingualSentences(english="minilm-captions")
    # Collections made before there was a choice know the first by this name.
    assert plain.identity == "MultilingualSentences(english='minilm')"
    assert plain.fingerprint != trained.fingerprint
    features = trained.transform(TEXTS)
    np.testing.assert_array_equal(features[:, 384:], plain.transform(TEXTS)[:, 384:])
    expected = SentenceEncoder(source="minilm-captions").transform(TEXTS[:1])
    np.testing.assert_allclose(features[:1, :384], expected, atol=1e-5)


def test_a_thing_is_looked_for_by_its_name_however_it_is_typed() -> None:
    encoder = MultilingualSentences(english="minilm-captions")
    typed = ["dog", "a dog", "The  dog", "a photo of a dog", "pictures of the dog", "an image of dog"]
    expected = encoder.transform(["dog", "there is a dog"]).mean(axis=0)
    for row in encoder.transform_queries(typed):
        np.testing.assert_allclose(row, expected, atol=1e-5)
    plural = encoder.transform(["dogs", "there is a dog"]).mean(axis=0)
    np.testing.assert_allclose(encoder.transform_queries(["photos of dogs"])[0], plural, atol=1e-5)


def test_what_says_more_than_a_name_is_read_as_it_is() -> None:
    asked = ["a dog runs on the beach", "two dogs", "ein Hund", "собака", "42", "a", "a photo of", "An Unheard-of"]
    assert [query_forms(text) for text in asked] == [(text,) for text in asked]
    encoder = MultilingualSentences(english="minilm-captions")
    np.testing.assert_allclose(encoder.transform_queries(asked), encoder.transform(asked), atol=1e-5)


def test_captions_and_other_networks_are_read_as_they_are() -> None:
    plain, trained = MultilingualSentences(), MultilingualSentences(english="minilm-captions")
    np.testing.assert_array_equal(plain.transform_queries(["a dog"]), plain.transform(["a dog"]))
    assert not np.allclose(trained.transform(["a dog"]), trained.transform(["dog"]), atol=1e-2)
    both = SideBySide(encoders=(trained, plain)).transform_queries(["a dog"])
    np.testing.assert_array_equal(both[:, :896], trained.transform_queries(["a dog"]))
    np.testing.assert_array_equal(both[:, 896:], plain.transform(["a dog"]))
