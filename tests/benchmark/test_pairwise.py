"""The tables of Menon et al. (2015): their layout, what they lack, how a run goes on, and what it prints and draws."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy.io import savemat
from typer.testing import CliRunner

from diptych.benchmark import (
    Entry,
    Reference,
    Sensitivity,
    Study,
    StudyReport,
    Task,
    find_study,
    find_task,
    published_training,
    run_study,
    run_task,
)
from diptych.benchmark.published import published_rows
from diptych.benchmark.task import with_principal_components
from diptych.cli import app
from diptych.cli.bench.task import draw_bench, print_study
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.data.datasets.wikipedia import TVGRAZ, TVGRAZ_COUNTS
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError
from diptych.metrics import AP
from diptych.models import CCA, LogisticCrossProduct, MarginalSM, Preprocessed, Random
from diptych.protocols import HoldOut, evaluate_model
from diptych.space import DIRECTIONS

TABLES = {"pairwise-wikipedia": "Table 1", "pairwise-pascal": "Table 2", "pairwise-tvgraz": "Table 3"}


def small_splits() -> DatasetSplits:
    rng = np.random.default_rng(5)
    labels = np.arange(120) % 4
    meaning = rng.normal(size=(4, 3))[labels] + 0.5 * rng.normal(size=(120, 3))
    pairs = Pairs(meaning @ rng.normal(size=(3, 9)), meaning @ rng.normal(size=(3, 6)), labels=labels)
    return DatasetSplits(train=pairs.select(range(80)), test=pairs.select(range(80, 120)))


def declared(name: str, **parts) -> Dataset:
    return Dataset(
        name, "made by a test", "nowhere", "none", "none", "one", **({"loader": lambda: small_splits()} | parts)
    )


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(
        name="small",
        title="Small (a test), 80 training and 40 test pairs",
        dataset="small",
        source=declared("small"),
        entries=(
            Entry("random", Random(), group="No ground truth"),
            Entry("CCA", Preprocessed(model=CCA()), [{"model__n_components": [1, 2, 3]}], group="No ground truth"),
            Entry(
                "logistic cross-product",
                Preprocessed(model=LogisticCrossProduct(ratio=3)),
                [{"model__C": [0.01, 1.0]}],
                Reference("001", "Table 1", "Wikipedia", "Logistic Cross-Product"),
                group="No ground truth",
            ),
            Entry(
                "marginal SM",
                Preprocessed(model=MarginalSM()),
                [{"model__C": [1e-6, 10.0]}],
                Reference("001", "Table 1", "Wikipedia", "Marginal SM"),
                group="Ground truth",
            ),
        ),
        protocol=HoldOut(repeats=2),
        sensitivities=(Sensitivity("logistic cross-product", "model__ratio", "pairs, S", (1, 4), draws=3),),
        notes=("Features: made by a test.",),
    )


@pytest.fixture(scope="module")
def study(task) -> Study:
    absent = replace(
        task, name="absent", title="Absent, from elsewhere", source=declared("absent-data", files=("features.mat",))
    )
    absent = replace(absent, source=replace(absent.source, loader=lambda: absent.source.folder()))
    return Study("both", "Two tables", (task, absent))


@pytest.fixture(scope="module")
def report(study) -> StudyReport:
    return run_study(study)


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_rows_and_headings_are_in_the_order_of_the_papers_table(name, table):
    printed = [
        (row["regime"], row["method"])
        for row in published_rows()
        if (row["paper"], row["table"], row["metric"]) == ("001", table, "training_time_s")
    ]
    entries = find_task(name).entries
    ours = [(entry.group, entry.reference.method) for entry in entries if entry.reference is not None]
    assert ours == printed
    assert len(printed) == 14
    names = [entry.name for entry in entries[14:]]
    assert names[:4] == ["PLS", "BLM", "GMLDA", "GMMFA"]
    assert names[4:] == ["CCA-3V", "LCFS", "ml-CCA", "cluster-CCA", "LGCFL, unofficial"]
    assert {entry.group for entry in entries[14:]} == {"Subspace methods"}


def test_only_features_of_the_paper_are_called_the_same():
    same = {
        name: {entry.reference.same_features for entry in find_task(name).entries if entry.reference} for name in TABLES
    }
    assert same == {"pairwise-wikipedia": {True}, "pairwise-pascal": {False}, "pairwise-tvgraz": {True}}


def test_printed_training_times_and_parameters_are_found():
    found = published_training("001", "Table 1", "Wikipedia", "Bipartite Cross-Product")
    assert (found.seconds, found.parameters) == (70.19, "C = 10^-1, S = 10")
    assert published_training("001", "Table 3", "TVGraz", "CMML").seconds == 551.56
    assert published_training("004", "Table IX", "Wikipedia", "SCM") is None


def test_a_coarser_task_keeps_the_ends_of_every_grid_and_says_so():
    task = find_task("pairwise-wikipedia")
    quick = task.coarser()
    assert "QUICK" in quick.title
    assert quick.protocol.repeats < task.protocol.repeats
    for entry, coarse in zip(task.entries, quick.entries, strict=True):
        assert len(coarse.grid) == len(entry.grid)
        for part, fewer in zip(entry.grid, coarse.grid, strict=True):
            for name, values in part.items():
                assert len(fewer[name]) <= 3
                assert set(fewer[name]) <= set(values)
                assert (fewer[name][0], fewer[name][-1]) == (values[0], values[-1])


def test_principal_components_are_uncorrelated_ordered_and_learned_from_training_rows():
    splits = small_splits()
    reduced = with_principal_components(splits, 4, 6)
    train = np.asarray(reduced.train.images)
    moments = train.T @ train
    assert np.allclose(train.mean(axis=0), 0)
    assert np.allclose(moments, np.diag(np.diag(moments)), atol=1e-9 * moments.max())
    assert (np.diff(np.diag(moments)) <= 0).all()
    singular = np.linalg.svd(splits.train.images - splits.train.images.mean(axis=0), compute_uv=False)
    assert np.allclose(np.diag(moments)[:3], singular[:3] ** 2)
    assert np.array_equal(reduced.train.texts, splits.train.texts)
    other = replace(splits, test=splits.test.with_features(images=-5 * np.asarray(splits.test.images)))
    assert np.array_equal(with_principal_components(other, 4, 6).train.images, train)
    # Three directions carry all there is, so that four keep every distance of test rows too.
    test, kept = np.asarray(splits.test.images), np.asarray(reduced.test.images)
    assert np.allclose(np.linalg.norm(test[0] - test[1:], axis=1), np.linalg.norm(kept[0] - kept[1:], axis=1))


def test_a_sensitivity_curve_is_the_test_score_at_each_value(task):
    splits = small_splits()
    model = Preprocessed(model=LogisticCrossProduct(C=0.5))
    curve = task.sensitivities[0].measure(model, splits)
    scores = [
        evaluate_model(
            Preprocessed(model=LogisticCrossProduct(C=0.5, ratio=4, random_state=seed)).fit(*splits.train.aligned()),
            splits.test,
        )
        for seed in range(3)
    ]
    for way in DIRECTIONS:
        expected = [score[way].mean[AP()] for score in scores]
        assert curve.means[way][1] == pytest.approx(np.mean(expected))
        assert curve.deviations[way][1] == pytest.approx(np.std(expected))
    assert curve.values == (1, 4)
    assert model.model.ratio == 10


def test_a_task_without_its_data_is_named_and_the_others_run(report):
    assert [task.task for task in report.reports] == ["small"]
    assert report.missing[0].task == "absent"
    assert "features.mat" in report.missing[0].reason
    document = json.loads(json.dumps(report.as_json()))
    assert document["missing"][0]["title"] == "Absent, from elsewhere"
    rows = {row["name"]: row for row in document["reports"][0]["rows"]}
    assert rows["marginal SM"]["training"] == {"seconds": 0.2, "parameters": "C = 1"}
    assert len(rows["CCA"]["precision"]["image_query"]) == 11


def test_a_study_without_any_data_says_what_it_needs(study):
    with pytest.raises(MissingDataError, match=r"features\.mat"):
        run_study(replace(study, tasks=study.tasks[1:]))


def test_a_second_run_repeats_no_fit_and_finds_the_same(study, report, tmp_path):
    run = partial(run_task, folder=tmp_path)
    first = run_study(study, run)
    notes = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    second = run_study(study, run)
    assert notes == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sum(len(content.splitlines()) for content in notes.values()) == 2 * (1 + 3 + 2 + 2)
    for one, two in zip(first.report("small").rows, second.report("small").rows, strict=True):
        assert replace(one, fit_seconds=0) == replace(two, fit_seconds=0)
        # Without a journal the same is found, in other seconds.
        assert one.average == report.report("small").row(one.name).average


def test_precision_starts_high_and_ends_at_the_bottom_of_the_ranking(report):
    small = report.report("small")
    for row in small.rows:
        for way in DIRECTIONS:
            assert (np.diff(row.precision[way]) <= 1e-12).all()
    assert small.row("marginal SM").precision["image_query"][5] > small.row("random").precision["image_query"][5]


def test_the_report_has_the_papers_layout(report):
    written = StringIO()
    print_study(report, Console(file=written, width=400))
    lines = [line.strip() for line in written.getvalue().splitlines() if line.strip()]
    wanted = ["No ground truth", "random", "CCA", "logistic cross-product", "Ground truth", "marginal SM"]
    starts = [next((name for name in wanted if line.startswith(name)), None) for line in lines]
    # Both tables, of scores and of choices, have these rows; the last mention heads the sensitivity curve.
    assert [start for start in starts if start] == [*wanted, *wanted, "logistic cross-product"]
    scores = next(line for line in lines if line.startswith("marginal SM"))
    assert "0.3328" in scores
    assert "0.2411" in scores
    choices = [line for line in lines if line.startswith("logistic cross-product")][1]
    assert "16.74" in choices
    assert "C = 1, S = 10" in choices
    assert "C=" in choices
    assert lines[-1].startswith("not on this machine")
    assert "Features: made by a test." in lines


def test_figures_are_drawn_for_every_report(report, tmp_path):
    files = draw_bench(report.reports, tmp_path)
    assert [file.name for file in files] == ["small-precision-recall.png", "small-sensitivity-ratio.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_a_study_or_a_task_is_found_by_name():
    assert [task.name for task in find_study("pairwise").tasks] == list(TABLES)
    assert find_study("wikipedia").tasks == (find_task("wikipedia"),)
    with pytest.raises(UnknownNameError, match="did you mean 'pairwise'"):
        find_study("pairwse")


def write_tvgraz(folder, *, counts=None, arrays=None, categories=None):
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


def test_tvgraz_is_read_in_its_published_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="tvgraz"):
        TVGRAZ.load()
    write_tvgraz(tmp_path / "tvgraz")
    splits = TVGRAZ.load()
    assert (splits.train.n_images, splits.test.n_images) == (1558, 500)
    assert splits.train.labels[-1] == "pram"
    assert find_task("pairwise-tvgraz").load().test.texts.shape == (500, 3)
    # Table II of Costa Pereira et al. gives the sums too.
    assert tuple(map(sum, zip(*TVGRAZ_COUNTS.values(), strict=True))) == (1558, 500)


def test_the_command_prints_what_is_here_and_names_what_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path / "data"))
    write_tvgraz(tmp_path / "data" / "tvgraz")
    words = ["bench", "pairwise", "--quick", "-m", "random", "-m", "linear-regression", "-j", "1", "-q"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "r.json"), "--plots", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "QUICK" in result.stdout
    assert result.stdout.count("not on this machine") == 2
    document = json.loads((tmp_path / "r.json").read_text())
    assert [missing["task"] for missing in document["missing"]] == ["pairwise-wikipedia", "pairwise-pascal"]
    assert [row["name"] for row in document["reports"][0]["rows"]] == ["random", "linear regression"]
    assert document["reports"][0]["rows"][1]["published"]["image_query"] == 0.2535
    assert (tmp_path / "pairwise-tvgraz-precision-recall.png").exists()


@pytest.mark.parametrize(
    ("broken", "hint"),
    [
        ({"counts": {**TVGRAZ_COUNTS, "frog": (214, 67)}}, "214 pairs of category frog"),
        ({"arrays": {"I_te": np.eye(2)}}, "has no array I_tr"),
        ({"categories": ["brain", "frog"]}, "must list brain"),
        ({"arrays": {name: np.ones((7, 2)) for name in ("I_tr", "I_te", "T_tr", "T_te")}}, r"ask for \(1558, 2\)"),
    ],
)
def test_a_wrong_copy_of_tvgraz_is_noticed(tmp_path, monkeypatch, broken, hint):
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    write_tvgraz(tmp_path / "tvgraz", **broken)
    with pytest.raises(InvalidInputError, match=hint):
        TVGRAZ.load()


@pytest.mark.data("wikipedia")
def test_wikipedia_at_the_chosen_settings_is_above_the_bars():
    task = find_task("pairwise-wikipedia")
    chosen = {"logistic cross-product": ({"C": [1.0], "ratio": [10]}, 0.235), "CCA": ({"n_components": [5]}, 0.22)}
    entries = []
    for entry in task.entries:
        if entry.name in chosen:
            grid = {f"model__{name}": values for name, values in chosen[entry.name][0].items()}
            entries.append(replace(entry, grid=[{"images": ["l2"], "texts": ["l2"], **grid}]))
    report = run_task(replace(task, entries=tuple(entries), protocol=HoldOut(repeats=1), sensitivities=()))
    for name, (_, bar) in chosen.items():
        assert report.row(name).average >= bar
        assert abs(report.row(name).difference) < 0.015
