"""Neighbours of a word are those of the largest cosine, and an unknown word is helped."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from diptych.encoders import WordVectors, nearest_words
from diptych.errors import InvalidInputError


@pytest.fixture
def table() -> WordVectors:
    vectors = np.random.default_rng(0).normal(size=(30, 5))
    vectors[7] = 0
    return WordVectors([f"word{number}" for number in range(29)] + ["Paris"], vectors)


def test_neighbours_are_those_of_the_largest_cosine(table: WordVectors) -> None:
    units = table.vectors / np.maximum(np.linalg.norm(table.vectors, axis=1, keepdims=True), 1e-12)
    cosines = units @ units[3]
    expected = [row for row in np.argsort(-cosines, kind="stable").tolist() if row != 3][:6]
    found = nearest_words(table, "word3", k=6)
    assert [near.word for near in found] == [table.words[row] for row in expected]
    np.testing.assert_allclose([near.similarity for near in found], cosines[expected], rtol=1e-6)


def test_blocks_do_not_change_anything(table: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = nearest_words(table, "word3", k=29)
    monkeypatch.setattr(import_module("diptych.encoders.text.word_vectors"), "_ROWS_AT_ONCE", 4)
    parts = nearest_words(table, "word3", k=29)
    assert [near.word for near in parts] == [near.word for near in whole]


def test_capitals_do_not_matter_and_a_table_may_be_smaller_than_k(table: WordVectors) -> None:
    assert nearest_words(table, "PARIS", k=100) == nearest_words(table, "paris", k=29)
    assert len(nearest_words(table, "Paris", k=100)) == 29


def test_what_cannot_be_asked_is_named(table: WordVectors) -> None:
    with pytest.raises(InvalidInputError, match="'zzz' is not among the 30 words that are known"):
        nearest_words(table, "zzz")
    with pytest.raises(InvalidInputError, match="k must be at least 1"):
        nearest_words(table, "word3", k=0)
