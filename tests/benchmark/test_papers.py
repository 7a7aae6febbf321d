"""The tasks of the papers: their rows, what the engine measures on them, and methods that read words or click logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat
from typer.testing import CliRunner

from diptych.benchmark import Catalogue, Features, Method, Record, Task, Unit, declared_tasks, runner
from diptych.benchmark.methods import CaptionClicks
from diptych.benchmark.papers import tasks_of_paper
from diptych.benchmark.papers.zhang import zhang_methods
from diptych.benchmark.published import printed_beside, published_map, published_rows, published_training
from diptych.benchmark.runner import measure_unit
from diptych.benchmark.task import CaptionFolds, Seeds, find_by_name, with_principal_components
from diptych.cli import app
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.data.datasets.wikipedia import TVGRAZ, TVGRAZ_COUNTS
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError
from diptych.metrics import AP, RecallAtK
from diptych.models import CCA, CVH, Preprocessed, SCMOrth, Text2Image
from diptych.protocols import UnseenClasses, evaluate_model, evaluate_retrieval
from diptych.space import DIRECTIONS

KINDS = ("boat", "cat", "tree", "dog")
TASKS = {task.name: task for task in declared_tasks()}
TABLES = {"pairwise-wikipedia": "Table 1", "pairwise-pascal": "Table 2", "pairwise-tvgraz": "Table 3"}


def small_splits(*, with_labels: bool = True, features: bool = True, n_texts: int = 2) -> DatasetSplits:
    """Pictures of four kinds with captions that say the kind, as features or as they are."""
    rng = np.random.default_rng(2)
    labels = np.arange(96) % 4
    owners = np.repeat(np.arange(96), n_texts)
    meaning = 2 * np.eye(4)[labels] + 0.3 * rng.normal(size=(96, 4))
    images: Any = meaning @ rng.normal(size=(4, 9)) + 0.2 * rng.normal(size=(96, 9))
    texts: Any = meaning[owners] @ rng.normal(size=(4, 7)) + 0.2 * rng.normal(size=(96 * n_texts, 7))
    if not features:
        images = [np.full((8, 8, 3), 60 * label + row % 40, dtype=np.uint8) for row, label in enumerate(labels)]
        texts = [f"a {KINDS[labels[owner]]} number {owner % 7}" for owner in owners]
    truth = np.array(KINDS)[labels] if with_labels else None
    pairs = Pairs(images, texts, labels=truth, owners=owners)
    return DatasetSplits(train=pairs.select(range(64)), test=pairs.select(range(64, 96)))


def small_task(splits: DatasetSplits, *methods: Method, **parts: Any) -> Task:
    source = Dataset("small", "", "", "", "", "", loader=lambda: splits)
    given: dict[str, Any] = {"features": Features("made"), "protocol": Seeds(2), "seeds_by_fold": True} | parts
    return Task("small", "Small", "small", source=source, methods=methods, **given)


def measure(monkeypatch: pytest.MonkeyPatch, task: Task, method: str, fold: int = 0) -> Record:
    """Return what the engine measures on a task that is declared nowhere."""
    catalogue = Catalogue()
    monkeypatch.setattr(Catalogue, "task", lambda self, name: task)
    runner._splits.cache_clear()
    runner._fold.cache_clear()
    return measure_unit(catalogue, Unit("small", fold, method))


def test_published_values_are_the_printed_ones() -> None:
    row = published_map("001", "Table 1", "Wikipedia", "Marginal SM")
    assert (row.image_query, row.text_query, row.average) == (0.3328, 0.2411, pytest.approx(0.28695))
    distance = published_map("004", "Table IV", "Wikipedia", "SM", "validation set; distance NCc")
    assert (distance.image_query, distance.text_query) == (0.354, 0.272)
    with pytest.raises(InvalidInputError, match="prints no MAP of PLS"):
        published_map("001", "Table 1", "Wikipedia", "PLS")
    found = published_training("001", "Table 1", "Wikipedia", "Bipartite Cross-Product")
    assert found is not None
    assert (found.seconds, found.parameters) == (70.19, "C = 10^-1, S = 10")
    # The 620 numbers of the tables, and 29 that texts, figures and a table of queries print.
    assert len(published_rows()) == 649
    assert {row["paper"] for row in published_rows()} == {"000", "001", "002", "003", "004"}


def test_printed_values_stand_under_our_names_of_measures() -> None:
    place = ("002", "Table 1", "MSCOCO")
    assert printed_beside(place, "MNiL")["MAP@50 (retrieved)"] == {"text_query": 0.5341, "image_query": 0.4642}
    assert printed_beside(place, "MNiL(I→T)")["AP()"] == {"text_query": 0.3501, "image_query": 0.3617}
    assert printed_beside(place, "PL-ranking-style")["AP()"]["image_query"] == 0.3414
    assert printed_beside(place, "CCA") == {}


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_rows_and_headings_are_in_the_order_of_the_papers_table(name: str, table: str) -> None:
    printed = [
        row
        for row in published_rows()
        if (row["paper"], row["table"], row["metric"]) == ("001", table, "training_time_s")
    ]
    task = TASKS[name]
    assert task.printed is not None
    rows = [method for method in task.methods if printed_beside(task.printed, method.title)]
    assert [(row.group, row.title.lower()) for row in rows] == [
        (row["regime"], row["method"].lower()) for row in printed
    ]
    others = [method for method in task.methods if method not in rows]
    assert {method.group for method in others} == {"Subspace methods"}
    assert [method.name for method in others][:4] == ["pls", "blm", "gmlda", "gmmfa"]


@pytest.mark.parametrize("task", declared_tasks(), ids=lambda task: task.name)
def test_declared_methods_have_one_name_and_settings_that_exist(task: Task) -> None:
    names = [method.name for method in task.methods]
    assert len(set(names)) == len(names)
    for method in task.methods:
        for part in method.grid:
            method.model.set_params(**{parameter: values[0] for parameter, values in part.items()})


def test_one_class_has_one_name_in_all_tasks() -> None:
    called: dict[str, set[str]] = {}
    for method in (method for task in declared_tasks() for method in task.methods):
        called.setdefault(type(method.method).__name__, set()).add(method.name)
    assert called["OneClassSVM"] == {"one-class-svm", "one-class-svm-concatenation"}
    assert called["PLRanking"] == {"pl-ranking"}
    assert called["LGCFL"] == {"lgcfl"}


def test_papers_have_their_tasks() -> None:
    assert {task.name for task in tasks_of_paper("001")} >= set(TABLES)
    with pytest.raises(UnknownNameError, match="paper with tasks '005'"):
        tasks_of_paper("005")
    with pytest.raises(UnknownNameError, match="did you mean 'pairwise-wikipedia'"):
        find_by_name("task", "pairwise-wikpedia", declared_tasks())


def test_a_quick_look_keeps_the_ends_of_every_grid_and_is_another_declaration() -> None:
    task = TASKS["pairwise-wikipedia"]
    quick = Catalogue(quick=True).task(task.name)
    assert "QUICK" in quick.title
    for method, coarse in zip(task.methods, quick.methods, strict=True):
        assert task.fingerprint(method) != quick.fingerprint(coarse)
        for part, fewer in zip(method.grid, coarse.grid, strict=True):
            for name, values in part.items():
                assert set(fewer[name]) <= set(values)
                assert len(fewer[name]) <= 3
                assert (fewer[name][0], fewer[name][-1]) == (values[0], values[-1])
    assert Catalogue(quick=True).task("neural-pascal").protocol.n_folds == 2


def test_principal_components_are_uncorrelated_ordered_and_learned_from_training_rows() -> None:
    splits = small_splits()
    reduced = with_principal_components(splits, 4, 7)
    train = np.asarray(reduced.train.images)
    moments = train.T @ train
    assert np.allclose(train.mean(axis=0), 0)
    assert np.allclose(moments, np.diag(np.diag(moments)), atol=1e-9 * moments.max())
    assert (np.diff(np.diag(moments)) <= 0).all()
    singular = np.linalg.svd(splits.train.images - splits.train.images.mean(axis=0), compute_uv=False)
    assert np.allclose(np.diag(moments), singular[:4] ** 2)
    assert np.array_equal(reduced.train.texts, splits.train.texts)
    other = replace(splits, test=splits.test.with_features(images=-5 * np.asarray(splits.test.images)))
    assert np.array_equal(with_principal_components(other, 4, 7).train.images, train)


def test_a_seed_is_a_fold_and_methods_without_one_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {method.name: method for method in zhang_methods("l2", classes=True)}
    task = small_task(small_splits(), by_name["warp"].quick(), by_name["cca"], relevant="label")
    assert [len(task.folds_of(task.method(name))) for name in ("warp", "cca")] == [2, 1]
    first, second = (measure(monkeypatch, task, "warp", seed) for seed in (0, 1))
    assert "random_state=1" in second.model
    assert first.measures != second.measures
    record = measure(monkeypatch, task, "cca")
    model = Preprocessed(model=CCA(regularization=0.1), images="l2", texts="l2").fit(*small_splits().train.aligned())
    by_hand = evaluate_model(model, small_splits().test, [AP()])
    for way in DIRECTIONS:
        assert record.measures["AP()"][way] == pytest.approx(by_hand[way].mean[AP()])
        assert record.chance["AP()"][way] == pytest.approx(by_hand[way].chance[AP()])
        assert record.curves["precision_scope"][way]["x"] == [10, 20]


def test_without_classes_pl_ranking_takes_each_picture_and_its_texts_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = small_splits(with_labels=False)
    methods = zhang_methods("l2", classes=False, words=False)
    assert "scm" not in {method.name for method in methods}
    ranking = next(method for method in methods if method.name == "pl-ranking").quick()
    record = measure(monkeypatch, small_task(splits, ranking, measures=(RecallAtK(5),)), "pl-ranking")
    images, texts, _ = splits.train.aligned()
    model = ranking.seeded(0).model.fit(images, texts, splits.train.owners)
    by_hand = evaluate_model(model, splits.test, [RecallAtK(5)])
    assert record.measures["R@5"]["image_query"] == pytest.approx(by_hand.image_query.mean[RecallAtK(5)])


def test_networks_and_click_models_read_words(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = small_splits(features=False)
    features = Features("made", ColourEdgeHistograms(size=8), TfidfTopics())
    network = next(method for method in zhang_methods("l2", classes=True) if method.name == "mnil").quick()
    network = replace(network, model=network.model.set_params(hidden_size=32))
    clicks = Method("text2image", "text2image", CaptionClicks(model=Text2Image(n_neighbours=5)), reads="words")
    task = small_task(raw, network, clicks, features=features, measures=(AP(),))
    for name in ("mnil", "text2image"):
        record = measure(monkeypatch, task, name)
        # Words that say the class are what they learn from.
        assert record.measures["AP()"]["text_query"] > record.chance["AP()"]["text_query"]
    with pytest.raises(MissingDataError, match="has its texts as features"):
        measure(monkeypatch, small_task(small_splits(), network), "mnil")


def test_codes_are_described_as_the_parts_measure_them(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = small_splits(n_texts=1)
    method = Method("scm-orth-8", "SCM-orth, 8 bits", Preprocessed(model=SCMOrth(n_bits=8), images="l2", texts="l2"))
    task = small_task(splits, method, protocol=UnseenClasses(), describes_codes=True)
    record = measure(monkeypatch, task, method.name, fold=1)
    fold = UnseenClasses().fold(splits, 1)
    model = Preprocessed(model=SCMOrth(n_bits=8, random_state=1), images="l2", texts="l2")
    model.fit(*fold.training.pairs.aligned())
    unified = evaluate_retrieval(model, fold.retrieval, gallery="unified")
    facts = record.code_statistics
    assert facts is not None
    assert facts["unified_map"]["text_query"] == pytest.approx(unified.text_query.mean[AP()])
    assert facts["text"]["n_items"] == fold.retrieval.gallery.n_texts
    assert len(facts["lookup"]["image_query"]["x"]) == 9
    assert facts["lookup"]["image_query"]["x"][-1] == 1.0
    assert 0 <= facts["precision_within_2"]["image_query"] <= 1


def test_without_classes_fold_k_learns_from_caption_k() -> None:
    splits = small_splits(with_labels=False)
    fold = CaptionFolds().fold(splits, 1)
    np.testing.assert_array_equal(fold.training.pairs.texts, np.asarray(splits.train.texts)[1::2])
    assert fold.retrieval.gallery.n_texts == 64
    assert CaptionFolds().fold(splits, 2).training.pairs.texts[0].tolist() == np.asarray(splits.train.texts)[0].tolist()
    assert {type(method.method) for method in TASKS["hashing-flickr8k-captions"].methods} >= {CVH}


def write_tvgraz(folder: Path, *, counts: Any = None, arrays: Any = None, categories: list[str] | None = None) -> None:
    folder.mkdir(parents=True)
    names = list(TVGRAZ_COUNTS) if categories is None else categories
    rng = np.random.default_rng(0)
    features = {}
    for part, (prefix, suffix) in enumerate((("train", "tr"), ("test", "te"))):
        numbers = [
            number
            for number, name in enumerate(names, start=1)
            for _ in range((counts or TVGRAZ_COUNTS).get(name, (1, 1))[part])
        ]
        lines = [f"text{row}\timage{row}\t{number}" for row, number in enumerate(numbers)]
        (folder / f"{prefix}set_txt_img_cat.list").write_text("\n".join(lines) + "\n")
        features |= {f"I_{suffix}": rng.random((len(lines), 4)), f"T_{suffix}": rng.random((len(lines), 3))}
    savemat(folder / "raw_features.mat", features if arrays is None else arrays)
    (folder / "categories.list").write_text("\n".join(names) + "\n")


def test_tvgraz_is_read_in_its_published_counts_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    words = ["bench", "run", "--paper", "001", "-t", "pairwise-tvgraz", "-m", "random,linear-regression", "--quick"]
    words = [*words, "-j", "1", "-q", "-r", str(tmp_path / "results")]
    with pytest.raises(MissingDataError, match="tvgraz"):
        TVGRAZ.load()
    write_tvgraz(tmp_path / "tvgraz")
    splits = TVGRAZ.load()
    assert (splits.train.n_images, splits.test.n_images) == (1558, 500)
    assert splits.train.labels[-1] == "pram"
    # Table II of Costa Pereira et al. gives the sums too.
    assert tuple(map(sum, zip(*TVGRAZ_COUNTS.values(), strict=True))) == (1558, 500)
    done = CliRunner().invoke(app, [*words, "--json"])
    told = json.loads(done.stdout)
    assert {"pairwise-tvgraz", "semantic-scenes"} == {unit["task"] for unit in told["units"]}
    assert any("pairwise-wikipedia" in unit for unit in told["skipped"])


@pytest.mark.parametrize(
    ("broken", "hint"),
    [
        ({"counts": {**TVGRAZ_COUNTS, "frog": (214, 67)}}, "214 pairs of category frog"),
        ({"arrays": {"I_te": np.eye(2)}}, "has no array I_tr"),
        ({"categories": ["brain", "frog"]}, "must list brain"),
        ({"arrays": {name: np.ones((7, 2)) for name in ("I_tr", "I_te", "T_tr", "T_te")}}, r"ask for \(1558, 2\)"),
    ],
)
def test_a_wrong_copy_of_tvgraz_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: dict[str, Any], hint: str
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    write_tvgraz(tmp_path / "tvgraz", **broken)
    with pytest.raises(InvalidInputError, match=hint):
        TVGRAZ.load()


@pytest.mark.data("wikipedia")
@pytest.mark.parametrize(
    ("task", "method", "setting", "value"),
    [
        ("pairwise-wikipedia", "cca", {"n_components": 5, "regularization": 1.0}, 0.2419),
        ("pairwise-wikipedia", "sm", {"C": 100.0}, 0.2610),
        ("pairwise-wikipedia", "marginal-sm", {"C": 100.0}, 0.2707),
    ],
)
def test_wikipedia_at_the_chosen_settings_is_as_stored(
    monkeypatch: pytest.MonkeyPatch, task: str, method: str, setting: dict[str, Any], value: float
) -> None:
    declared = TASKS[task]
    grid = {"images": ["none"], "texts": ["none"], **{f"model__{name}": [one] for name, one in setting.items()}}
    fixed = replace(declared, methods=(replace(declared.method(method), grid=[grid]),))
    assert measure(monkeypatch, fixed, method).average() == pytest.approx(value, abs=5e-4)
