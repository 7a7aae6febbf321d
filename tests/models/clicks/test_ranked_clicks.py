"""PSI, DeViSE and the word vectors they may use."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from diptych.encoders import skip_gram
from diptych.errors import InvalidInputError
from diptych.models import PSI, DeViSE
from diptych.models.clicks._margin_ranking import MarginRanking
from diptych.models.clicks.ranked_clicks import FixedQueries, WordQueries

from .conftest import THINGS


class Recorded:
    """A text side that keeps the gradient it is given."""

    weights = None

    def __init__(self, points: np.ndarray) -> None:
        self._points = points

    def points(self, rows: np.ndarray) -> np.ndarray:
        return self._points[rows]

    def move(self, rows: np.ndarray, gradient: np.ndarray, *, rate: float) -> None:
        self.rows, self.gradient = rows, gradient


def small_ranking(side, rng, weights=None):
    images = rng.normal(size=(6, 4))
    start = rng.normal(size=(4, 3)) if weights is None else weights
    return images, MarginRanking(images, np.full(4, 2.0), side, start, margin=0.7)


def test_the_loss_is_the_hinge_of_the_paper_and_its_gradient_that_of_differences():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 3))
    side = Recorded(points)
    images, ranking = small_ranking(side, rng)
    weights = ranking.weights.copy()
    triplets = np.array([0, 1, 2, 2]), np.array([0, 1, 2, 3]), np.array([4, 5, 5, 4])

    def loss(points, weights):
        terms = [
            max(0, 0.7 - (images[x] / 2) @ weights @ points[q] + (images[y] / 2) @ weights @ points[q])
            for q, x, y in zip(*triplets, strict=True)
        ]
        return np.mean(terms)

    assert ranking.loss(triplets) == pytest.approx(loss(points, weights))
    assert ranking.train([triplets], rate=1e-3) == pytest.approx(loss(points, weights))
    by_weights, step = np.zeros_like(weights), 1e-6
    for place in np.ndindex(*weights.shape):
        moved = weights.copy()
        moved[place] += step
        by_weights[place] = (loss(points, moved) - loss(points, weights)) / step
    # The first step of Adagrad is the sign of the gradient.
    np.testing.assert_allclose(ranking.weights - weights, -1e-3 * np.sign(by_weights.round(5)), atol=1e-8)
    by_points = np.zeros_like(points)
    np.add.at(by_points, side.rows, side.gradient)
    for place in np.ndindex(*points.shape):
        moved = points.copy()
        moved[place] += step
        assert by_points[place] == pytest.approx((loss(moved, weights) - loss(points, weights)) / step, abs=1e-5)


def test_words_move_by_the_gradients_of_the_queries_that_hold_them():
    words = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0]])
    start = np.random.default_rng(0).normal(size=(3, 2))
    queries = WordQueries(csr_array(words), start.copy())
    np.testing.assert_allclose(queries.points(np.array([1, 0])), words[[1, 0]] @ start)
    gradient = np.array([[1.0, -1.0], [3.0, 2.0]])
    queries.move(np.array([0, 1]), gradient, rate=0.1)
    np.testing.assert_allclose(queries.weights, start - 0.1 * np.sign(words.T @ gradient), atol=1e-6)


def test_given_points_stay_where_they_are():
    side = FixedQueries(np.eye(2))
    side.move(np.array([0]), np.ones((1, 2)), rate=1.0)
    assert side.points(np.array([0, 1])).tolist() == np.eye(2).tolist()


def test_training_lowers_the_loss_and_keeps_the_best_epoch(clicked):
    model = PSI(n_components=16, epochs=12, patience=3).fit_clicks(clicked.log, clicked.images)
    assert model.losses_[-1] < 0.6 * model.losses_[0]
    assert len(model.losses_) == len(model.held_out_losses_) <= 12
    worse = np.diff(np.minimum.accumulate(model.held_out_losses_)) == 0
    assert worse.sum() <= 3
    everything = PSI(n_components=16, epochs=2, held_out=0).fit_clicks(clicked.log, clicked.images)
    assert everything.held_out_losses_.size == 0


def test_psi_keeps_the_commonest_words_and_weighs_rare_ones_more(clicked):
    full = clicked.fitted(PSI(epochs=3))
    queries = {frozenset(query.split()) for query in clicked.log.queries}
    counts = {word: sum(word in query for query in queries) for word in full.words_}
    for word, weight in zip(full.words_, full.idf_, strict=True):
        assert weight == pytest.approx(1 + np.log((1 + len(queries)) / (1 + counts[word])))
    few = PSI(n_components=4, epochs=1, max_words=5).fit_clicks(clicked.log, clicked.images)
    assert sorted(counts[word] for word in few.words_) == sorted(counts.values())[-5:]
    assert few.answers(few.words_[0])
    assert not few.answers(next(word for word in full.words_ if word not in few.words_))


def test_devise_understands_words_that_nobody_clicked_for(clicked):
    model = clicked.fitted(DeViSE(vectors=clicked.vectors))
    assert "ship" not in " ".join(clicked.log.queries)
    np.testing.assert_array_equal(np.argsort(-model.scores(["ships"], clicked.asked)[0])[:5] // 20, 0)
    lengths = np.linalg.norm(model.encode_texts(["red boat", "unheard"]), axis=1)
    np.testing.assert_allclose(lengths, [1, 0], atol=1e-6)


def test_devise_trains_word_vectors_on_the_log_itself(clicked, tmp_path):
    model = DeViSE(vectors="log", epochs=3).fit_clicks(clicked.log, clicked.images)
    model.save(tmp_path / "model")
    again = DeViSE.load(tmp_path / "model")
    np.testing.assert_array_equal(again.scores(["boat"], clicked.asked), model.scores(["boat"], clicked.asked))
    assert set(model.words_) >= set(THINGS)


def test_words_that_stand_beside_the_same_words_become_similar():
    rng = np.random.default_rng(0)
    sea, home = ["wave", "sail", "harbour", "anchor"], ["fur", "milk", "whisker", "basket"]
    texts = []
    for _ in range(1500):
        group, names = ((sea, ["boat", "ship"]), (home, ["cat", "kitten"]))[rng.integers(2)]
        texts.append(" ".join([*rng.choice(group, size=3), str(rng.choice(names))]))
    table = skip_gram(texts, n_features=16, min_count=5, epochs=5)

    def cosine(left, right):
        return table[left] @ table[right] / np.linalg.norm(table[left]) / np.linalg.norm(table[right])

    assert cosine("boat", "ship") > cosine("boat", "cat") + 0.2
    again = skip_gram(texts, n_features=16, min_count=5, epochs=5)
    np.testing.assert_array_equal(again.vectors, table.vectors)
    with pytest.raises(InvalidInputError, match="lower min_count"):
        skip_gram(texts[:3], min_count=50)
    with pytest.raises(InvalidInputError, match="window must be at least 1"):
        skip_gram(texts[:3], window=0)
