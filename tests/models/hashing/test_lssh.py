"""LSSH: sparse codes that satisfy the lasso's conditions, bounded dictionaries, codes of single items and of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from diptych.codes import pack_signs
from diptych.errors import InvalidInputError
from diptych.models import LSSH
from diptych.models.hashing._solvers import sample_pairs
from diptych.models.hashing.lssh import fit_atoms, random_atoms, sparse_codes

SMALL = {"n_bits": 12, "n_atoms": 24, "n_iter": 6}


@pytest.fixture(scope="module")
def pairs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(240, 6))
    noise = 0.1 * rng.normal(size=(240, 20))
    return meaning @ rng.normal(size=(6, 12)) + noise[:, :12], meaning @ rng.normal(size=(6, 8)) + noise[:, 12:]


@pytest.fixture(scope="module")
def fitted(pairs) -> LSSH:
    return LSSH(**SMALL).fit(*pairs)


@pytest.fixture(scope="module")
def stacked() -> tuple[np.ndarray, np.ndarray]:
    """Rows [x  √γa] and atoms [d  √γr], more atoms than columns."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(30, 18)), np.hstack([random_atoms(40, 10, rng), 0.7 * random_atoms(40, 8, rng)])


def optimality_gap(rows: np.ndarray, atoms: np.ndarray, ratio: float, codes: np.ndarray) -> float:
    """The largest violation of the optimality conditions of `sparse_codes`, relative to each row's ‖Dx‖_∞.

    At the optimum the correlations c = D(x − sD) are penalty·sgn(s) where s is not zero, and at most the penalty in
    size elsewhere.
    """
    largest = np.abs(rows @ atoms.T).max(axis=1, keepdims=True)
    correlations = (rows - codes @ atoms) @ atoms.T
    penalty = ratio * largest
    used = np.abs(correlations - penalty * np.sign(codes))
    unused = np.maximum(np.abs(correlations) - penalty, 0)
    gaps = np.where(codes != 0, used, unused) / np.where(largest > 0, largest, 1)
    return float(gaps.max())


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.5])
def test_sparse_codes_satisfy_the_conditions_of_the_stacked_lasso(stacked, ratio):
    rows, atoms = stacked
    assert optimality_gap(rows, atoms, ratio, sparse_codes(rows, atoms, ratio, 200)) < 1e-3
    assert optimality_gap(rows, atoms, ratio, sparse_codes(rows, atoms, ratio, 3)) > 1e-2


def test_sparse_codes_are_those_of_another_solver(stacked):
    rows, atoms = stacked
    codes = sparse_codes(rows[:3], atoms, 0.3, 2000)
    for row, code in zip(rows, codes, strict=False):
        # scikit-learn divides the squared error by the number of entries.
        alpha = 0.3 * np.abs(atoms @ row).max() / len(row)
        other = Lasso(alpha=alpha, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(atoms.T, row)
        np.testing.assert_allclose(code, other.coef_, atol=1e-5)


def test_the_penalty_is_relative_to_the_row_and_rows_do_not_meet(stacked):
    rows, atoms = stacked
    codes = sparse_codes(rows, atoms, 0.2, 40)
    np.testing.assert_allclose(sparse_codes(100 * rows, atoms, 0.2, 40), 100 * codes, rtol=1e-9, atol=1e-9)
    alone = np.vstack([sparse_codes(row[None], atoms, 0.2, 40) for row in rows])
    np.testing.assert_allclose(alone, codes, rtol=1e-9, atol=1e-12)
    assert not sparse_codes(rows, atoms, 1.0, 40).any()
    assert not sparse_codes(np.zeros((1, 18)), atoms, 0.2, 40).any()


def test_blocks_do_not_change_codes(stacked, monkeypatch):
    rows, atoms = stacked
    whole = sparse_codes(rows, atoms, 0.2, 20)
    monkeypatch.setattr("diptych.models.hashing.lssh._BLOCK_NUMBERS", 7 * len(atoms))
    np.testing.assert_allclose(sparse_codes(rows, atoms, 0.2, 20), whole, rtol=1e-9, atol=1e-12)


def test_a_dictionary_step_lowers_the_error_within_the_bound():
    rng = np.random.default_rng(2)
    codes, rows = rng.normal(size=(50, 9)), 3 * rng.normal(size=(50, 5))
    atoms = random_atoms(9, 5, rng)
    errors = [np.linalg.norm(rows - codes @ atoms)]
    for _ in range(5):
        (atoms,) = fit_atoms(codes, [rows], [atoms], 1, rng)
        errors.append(np.linalg.norm(rows - codes @ atoms))
        assert np.linalg.norm(atoms, axis=1).max() <= 1 + 1e-6
    assert (np.diff(errors) <= 1e-9).all()
    assert errors[-1] < errors[0]


def test_a_dictionary_whose_bound_is_slack_is_least_squares():
    rng = np.random.default_rng(3)
    codes, truth = rng.normal(size=(80, 6)), 0.3 * rng.normal(size=(6, 7))
    first, second = codes @ truth[:, :3], codes @ truth[:, 3:]
    atoms = fit_atoms(codes, [first, second], [random_atoms(6, 3, rng), random_atoms(6, 4, rng)], 100, rng)
    np.testing.assert_allclose(np.hstack(atoms), truth, atol=1e-8)


def test_atoms_that_no_code_uses_are_drawn_anew():
    rng = np.random.default_rng(4)
    codes = rng.normal(size=(30, 5))
    codes[:, 2] = 0
    before = random_atoms(5, 4, rng)
    (after,) = fit_atoms(codes, [rng.normal(size=(30, 4))], [before], 2, rng)
    assert np.abs(after[2] - before[2]).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(after[2]), 1)


