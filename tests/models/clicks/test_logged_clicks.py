"""The printed formulas, summed term by term, against the models."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data.clicks import ClickLog
from diptych.encoders import clean_query
from diptych.models import Image2Text, ImageAnnotation, OnlineClassification, QueryBasedScoring, Text2Image
from diptych.models.clicks.click_model import WordSets
from diptych.models.clicks.image2text import nearest_rows

QUERIES = ["red boat", "cat in a garden", "boat sea", "blue dog on the street", "dog", "tree winter hill green", "fish"]


class PlainLog:
    """The same log as nested dictionaries: clicks of a set of words on a picture."""

    def __init__(self, log: ClickLog) -> None:
        self.clicks: dict[frozenset[str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for query, image, clicks in zip(log.query_ids, log.image_ids, log.clicks, strict=True):
            words = frozenset(clean_query(log.queries[int(query)]))
            if words:
                self.clicks[words][int(image)] += float(clicks)

    def neighbours(self, query: str, count: int, least: float) -> list[tuple[frozenset[str], float]]:
        words = frozenset(clean_query(query))
        if words in self.clicks:
            return [(words, 1.0)]
        order = sorted(self.clicks, key=lambda other: (-jaccard(words, other), -sum(self.clicks[other].values())))
        return [(other, jaccard(words, other)) for other in order if jaccard(words, other) >= least][:count]


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right) if left | right else 0.0


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def log_of(scale: str):
    return math.log1p if scale == "log1p" else lambda clicks: math.log(max(clicks, 1))


def candidate_weights(plain: PlainLog, query: str, scale: str, count: int = 30) -> dict[int, float]:
    weights: dict[int, float] = defaultdict(float)
    for words, similarity in plain.neighbours(query, count, 0.3):
        for image, clicks in plain.clicks[words].items():
            weights[image] += log_of(scale)(clicks) * similarity
    return {image: weight for image, weight in weights.items() if weight > 0}


@pytest.fixture(scope="module")
def plain(clicked) -> PlainLog:
    log = PlainLog(clicked.log)
    # Queries of all kinds: in the log, similar to several of its queries, and to none.
    assert {min(2, len(log.neighbours(query, 30, 0.3))) for query in QUERIES} == {0, 1, 2}
    return log


@pytest.mark.parametrize("scale", ["log", "log1p"])
@pytest.mark.parametrize("normalisation", ["sum", "count"])
def test_text2image_is_equations_3_and_4(clicked, plain, scale, normalisation):
    model = Text2Image(clicks=scale, normalisation=normalisation, n_images=6).fit_clicks(clicked.log, clicked.images)
    scores = model.scores(QUERIES, clicked.asked[:15])
    for row, query in enumerate(QUERIES):
        weights = candidate_weights(plain, query, scale)
        heaviest = sorted(weights.items(), key=lambda item: (-round(item[1], 9), item[0]))[:6]
        total = sum(weight for _, weight in heaviest) if normalisation == "sum" else 6
        for column, picture in enumerate(clicked.asked[:15]):
            expected = sum(cosine(picture, clicked.images[image]) * weight for image, weight in heaviest)
            assert scores[row, column] == pytest.approx(expected / total if heaviest else 0, abs=1e-5)


def test_text2image_takes_the_query_itself_whatever_the_order_of_its_words(clicked):
    model = clicked.fitted(Text2Image())
    query = next(query for query in clicked.log.queries if len(clean_query(query)) == 3)
    turned = " ".join(reversed(query.split()))
    assert model.neighbours(turned) == [(tuple(sorted(clean_query(query))), 1.0)]
    np.testing.assert_array_equal(model.encode_texts([turned]), model.encode_texts([query]))


def test_single_clicks_say_nothing_under_the_printed_logarithm_and_something_under_ours():
    log = ClickLog.from_triads(["boat", "cat"], ["1", "2"], [1, 1])
    assert not Text2Image(clicks="log").fit_clicks(log, np.eye(2)).answers("boat")
    assert Text2Image().fit_clicks(log, np.eye(2)).answers("boat")


def test_a_fitted_model_follows_its_parameters(clicked):
    model = Text2Image().fit_clicks(clicked.log, clicked.images)
    many = model.encode_texts(["boat"])
    few = model.set_params(n_images=1).encode_texts(["boat"])
    np.testing.assert_allclose(np.linalg.norm(few), 1, atol=1e-6)
    assert not np.allclose(many, few)


@pytest.mark.parametrize("scale", ["log", "log1p"])
def test_query_based_scoring_is_a_mean_of_means(clicked, plain, scale):
    model = QueryBasedScoring(clicks=scale, n_neighbours=4).fit_clicks(clicked.log, clicked.images)
    scores = model.scores(QUERIES, clicked.asked[:8])
    for row, query in enumerate(QUERIES):
        near = plain.neighbours(query, 4, 0.3)
        for column, picture in enumerate(clicked.asked[:8]):
            means = [
                similarity
                * np.mean([cosine(picture, clicked.images[image]) * log_of(scale)(clicks) for image, clicks in own])
                for words, similarity in near
                for own in [list(plain.clicks[words].items())]
            ]
            assert scores[row, column] == pytest.approx(np.mean(means) if means else 0, abs=1e-5)


def test_online_classification_looks_at_the_most_similar_candidates(clicked, plain, monkeypatch):
    monkeypatch.setattr("diptych.models.clicks.neighbour_queries._BLOCK_NUMBERS", 50)
    model = OnlineClassification(n_images=5).fit_clicks(clicked.log, clicked.images)
    scores = model.scores(QUERIES, clicked.asked[:8])
    for row, query in enumerate(QUERIES):
        weights = candidate_weights(plain, query, "log1p")
        for column, picture in enumerate(clicked.asked[:8]):
            near = sorted(((cosine(picture, clicked.images[image]), w) for image, w in weights.items()), reverse=True)
            expected = np.mean([similarity * weight for similarity, weight in near[:5]]) if near else 0
            assert scores[row, column] == pytest.approx(expected, abs=1e-5)


def queries_by_image(plain: PlainLog) -> dict[int, list[tuple[float, int, frozenset[str]]]]:
    """Return the queries of each picture, negative clicks first, so that sorting brings the most clicked first."""
    total = {words: sum(own.values()) for words, own in plain.clicks.items()}
    by_image: dict[int, list[tuple[float, int, frozenset[str]]]] = defaultdict(list)
    # The most clicked words come first in the model, in the order of the log among equals.
    rank = {words: place for place, words in enumerate(sorted(total, key=lambda words: -total[words]))}
    for words, own in plain.clicks.items():
        for image, clicks in own.items():
            by_image[image].append((-clicks, rank[words], words))
    return by_image


@pytest.mark.parametrize("image_similarity", ["cosine", "inv_dist"])
@pytest.mark.parametrize("scale", ["log", "log1p"])
def test_image2text_is_equations_1_and_2(clicked, plain, image_similarity, scale):
    model = Image2Text(n_neighbours=7, max_queries=3, image_similarity=image_similarity, clicks=scale)
    scores = model.fit_clicks(clicked.log, clicked.images).scores(QUERIES, clicked.asked[:10])
    by_image = queries_by_image(plain)
    for row, query in enumerate(QUERIES):
        for column, picture in enumerate(clicked.asked[:10]):
            distances = np.linalg.norm(clicked.images.astype(float) - picture, axis=1)
            expected = 0.0
            # The seventh and the eighth neighbour are told apart by more than the rounding of single precision.
            assert np.diff(np.sort(distances)[6:8]) > 1e-5
            for image in np.argsort(distances)[:7]:
                kept = sorted(by_image[int(image)])[:3]
                mean = np.mean([jaccard(frozenset(clean_query(query)), q) * log_of(scale)(-c) for c, _, q in kept])
                alike = cosine(picture, clicked.images[image]) if image_similarity == "cosine" else 1 / distances[image]
                expected += alike * mean / 7
            assert scores[row, column] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scale", ["log", "log1p"])
def test_an_image_is_annotated_with_the_words_of_its_neighbours(clicked, plain, scale):
    model = ImageAnnotation(n_neighbours=7, max_queries=3, clicks=scale).fit_clicks(clicked.log, clicked.images)
    queries = [*QUERIES, "boat unheard", "boats, boat"]
    scores, by_image = model.scores(queries, clicked.asked[:10]), queries_by_image(plain)
    for column, picture in enumerate(clicked.asked[:10]):
        distances = np.linalg.norm(clicked.images.astype(float) - picture, axis=1)
        weights: dict[str, float] = defaultdict(float)
        for image in np.argsort(distances)[:7]:
            for clicks, _, words in sorted(by_image[int(image)])[:3]:
                for word in words:
                    weights[word] += log_of(scale)(-clicks) / (1 + distances[image])
        total = sum(weights.values())
        for row, query in enumerate(queries):
            asked = set(clean_query(query))
            expected = sum(weights.get(word, 0.0) for word in asked) / total / len(asked)
            assert scores[row, column] == pytest.approx(expected, abs=1e-6)
        told = model.annotation(picture, count=len(weights))
        assert sum(weight for _, weight in told) == pytest.approx(1)
        assert dict(told[:3]) == pytest.approx({word: weights[word] / total for word, _ in told[:3]}, abs=1e-6)
        assert [weight for _, weight in told] == sorted((weight for _, weight in told), reverse=True)


def test_single_clicks_annotate_nothing_under_the_printed_logarithm():
    log = ClickLog.from_triads(["boat", "cat"], ["1", "2"], [1, 1])
    model = ImageAnnotation(clicks="log").fit_clicks(log, np.eye(2))
    assert (model.answers("boat"), model.annotation([1.0, 0.0])) == (False, [])
    assert not model.scores(["boat"], np.eye(2)).any()


def test_image2text_floors_the_distance_of_a_picture_of_the_log():
    log = ClickLog.from_triads(["boat", "cat"], ["1", "2"], [math.e - 1, 1])
    model = Image2Text(image_similarity="inv_dist", n_neighbours=1).fit_clicks(log, np.eye(2))
    assert model.scores(["boat"], np.eye(2))[0] == pytest.approx([1e6, 0])


def test_image2text_searches_the_neighbours_of_a_picture_once(clicked, monkeypatch):
    model = Image2Text().fit_clicks(clicked.log, clicked.images)
    first = model.scores(["boat", "cat"], clicked.asked)
    searched = []

    def counted(asked, kept, count):
        searched.append(len(asked))
        return nearest_rows(asked, kept, count)

    monkeypatch.setattr("diptych.models.clicks.image2text.nearest_rows", counted)
    np.testing.assert_allclose(model.scores(["boat"], clicked.asked[::-1])[0], first[0][::-1], rtol=1e-5)
    model.scores(["boat"], np.vstack([clicked.asked[:5], clicked.images[:2]]))
    assert searched == [0, 2]


WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=30), WORDS)
def test_cosines_of_tf_idf_are_those_of_vectors_written_out(queries, asked):
    sets, _ = WordSets.of(queries)
    frequency = {word: sum(word in sets[row] for row in range(len(sets))) for word in "abcdefgh"}

    def vector(words):
        weigh = {word: 1 + np.log((1 + len(sets)) / (1 + frequency[word])) for word in words}
        return np.array([weigh.get(word, 0.0) for word in "abcdefgh"])

    found, cosines = sets.cosines(asked)
    assert found.tolist() == [row for row in range(len(sets)) if set(sets[row]) & set(asked)]
    for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True):
        one, other = vector(set(asked)), vector(sets[row])
        assert cosine == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=30), WORDS, st.integers(1, 8), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_inverted_index_finds_what_a_comparison_with_every_set_finds(queries, asked, count, least):
    sets, owners = WordSets.of(queries)
    assert [sets[owner] if owner >= 0 else () for owner in owners] == [tuple(sorted(set(query))) for query in queries]
    every = [jaccard(frozenset(asked), frozenset(sets[number])) for number in range(len(sets))]
    found, similarities = sets.similarities(asked)
    expected = [(number, value) for number, value in enumerate(every) if value > 0]
    assert list(zip(found.tolist(), similarities.tolist(), strict=True)) == expected
    best = sorted(((-value, number) for number, value in expected if value >= least))[:count]
    near, values = sets.nearest(asked, count, least)
    assert list(zip((-values).tolist(), near.tolist(), strict=True)) == best


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 70), st.floats(0, 1000), st.integers(0, 100))
def test_neighbours_are_those_of_exact_distances(n_rows, count, offset, seed):
    rng = np.random.default_rng(seed)
    kept, asked = (offset + rng.normal(size=(n, 3)).astype(np.float32) for n in (n_rows, 4))
    rows, distances = nearest_rows(asked, kept, count)
    exact = np.linalg.norm(kept[None].astype(np.float64) - asked[:, None].astype(np.float64), axis=2)
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :count], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(exact, rows.astype(int), axis=1), distances, rtol=1e-5, atol=1e-6)
