"""Rankings made with tensors equal those made with arrays; PyTorch's processor stands in for its card."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from diptych import Space
from diptych.devices import Card
from diptych.errors import InvalidInputError
from diptych.metrics import AP, NDCG, GradedRelevance, RecallAtK, SameLabel, evaluate
from diptych.metrics import evaluation as evaluation_module

torch = pytest.importorskip("torch")


@pytest.fixture
def on_tensors(monkeypatch):
    """Return a function that evaluates with tensors."""

    def evaluated(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(evaluation_module, "card_for", lambda work: Card(torch, "cpu"))
            return evaluate(*arguments, **options)

    return evaluated


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean", "pearson", "kl"])
@pytest.mark.parametrize("ties", ["expected", "random", "optimistic"])
def test_measures_are_those_of_the_processor_with_ties_of_equal_points(on_tensors, metric, ties):
    rng = np.random.default_rng(3)
    queries, gallery = rng.random((30, 6)), rng.random((80, 6))[rng.integers(80, size=400)]
    relevance = SameLabel(rng.integers(7, size=30), rng.integers(7, size=400))
    measures = [AP(), AP(10), RecallAtK(5)]
    arguments = queries, gallery, Space(metric), relevance, measures
    expected, found = evaluate(*arguments, ties=ties), on_tensors(*arguments, ties=ties)
    for measure in measures:
        np.testing.assert_allclose(found.values[measure], expected.values[measure], rtol=1e-12)
    assert found.chance == expected.chance


def test_grades_and_queries_with_different_numbers_of_relevant_items(on_tensors):
    rng = np.random.default_rng(4)
    queries, gallery = rng.normal(size=(20, 5)), rng.normal(size=(60, 5))
    grades = rng.integers(4, size=(20, 60)) * (rng.random((20, 60)) < rng.random((20, 1)))
    grades[0] = 0
    arguments = queries, gallery, Space("dot"), GradedRelevance(grades), [NDCG(10), AP()]
    expected, found = evaluate(*arguments), on_tensors(*arguments)
    for measure in (NDCG(10), AP()):
        np.testing.assert_allclose(found.values[measure], expected.values[measure], rtol=1e-12)
    assert found.n_without_relevant == expected.n_without_relevant >= 1


def test_a_query_that_ranks_its_judged_items_alone(on_tensors):
    rng = np.random.default_rng(5)
    queries, gallery = rng.normal(size=(15, 5)), rng.normal(size=(50, 5))
    rows, columns = np.nonzero(rng.random((15, 50)) < 0.3)
    judged = scipy.sparse.csr_array((rng.integers(3, size=len(rows)), (rows, columns)), shape=(15, 50))
    relevance = GradedRelevance(judged, judged_only=True)
    arguments = queries, gallery, Space("cosine"), relevance, [NDCG(5), AP()]
    expected, found = evaluate(*arguments), on_tensors(*arguments)
    for measure in (NDCG(5), AP()):
        np.testing.assert_allclose(found.values[measure], expected.values[measure], rtol=1e-12)


def test_points_that_are_not_numbers_are_refused_there_too(on_tensors):
    queries = np.array([[1.0, np.nan]])
    with pytest.raises(InvalidInputError, match="query 0 hold NaN"):
        on_tensors(queries, np.eye(2), Space("dot"), SameLabel([0], [0, 1]), [AP()])