def test_learned_dictionaries_keep_the_bound(fitted):
    for atoms in (fitted.image_atoms_, fitted.image_topics_, fitted.text_topics_):
        assert np.linalg.norm(atoms, axis=1).max() <= 1 + 1e-6
    assert fitted.image_atoms_.shape == (24, 12)


def test_outputs_of_pairs_minimise_the_objective_of_their_latent_row(fitted, pairs):
    images, texts = pairs[0][:9], pairs[1][:9]
    unit = texts - fitted.text_mean_
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    topics, latent = fitted.text_topics_, fitted.decision_pairs(images, texts)
    # d/dA of μ‖Y − AU‖² + γ‖A − SR‖².
    slope = fitted.text_weight * (latent @ topics - unit) @ topics.T
    slope += fitted.coupling * (latent - fitted.decision_images(images))
    np.testing.assert_allclose(slope, 0, atol=1e-10)
    # A text alone is a pair whose picture says nothing.
    text = fitted.decision_texts(texts)
    slope = fitted.text_weight * (text @ topics - unit) @ topics.T + fitted.coupling * text
    np.testing.assert_allclose(slope, 0, atol=1e-10)


def test_both_sides_and_pairs_get_like_codes(fitted, pairs):
    images, texts = pairs
    codes = [np.sign(fitted.decision_images(images)), np.sign(fitted.decision_texts(texts))]
    codes.append(np.sign(fitted.decision_pairs(images, texts)))
    assert (codes[0] == codes[1]).mean() > 0.75
    assert (codes[2] == codes[1]).mean() > 0.75
    assert (codes[2] == codes[0]).mean() > 0.75


def test_one_pair_alone_has_the_outputs_of_the_batch(fitted, pairs):
    images, texts = pairs
    batch = fitted.decision_pairs(images[:8], texts[:8])
    alone = np.vstack([fitted.decision_pairs(images[i : i + 1], texts[i : i + 1]) for i in range(8)])
    np.testing.assert_allclose(alone, batch, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fitted.encode_pairs(images[:8], texts[:8]), pack_signs(batch))


def test_the_mean_row_has_a_fixed_code(fitted):
    assert not fitted.decision_images(fitted.image_mean_[None]).any()
    assert not fitted.decision_texts(fitted.text_mean_[None]).any()


def test_more_pairs_than_wanted_are_sampled(pairs):
    images, texts = pairs
    some = LSSH(**SMALL, max_pairs=60).fit(images, texts)
    same = LSSH(**SMALL).fit(*sample_pairs(images, texts, 60, 0))
    np.testing.assert_allclose(some.decision_images(images), same.decision_images(images), rtol=1e-9, atol=1e-12)
    with pytest.raises(InvalidInputError, match="max_pairs"):
        LSSH(max_pairs=0).fit(images, texts)


def test_wrong_pairs_teach_nothing(pairs):
    images, texts = pairs
    unseen = slice(120, 240)
    shuffled = texts[np.random.default_rng(5).permutation(120)]
    wrong = LSSH(**SMALL).fit(images[:120], shuffled).score(images[unseen], texts[unseen])
    right = LSSH(**SMALL).fit(images[:120], texts[:120]).score(images[unseen], texts[unseen])
    ranks = 1 / np.arange(1, 121)
    assert abs(wrong - ranks.mean()) < 3 * ranks.std() / np.sqrt(120)
    assert right > ranks.mean() + 6 * ranks.std() / np.sqrt(120)
