"""Real queries against codes, and the numbers that describe codes."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.codes import asymmetric_scores, code_statistics, hamming_distances, pack_signs
from diptych.errors import InvalidInputError


@settings(max_examples=40)
@given(st.integers(1, 130), st.integers(1, 40), st.integers(1, 50), st.integers(0, 1000))
def test_asymmetric_scores_are_the_dense_product(n_bits: int, n_queries: int, n_items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    decisions, signs = rng.standard_normal((n_queries, n_bits)), rng.choice([-1.0, 1.0], (n_items, n_bits))
    scores = asymmetric_scores(decisions, pack_signs(signs))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, decisions @ signs.T, rtol=1e-5, atol=1e-4)


def test_asymmetric_scores_of_signs_are_hamming_distances() -> None:
    rng = np.random.default_rng(0)
    queries, items = rng.choice([-1.0, 1.0], (3, 48)), rng.choice([-1.0, 1.0], (40_000, 48))
    codes = pack_signs(items)
    scores = asymmetric_scores(queries, codes)
    np.testing.assert_array_equal(scores, 48 - 2.0 * hamming_distances(pack_signs(queries), codes))


def test_a_query_alone_scores_as_in_a_large_batch() -> None:
    rng = np.random.default_rng(1)
    decisions, codes = rng.standard_normal((40, 20)), pack_signs(rng.standard_normal((300, 20)))
    np.testing.assert_allclose(
        asymmetric_scores(decisions[:1], codes), asymmetric_scores(decisions, codes)[:1], atol=1e-5
    )


def test_scores_of_another_number_of_bits_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="9 bits do not belong to codes of 1 bytes"):
        asymmetric_scores(np.ones((2, 9)), np.zeros((3, 1), dtype=np.uint8))


@settings(max_examples=40)
@given(st.integers(1, 70), st.integers(1, 60), st.integers(0, 1000))
def test_statistics_agree_with_plain_formulas(n_bits: int, n_items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((n_items, n_bits)) < rng.random(n_bits)
    found = code_statistics(pack_signs(np.where(bits, 1.0, -1.0)), n_bits)
    _, groups = np.unique(bits, axis=0, return_counts=True)
    shares = bits.mean(axis=0)
    changing = bits[:, (shares > 0) & (shares < 1)]
    assert (found.n_items, found.n_bits, found.bytes_per_item) == (n_items, n_bits, -(-n_bits // 8))
    assert (found.distinct, found.largest_group) == (len(groups), groups.max())
    assert found.constant_bits == n_bits - changing.shape[1]
    assert found.bit_balance == pytest.approx(shares.mean())
    assert found.worst_balance == pytest.approx(np.abs(shares - 0.5).max())
    expected = 0.0
    if changing.shape[1] > 1:
        correlations = np.corrcoef(changing.T.astype(float))
        expected = np.abs(correlations[np.triu_indices(len(correlations), 1)]).mean()
    assert found.mean_abs_correlation == pytest.approx(expected, abs=1e-12)
    assert 0 <= found.bit_entropy <= 1
    assert found.code_entropy == pytest.approx(-(groups / n_items * np.log2(groups / n_items)).sum(), abs=1e-12)


def test_all_codes_of_four_bits_once_use_their_bits_perfectly() -> None:
    codes = (np.arange(16, dtype=np.uint8) << 4)[:, None]
    found = asdict(code_statistics(codes, 4))
    assert found == {
        "n_items": 16,
        "n_bits": 4,
        "distinct": 16,
        "largest_group": 1,
        "bit_balance": 0.5,
        "worst_balance": 0.0,
        "constant_bits": 0,
        "mean_abs_correlation": 0.0,
        "bit_entropy": 1.0,
        "code_entropy": 4.0,
        "bytes_per_item": 1,
    }


def test_statistics_of_nothing_or_of_another_width_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no codes"):
        code_statistics(np.empty((0, 1), dtype=np.uint8), 8)
    with pytest.raises(InvalidInputError, match="9 bits have 2 bytes"):
        code_statistics(np.zeros((3, 1), dtype=np.uint8), 9)
