"""The experiments of Costa Pereira et al. (2014), on a small data set that both ideas suit."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from diptych.benchmark import published_map
from diptych.benchmark.papers.costa_pereira import (
    COSTA_PEREIRA,
    CorrelatedPairs,
    CostaPereiraReport,
    CostaPereiraTask,
    KernelChoice,
    MapRow,
    _distance_rows,
    costa_pereira_tables,
    kernel_choices,
    refit_choices,
    run_costa_pereira,
    validation_split,
)
from diptych.benchmark.tables import as_markdown
from diptych.benchmark.task import find_by_name
from diptych.cli.bench.studies import _figures as figures_of
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP
from diptych.models import KCCA, SCM
from diptych.protocols import HoldOut, Retrieval, evaluate_retrieval, tune
from diptych.space import DIRECTIONS, Space

PROTOCOL = HoldOut(repeats=1, share=0.2)


def histograms(n: int, seed: int, n_classes: int = 3) -> Pairs:
    """Words and topics that follow a class and, within it, a theme that only the pair shares."""
    rng = np.random.default_rng(seed)
    made = np.random.default_rng(99)
    words, topics = made.dirichlet(np.full(20, 0.3), n_classes + 2), made.dirichlet(np.full(6, 0.3), n_classes + 2)
    labels = rng.integers(0, n_classes, n)
    mixture = np.column_stack([1.2 * np.eye(n_classes)[labels], rng.random((n, 2))]) + 0.1
    return Pairs(
        np.array([rng.dirichlet(30 * row @ words + 0.01) for row in mixture]),
        np.array([rng.dirichlet(30 * row @ topics + 0.01) for row in mixture]),
        labels=np.array(["art", "music", "sport"])[labels],
        ids=[f"{seed}-{row}" for row in range(n)],
    )


@pytest.fixture(scope="module")
def splits() -> DatasetSplits:
    return DatasetSplits(train=histograms(100, 0), test=histograms(60, 1))


def row(report: CostaPereiraReport, table: str, method: str, detail: str | None = None) -> MapRow:
    """Return the row of ``method`` in one of the tables."""
    rows: tuple[MapRow, ...] = getattr(report, table)
    return next(one for one in rows if one.method == method and detail in (None, one.detail))


def small_task(splits: DatasetSplits, **changes: object) -> CostaPereiraTask:
    source = Dataset("small", "", "", "", "", "", loader=lambda: splits)
    settings = {"components": (2, 4), "few_components": (2, 4), "source": source} | changes
    return CostaPereiraTask("small", "Small, made here", "wikipedia", **settings)


@pytest.fixture(scope="module")
def report(splits: DatasetSplits) -> CostaPereiraReport:
    tables = find_by_name("data set", "wikipedia", COSTA_PEREIRA).tables
    return run_costa_pereira(small_task(splits, tables=tables))


def test_the_tables_of_the_paper_are_complete(report: CostaPereiraReport) -> None:
    assert (report.n_train, report.n_validation, report.n_test) == (100, 20, 60)
    distances = {method: [row.detail for row in report.distances if row.method == method] for method in ("CM", "SM")}
    assert distances["CM"] == ["l1", "euclidean", "cosine", "pearson"]
    assert distances["SM"] == ["l1", "euclidean", "kl", "cosine", "pearson"]
    assert len(report.distances) == 14
    assert [row.method for row in report.correlation] == ["CM-KCCA", "CM-CCA", "CM-CFA"]
    assert [row.method for row in report.test] == ["SCM", "SM", "CM", "Random"]


def test_printed_numbers_stand_beside_ours(report: CostaPereiraReport) -> None:
    nearest = row(report, "distances", "SCM", "pearson").published
    assert (nearest.image_query, nearest.text_query) == (0.388, 0.285)
    assert row(report, "correlation", "CM-CFA").published == published_map("004", "Table VI", "Wikipedia", "CM-CFA")
    assert row(report, "test", "SCM").published.average == pytest.approx(0.320)
    assert row(report, "test", "Random").published.image_query == 0.119
    for task in COSTA_PEREIRA:
        assert (task.published("test", "SM", "test set") is None) == (task.name == "pascal")
    assert find_by_name("data set", "tvgraz", COSTA_PEREIRA).published("test", "CM", "test set").image_query == 0.507


def test_random_is_the_exact_chance_level(report: CostaPereiraReport, splits: DatasetSplits) -> None:
    model = KCCA(n_components=2).fit(*splits.train.aligned())
    chance = evaluate_retrieval(model, Retrieval(splits.test, splits.test))
    random = row(report, "test", "Random")
    assert random.image_query == pytest.approx(chance.image_query.chance[AP()], abs=1e-12)
    assert random.text_query == pytest.approx(chance.text_query.chance[AP()], abs=1e-12)
    assert min(one.average for one in report.test[:3]) > random.average + 0.1
    gain = 100 * (row(report, "test", "SCM").average / random.average - 1)
    tables = costa_pereira_tables(json.loads(json.dumps(report.as_json())))
    assert f"Random {gain:+.1f} %" in tables["test"].notes[0]


def test_the_compared_distance_is_the_one_that_was_tuned(report: CostaPereiraReport) -> None:
    assert row(report, "distances", "CM", "cosine").average == row(report, "correlation", "CM-KCCA").average
    assert row(report, "distances", "SM", "pearson").average == report.representations[0].average


def test_no_number_depends_on_the_arbitrary_signs_of_components(splits: DatasetSplits) -> None:
    train, validation = validation_split(splits.train, PROTOCOL)
    points = CorrelatedPairs.learn(train, validation, n_components=4, kappa=0.5)
    every = [np.array(signs) for signs in product([-1.0, 1.0], repeat=4)]

    def flipped(pairs: Pairs, signs: np.ndarray) -> Pairs:
        return pairs.with_features(images=pairs.images * signs, texts=pairs.texts * signs)

    spaces = [CorrelatedPairs(flipped(points.train, signs), flipped(points.asked, signs)) for signs in every]
    matching = [space.correlation_matching() for space in spaces]
    values = [encoded.evaluate([AP()]).average(AP()) for encoded in matching]
    assert np.ptp(values) < 1e-9
    assert np.ptp([space.semantic_correlation_matching(1.0).evaluate([AP()]).average(AP()) for space in spaces]) < 1e-3
    # By NCc they differ, and the table shows their mean and range.
    centred = [replace(encoded, space=Space("pearson")).evaluate([AP()]).average(AP()) for encoded in matching]
    assert np.ptp(centred) > 0.01
    task = small_task(splits)
    shown = [
        next(found for found in _distance_rows(task, {"CM": one}) if found.detail == "pearson") for one in matching[:2]
    ]
    for one in shown:
        assert one.sign_range == pytest.approx((min(centred), max(centred)), abs=1e-9)
        assert one.average == pytest.approx(np.mean(centred), abs=0.02)


def test_pairs_are_counted_by_category(report: CostaPereiraReport, splits: DatasetSplits) -> None:
    assert list(report.pairs) == ["art", "music", "sport", "total"]
    assert report.pairs["art"]["n_test"] == int((splits.test.labels == "art").sum())
    assert list(report.pairs["total"].values()) == [100, 20, 60, 160]
    for part in ("n_training", "n_validation_within_training", "n_test", "n_total"):
        assert sum(report.pairs[name][part] for name in ("art", "music", "sport")) == report.pairs["total"][part]


def test_first_components_are_those_of_a_smaller_fit(splits: DatasetSplits) -> None:
    train, validation = validation_split(splits.train, PROTOCOL)
    wide = CorrelatedPairs.learn(train, validation, n_components=5, kappa=0.5).first(2)
    narrow = CorrelatedPairs.learn(train, validation, n_components=2, kappa=0.5)
    np.testing.assert_allclose(np.abs(wide.asked.images), np.abs(narrow.asked.images), atol=1e-5)
    ours = wide.semantic_correlation_matching(10.0).evaluate([AP()])
    scm = SCM(correlation=KCCA(n_components=2, kappa=0.5), C=10.0).fit(*train.aligned())
    direct = evaluate_retrieval(scm, Retrieval(validation, validation))
    for way in DIRECTIONS:
        assert ours[way][AP()] == pytest.approx(direct[way][AP()], abs=1e-3)


def test_components_grow_with_the_training_pairs_as_tuning_lets_them(splits: DatasetSplits) -> None:
    matching, semantic = kernel_choices(splits, PROTOCOL, [0.5], [2, 4])
    grid = {"n_components": [2, 4]}
    tuning = tune(KCCA(kappa=0.5, metric="cosine"), splits.train, grid, PROTOCOL, rescaled=["n_components"])
    assert matching.n_components == tuning.best.parameters["n_components"]
    assert matching.grown == tuning.model.n_components
    assert matching.average() == pytest.approx(tuning.best.mean, abs=1e-6)
    tested = refit_choices({"CM": matching, "SCM": semantic}, splits)
    expected = evaluate_retrieval(tuning.model, Retrieval(splits.test, splits.test)).average(AP())
    assert tested["CM"].evaluate([AP()]).average(AP()) == pytest.approx(expected, abs=1e-6)
    assert KernelChoice(0.5, 38, None, matching.encoded, 2173 / 1738).grown == 48
    assert KernelChoice(0.5, 10, None, matching.encoded, 2173 / 1738).grown == 13


def test_categories_and_confusion_belong_to_the_same_rankings(
    report: CostaPereiraReport, splits: DatasetSplits
) -> None:
    sizes = {name: int((splits.test.labels == name).sum()) for name in ("art", "music", "sport")}
    for method in ("SCM", "SM", "CM"):
        detail, tested = report.details[method], row(report, "test", method)
        for way in DIRECTIONS:
            weighted = sum(sizes[name] * detail.categories[way][name] for name in sizes) / 60
            assert weighted == pytest.approx(getattr(tested, way), abs=1e-12)
            counts = detail.confusion[way].counts.sum(axis=1)
            assert counts.tolist() == list(sizes.values())
            assert len(detail.precision[way]) == 11
            assert (np.diff(detail.precision[way]) <= 1e-12).all()


def test_figures_tables_and_numbers_come_out(report: CostaPereiraReport) -> None:
    one = replace(report, details={"SCM": report.details["SCM"]})
    names = {name for name, _ in figures_of(one)}
    kinds = ("precision-recall", "categories-scm", "confusion-scm")
    assert names == {f"costa-pereira-small-{kind}.png" for kind in kinds}
    document = json.loads(json.dumps(report.as_json()))
    assert document["test"][0]["average"] == row(report, "test", "SCM").average
    assert set(document["figures"]) == {"SCM", "SM", "CM", "chance"}
    text = "\n".join(map(as_markdown, costa_pereira_tables(document).values()))
    assert "0.388" in text
    assert f"{row(report, 'test', 'SM').image_query:.4f}" in text


def test_two_runs_are_alike(report: CostaPereiraReport, splits: DatasetSplits) -> None:
    again = run_costa_pereira(small_task(splits))
    for table in ("distances", "correlation", "test"):
        ours = [(row.image_query, row.text_query) for row in getattr(report, table)]
        assert ours == [(row.image_query, row.text_query) for row in getattr(again, table)]


def test_wrong_data_and_names_are_explained(splits: DatasetSplits) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'wikipedia'"):
        find_by_name("data set", "wikipedai", COSTA_PEREIRA)
    bare = Pairs(splits.train.images, splits.train.texts)
    with pytest.raises(InvalidInputError, match="learn from one label per picture"):
        run_costa_pereira(small_task(DatasetSplits(train=bare, test=bare)))
