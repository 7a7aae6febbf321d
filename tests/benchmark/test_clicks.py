"""The benchmark of click logs: its simulated log, its lists, its fusions and its tables."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from diptych.benchmark.click_data import (
    JudgedLists,
    WebData,
    caption_lists,
    class_lists,
    crowd_lists,
    expert_lists,
    simulate_clicks,
    word_lists,
)
from diptych.benchmark.click_methods import FusedRuns, WebMethod, WebRun, WebScorer, measure_run, web_methods
from diptych.benchmark.clicks import (
    AVERAGE_FUSION,
    FEATURE_FUSION,
    LEARNED_FUSION,
    RANDOM_ROW,
    TITLES,
    WebReport,
    run_web,
)
from diptych.benchmark.papers.dong import click_tables
from diptych.benchmark.published import published_value
from diptych.benchmark.runner import PeakMemory
from diptych.benchmark.tables import as_markdown
from diptych.cli.bench.studies import bench_clicks, draw_clicks
from diptych.data import CrowdJudgement, DatasetSplits, ExpertJudgement, Pairs
from diptych.encoders import TfidfTopics, Visualness, clean_query
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import NDCG, evaluate_scores
from diptych.models import Image2Text, Text2Image

THINGS = ("dog", "cat", "boat", "car", "bird")
CONCEPTS = Visualness(concepts=THINGS)


def pairs(n: int, part: str) -> Pairs:
    captions = [
        [f"a {THINGS[row % 5]} number{row}", f"the {THINGS[row % 5]} beside a {THINGS[(row + 1) % 5]}"]
        for row in range(n)
    ]
    return Pairs(
        [f"{part}{row}.jpg" for row in range(n)],
        [caption for both in captions for caption in both],
        ids=[f"{part}{row}.jpg" for row in range(n)],
        owners=np.repeat(np.arange(n), 2),
    )


@pytest.fixture(scope="module")
def train() -> Pairs:
    return pairs(20, "train")


def clicks_of(log: Any) -> dict[tuple[str, str], float]:
    names = zip(log.query_ids, log.image_ids, log.clicks.tolist(), strict=True)
    return {(log.queries[query], log.images[image]): clicks for query, image, clicks in names}


def test_certain_users_click_what_they_look_for_and_what_fits(train: Pairs) -> None:
    log = simulate_clicks(train, searches=2, shown=20, own=1.0, others=1.0, noise=0.0)
    held = [
        set(clean_query(" ".join(text for text, owner in zip(train.texts, train.owners, strict=True) if owner == row)))
        for row in range(train.n_images)
    ]
    asked = {query for query, _ in clicks_of(log)}
    assert asked <= {" ".join(words) for text in train.texts for words in _runs(clean_query(text))}
    for (query, image), clicks in clicks_of(log).items():
        share = np.mean([word in held[train.ids.tolist().index(image)] for word in query.split()])
        assert share > 0
        assert share < 1 or clicks >= 2
    # Every picture that holds all words of a query is clicked at every search for it.
    for query in asked:
        for row, words in enumerate(held):
            assert not set(query.split()) <= words or (query, train.ids[row]) in clicks_of(log)


def _runs(words: Sequence[str]) -> list[Sequence[str]]:
    return [
        words[start:stop] for start in range(len(words)) for stop in range(start + min(2, len(words)), len(words) + 1)
    ]


def test_a_page_shows_the_best_fitting_and_the_one_looked_for(train: Pairs) -> None:
    log = simulate_clicks(train, searches=1, shown=1, own=1.0, others=1.0, noise=0.0)
    assert set(log.images) == set(train.ids.tolist())
    assert log.clicks.sum() == train.n_texts


def test_noise_clicks_come_on_top_and_the_seed_decides(train: Pairs) -> None:
    quiet = simulate_clicks(train, own=0.0, others=0.0, noise=1.0, searches=2, seed=1)
    assert quiet.clicks.sum() == 2 * train.n_texts
    first, again, other = (simulate_clicks(train, seed=seed) for seed in (3, 3, 4))
    assert clicks_of(first) == clicks_of(again) != clicks_of(other)


def test_captions_without_words_ask_nothing() -> None:
    with pytest.raises(InvalidInputError, match="nothing to ask"):
        simulate_clicks(Pairs(["1"], ["of the"]))
    with pytest.raises(InvalidInputError, match="searches must be at least 1"):
        simulate_clicks(Pairs(["1"], ["dog"]), searches=0)


@pytest.fixture(scope="module")
def splits(train: Pairs) -> DatasetSplits:
    def expert() -> tuple[ExpertJudgement, ...]:
        return (
            ExpertJudgement("test0.jpg", "test0.jpg#0", (4, 4, 3)),
            ExpertJudgement("test1.jpg", "test0.jpg#0", (3, 3, 2)),
            ExpertJudgement("test2.jpg", "test0.jpg#0", (2, 2, 3)),
            ExpertJudgement("test2.jpg", "test1.jpg#1", (1, 1, 1)),
            ExpertJudgement("test3.jpg", "test3.jpg#0", (4, 4, 4)),
        )

    def crowd() -> tuple[CrowdJudgement, ...]:
        return (
            CrowdJudgement("test0.jpg", "test0.jpg#1", yes=3, no=0),
            CrowdJudgement("test1.jpg", "test0.jpg#1", yes=2, no=1),
            CrowdJudgement("test2.jpg", "test0.jpg#1", yes=1, no=2),
            CrowdJudgement("test2.jpg", "test1.jpg#1", yes=0, no=3),
        )

    extras = {"expert_judgements": expert, "crowd_judgements": crowd}
    return DatasetSplits(train=train, test=pairs(10, "test"), dev=pairs(12, "dev"), name="fake", extras=extras)


def test_judgements_become_grades(splits: DatasetSplits) -> None:
    experts = expert_lists(splits)
    assert experts.queries == ("a dog number0", "a car number3")
    assert [part.tolist() for part in experts.candidates(0)] == [[0, 1, 2], [3, 2, 0]]
    assert experts.n_judged == 4
    crowd = crowd_lists(splits)
    assert crowd.queries == ("the dog beside a cat",)
    assert [part.tolist() for part in crowd.candidates(0)] == [[0, 1, 2], [3, 2, 0]]


def test_lists_of_captions_grade_what_holds_all_words(splits: DatasetSplits) -> None:
    assert splits.dev is not None
    lists = caption_lists(splits.dev, near=3, far=4)
    assert len(lists.queries) == 12
    for query in range(12):
        columns, grades = lists.candidates(query)
        assert len(set(columns.tolist())) == 8
        assert grades[columns == query].tolist() == [3]
        # Only its own caption holds a picture's number.
        assert (grades[columns != query] == 0).all()


def test_lists_of_classes_grade_what_is_of_the_same_class() -> None:
    own = pairs(30, "test")
    labelled = Pairs(own.images, own.texts, ids=own.ids, owners=own.owners, labels=[row % 5 for row in range(30)])
    lists = class_lists(labelled, near=3, far=8)
    assert lists.queries == tuple(own.texts[::2])
    for query in range(30):
        columns, grades = lists.candidates(query)
        assert grades[columns == query].tolist() == [3]
        others = columns != query
        assert (grades[others] == 2 * (columns[others] % 5 == query % 5)).all()
        assert (len(columns), np.count_nonzero(grades == 2)) == (12, 3)
    assert (class_lists(labelled).grades.toarray() == class_lists(labelled).grades.toarray()).all()


def test_lists_of_words_rank_every_picture(train: Pairs) -> None:
    lists = word_lists(train, pairs(30, "test"), count=3, visualness=CONCEPTS)
    assert len(lists.queries) == 3
    assert set(lists.queries) <= set(THINGS)
    assert lists.grades.nnz == 90
    for query, word in enumerate(lists.queries):
        assert lists.candidates(query)[1].tolist() == [float(THINGS[row % 5] == word) for row in range(30)]
    with pytest.raises(InvalidInputError, match="no visual word"):
        word_lists(train, pairs(5, "test"), visualness=CONCEPTS)


def test_noise_is_irrelevant_and_new(splits: DatasetSplits) -> None:
    lists = JudgedLists("both", ("a", "b"), sparse.csr_array(([3.0, 0.0], ([0, 1], [0, 1])), shape=(2, 4)))
    noisy = lists.with_noise(1)
    assert noisy.n_judged == 4
    assert noisy.grades.sum() == 3
    assert noisy.select([1]).queries == ("b",)
    with pytest.raises(InvalidInputError, match="1 queries, but grades of 2"):
        JudgedLists("wrong", ("a",), lists.grades)


FITS: list[str] = []


def fake_scorer(clarity: float, seed: int) -> WebScorer:
    """Return what knows the grades of every list, as clearly as it is told to."""

    def fit(data: WebData, feature: str) -> Any:
        FITS.append(feature)
        known = {lists.queries: lists.grades.toarray() for lists, _ in data.every_list().values()}
        noise = np.random.default_rng([seed, len(feature), ord(feature[0])])
        return lambda queries, part: clarity * known[tuple(queries)] + noise.normal(size=known[tuple(queries)].shape)

    return WebScorer({"clarity": clarity, "seed": seed}, fit)


@pytest.fixture(scope="module")
def data(splits: DatasetSplits) -> WebData:
    rng = np.random.default_rng(0)

    def lists(title: str, n: int, n_images: int) -> JudgedLists:
        grades = rng.choice([0.0, 0.0, 2.0, 3.0], size=(n, n_images))
        places = np.indices(grades.shape).reshape(2, -1)
        shown = [" ".join(THINGS[row % 5 : row % 5 + 1 + row % 3]) for row in range(n)]
        things = [f"{each} {'man' if row % 2 else 'tree'} {title}{row}" for row, each in enumerate(shown)]
        # All but a few pictures of each query are left unjudged, so that there is room for noise.
        kept = rng.permutation(grades.size)[: 4 * n]
        matrix = sparse.csr_array((grades.ravel()[kept], places[:, kept]), shape=grades.shape)
        return JudgedLists(title, tuple(things), matrix)

    sizes = {"train": 20, "test": 40, "dev": 12, "away": 30}
    features = {name: {part: rng.normal(size=(n, 3)) for part, n in sizes.items()} for name in ("a", "bb")}
    human = {"experts": lists("e", 24, 40), "crowd": lists("c", 10, 40), "words": lists("w", 6, 40)}
    log, away = simulate_clicks(splits.train), {"away": lists("a", 8, 30)}
    splits = replace(splits, test=pairs(40, "test"), dev=pairs(12, "dev"))
    return WebData(splits, log, features, human, lists("d", 16, 12), TfidfTopics(), away)


METHODS = (
    WebMethod("good", fake_scorer(1.0, 1)),
    WebMethod("fair", fake_scorer(0.8, 2)),
    WebMethod("poor", fake_scorer(0.0, 3)),
    WebMethod("apart", fake_scorer(0.5, 4), is_fused=False),
)


@pytest.fixture(scope="module")
def report(data: WebData) -> WebReport:
    runs = [measure_run(data, method, feature) for method in METHODS for feature in data.features]
    return WebReport(data, METHODS, runs, seeds=1, trials=500, visualness=CONCEPTS)


def test_a_run_is_kept_and_read_again(data: WebData, tmp_path: Path) -> None:
    before = len(FITS)
    first, second = (measure_run(data, METHODS[0], "a", tmp_path) for _ in range(2))
    assert len(FITS) == before + 1
    assert {name: scores.tolist() for name, scores in first.scores.items()} == {
        name: scores.tolist() for name, scores in second.scores.items()
    }
    assert second.fit_seconds == first.fit_seconds
    # Other settings are another run.
    measure_run(data, WebMethod("good", fake_scorer(0.9, 1)), "a", tmp_path)
    assert len(FITS) == before + 2


def test_log_features_are_in_the_order_of_the_log(data: WebData) -> None:
    rows = [data.splits.train.ids.tolist().index(image) for image in data.log.images]
    assert np.array_equal(data.logged("a"), data.features["a"]["train"][rows])


def test_values_are_those_of_the_measure(report: WebReport, data: WebData) -> None:
    scores = report.runs["good", "a"].scores["experts"]
    lists = data.lists["experts"]
    for query, value in enumerate(report.values("good", "a", "experts")):
        columns, grades = lists.candidates(query)
        ranked = grades[np.argsort(-scores[query, columns])][:25]
        gain = ((2**ranked - 1) / np.log2(np.arange(2, len(ranked) + 2))).sum()
        assert value == pytest.approx(gain / (7 / np.log2(np.arange(2, 27))).sum())
    assert report.mean("good", "a", "experts") == pytest.approx(report.values("good", "a", "experts").mean())


def test_random_and_upper_bound_enclose_what_methods_reach(report: WebReport) -> None:
    for name in ("experts", "crowd", "captions", "words"):
        low, high = report.mean(RANDOM_ROW, FEATURE_FUSION, name), report.upper_bound(name)
        assert low < report.mean("good", FEATURE_FUSION, name) <= high
    assert report.compare("good", RANDOM_ROW, FEATURE_FUSION, "experts").p_value < 0.05
    assert report.compare("poor", RANDOM_ROW, FEATURE_FUSION, "captions").p_value > 0.01


def test_fusions_weigh_standardised_scores(report: WebReport) -> None:
    runs = [report.runs["good", feature] for feature in ("a", "bb")]
    standard = [(run.scores["crowd"] - run.scores["crowd"].mean()) / run.scores["crowd"].std() for run in runs]
    assert np.allclose(FusedRuns.average(runs).scores("crowd"), np.mean(standard, axis=0), atol=1e-5)
    weights = report.weights("a")
    assert list(weights) == ["good a", "fair a", "poor a"]
    assert weights["poor a"] < weights["good a"]
    assert report.mean(LEARNED_FUSION, "a", "captions") >= report.mean(AVERAGE_FUSION, "a", "captions")
    held_out = report.held_out_fusion("a")
    assert set(held_out) == {LEARNED_FUSION, AVERAGE_FUSION, "p"}
    assert len(report.weights(FEATURE_FUSION)) == 6


def test_noise_lowers_the_curve(report: WebReport) -> None:
    curve = report.noise_curve("good", FEATURE_FUSION, "experts", (0, 1, 4))
    assert curve == sorted(curve, reverse=True)
    assert curve[0] == report.mean("good", FEATURE_FUSION, "experts")


def test_groups_hold_every_query(report: WebReport) -> None:
    sizes, means = report.group_sizes("experts"), report.group_means("good", FEATURE_FUSION, "experts", fold=0)
    assert sum(sizes) == 24
    known = [size * mean for size, mean in zip(sizes, means, strict=True) if size]
    assert sum(known) / 24 == pytest.approx(report.mean("good", FEATURE_FUSION, "experts"))
    assert report.people_queries("experts").sum() == 12


def test_correlations_are_those_of_ranks_at_each_level_of_noise(report: WebReport, data: WebData) -> None:
    queries = data.lists["experts"].queries
    known = {
        "visualness": CONCEPTS.scores(queries),
        "1/length": np.array([1 / len(clean_query(query)) for query in queries]),
    }
    for fold in (0, 1):
        ranks = rankdata(report.values("good", "a", "experts", fold))
        found = report.correlations("good", "a", "experts", fold)
        expected = {kind: np.corrcoef(ranks, rankdata(values))[0, 1] for kind, values in known.items()}
        assert {kind: one.coefficient for kind, one in found.items()} == pytest.approx(expected)


def test_a_curve_over_neighbours_is_that_of_models_fitted_anew(report: WebReport, data: WebData) -> None:
    lists = data.lists["experts"]
    for name, model in (("image2text", Image2Text), ("text2image", Text2Image)):
        for count, (mean, error) in zip((1, 4), report.neighbour_curve(name, "experts", (1, 4)), strict=True):
            anew = model(n_neighbours=count).fit_clicks(data.log, data.logged("a"))
            scores = anew.scores(lists.queries, data.features["a"]["test"])
            values = evaluate_scores(scores, lists.relevance, [NDCG()], empty="zero").values[NDCG()]
            assert mean == pytest.approx(values.mean())
            assert error == pytest.approx(np.std(values, ddof=1) / 24**0.5)


def test_the_report_prints_and_draws_every_table(report: WebReport, tmp_path: Path) -> None:
    document = json.loads(json.dumps(report.as_json(), allow_nan=False))
    text = "\n".join(f"{table.caption}\n{as_markdown(table)}" for table in click_tables(document).values())
    titles = ("Table V:", "Table IV:", "Figure 7", "Figure 8", "Figure 9", "Figure 10", "Table IX", "Table VII")
    assert all(title in text for title in (*titles, "Table VIII: another test set, away", "Table X:"))
    assert f"{report.mean(LEARNED_FUSION, FEATURE_FUSION, 'away'):.4f}" in text
    # What the paper says of two methods beside the table, on another test set, and of methods of others.
    assert all(value in text for value in ("0.4905", "0.4958", "0.4963", "0.6924", "0.5112", "0.224"))
    assert f"{report.mean('fair', 'bb', 'crowd'):.4f}" in text
    assert "0.5177" in text
    assert [path.name for path in draw_clicks(report, tmp_path)] == [
        "clicks-noise.png",
        "clicks-neighbours.png",
        "clicks-correlations.png",
        "clicks-visualness.png",
    ]
    numbers = report.as_json()["lists"]["experts"]
    assert numbers["means"]["good"][FEATURE_FUSION] == report.mean("good", FEATURE_FUSION, "experts")
    assert len(numbers["p_values"]) == 21
    analysed = report.as_json()["experts"]
    means = np.array(analysed["group_means"]["1-fold noise"]["good"], dtype=float)
    np.testing.assert_array_equal(means, report.group_means("good", FEATURE_FUSION, "experts"))
    people = report.people_queries("experts")
    assert analysed["people"]["good"] == report.values("good", FEATURE_FUSION, "experts")[people].mean()
    assert (analysed["fewer_than_25_excellent"], analysed["percent_in_log"]) == (24, 0.0)
    json.dumps(analysed, allow_nan=False)


def test_methods_are_those_of_the_paper_and_typos_are_answered(data: WebData) -> None:
    titles = [TITLES.get(name, name) for name, method in web_methods().items() if method.is_fused]
    assert [published_value("003", "Table V", title, "NDCG@25", "CaffeNet") for title in titles] == [
        "0.5032",
        "0.5153",
        "0.5016",
        "0.5033",
    ]
    assert published_value("003", "Table V", "CCA", "NDCG@25", "CaffeNet") is None
    assert {"query-based-scoring", "online-classification", "cca"} < set(web_methods())
    with pytest.raises(UnknownNameError, match="did you mean 'devise'"):
        run_web(data, methods=["divise"])


def test_click_models_run_and_learn(data: WebData) -> None:
    report = run_web(data, methods=["text2image", "image-annotation", "cca"], seeds=1)
    assert report.rows == ("image-annotation", "text2image", "cca")
    assert {run.scores["experts"].shape for run in report.runs.values()} == {(24, 40)}
    assert all(np.isfinite(scores).all() for run in report.runs.values() for scores in run.scores.values())


def test_memory_of_a_step_is_seen() -> None:
    with PeakMemory() as memory:
        # More than this process has ever held.
        held = np.ones(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 8 + 4_000_000)
    assert held.all()
    assert memory.megabytes > 16


def test_a_run_of_unequal_parts_cannot_be_fused(data: WebData) -> None:
    scores = {"captions": np.zeros((2, 3))}
    runs = [WebRun("a", "x", scores, 0, 0, 0, 0), WebRun("b", "x", {"captions": np.zeros((2, 4))}, 0, 0, 0, 0)]
    with pytest.raises(InvalidInputError, match="same items"):
        FusedRuns.average(runs).scores("captions")


def test_an_unknown_method_is_refused_before_any_data_are_looked_for(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    with pytest.raises(UnknownNameError, match="nope"):
        bench_clicks(method=["nope"], quiet=True)
