"""Every number that the papers print has ours beside it, or a reason; the page says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from diptych.benchmark.published import published_rows
from diptych.benchmark.reporting import reproduction_page
from diptych.benchmark.reporting.pages import made_pages, made_table
from diptych.benchmark.reporting.reproduction import Answer, Ours, StoredResults, answer_rows
from diptych.benchmark.results import Record, ResultFolder
from diptych.cli.app import app
from diptych.errors import InvalidInputError, UnknownNameError

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"


@pytest.fixture(scope="module")
def results() -> StoredResults:
    """Read once: thousands of records take a second."""
    return StoredResults(RESULTS)


@pytest.fixture(scope="module")
def answers(results: StoredResults) -> tuple[Answer, ...]:
    return answer_rows(results)


def ours(answers: Sequence[Answer], **wanted: str) -> Ours:
    """Return our value beside the one printed number that has these facts."""
    (found,) = [one for one in answers if all(one.row[name] == value for name, value in wanted.items())]
    assert found.ours is not None, found.reason
    return found.ours


def test_no_row_is_without_an_answer(answers: tuple[Answer, ...]) -> None:
    assert [one.row for one in answers] == list(published_rows())
    assert len(answers) >= 620
    unanswered = [one.row for one in answers if (one.ours is None) == (not one.reason)]
    assert unanswered == []
    assert sum(one.ours is not None for one in answers) >= 300


def test_every_made_page_is_what_the_command_makes_of_the_stored_results(results: StoredResults) -> None:
    made = made_pages(results, ROOT / "docs" / "results")
    stale = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `diptych bench pages bench/results`"
    assert {"benchmark.md", "findings.md", "neural-benchmark.md", "reproduction.md"} <= {path.name for path in made}


def test_the_page_has_a_row_for_every_number(answers: tuple[Answer, ...]) -> None:
    page = reproduction_page(answers)
    rows = [line for line in page.splitlines() if line.startswith("|") and line.count(" | ") == 8]
    assert len(rows) - page.count("| method | data |") == len(answers)


def test_values_are_those_of_the_stored_results(results: StoredResults, answers: tuple[Answer, ...]) -> None:
    records = results.folds("extendable-wikipedia-seen", "sm")
    rank_one = sum(record.measures["CMC@1"]["image_query"] for record in records) / 5
    found = ours(answers, paper="000", table="Fig. 3(a)", method="SM", metric="CMC_rank1_percent")
    assert found.value == pytest.approx(100 * rank_one)
    assert found.command == "diptych bench run --task extendable-wikipedia-seen --method sm"
    assert ours(answers, paper="000", dataset="Pascal Sentence", metric="capacity_pairs").value == 1000
    (stored,) = results.folds("pairwise-wikipedia", "cca")
    cca = {"paper": "001", "table": "Table 1", "method": "CCA"}
    assert ours(answers, **cca, direction="text_query").value == stored.measures["AP()"]["text_query"]
    assert ours(answers, **cca, metric="training_time_s").value == stored.seconds["fit"]
    assert ours(answers, paper="004", regime="category Warfare", metric="n_test").value == 104
    normaliser = ours(answers, paper="003", method="NDCG normaliser").value
    assert normaliser == pytest.approx(0.0175678, abs=1e-7)


def test_gains_follow_from_the_averages(answers: tuple[Answer, ...]) -> None:
    table = {"paper": "004", "table": "Table IX", "direction": "average"}
    best = ours(answers, **table, method="SCM", metric="MAP").value
    for method in ("SM", "CM", "Random"):
        other = ours(answers, **table, method=method, metric="MAP").value
        gain = ours(answers, **table, method=method, metric="gain_of_SCM_percent").value
        assert gain == pytest.approx(100 * (best / other - 1))


def neural_record(method: str, title: str, value: float) -> Record:
    both = {"image_query": value, "text_query": value}
    measures = {"AP()": both, "MAP@50 (retrieved)": both}
    facts: dict[str, Any] = {"dataset": "coco", "setting": "seeds", "features": "f", "fold": 0}
    return Record(task="neural-coco", method=method, method_title=title, measures=measures, chance=measures, **facts)


def test_what_is_not_stored_is_said_and_counted(tmp_path: Path) -> None:
    for method, title, value in (("mnil-i-t", "MNiL(I→T)", 0.3), ("mnil", "MNiL", 0.36)):
        ResultFolder(tmp_path).write(neural_record(method, title, value))
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "clicks.json").write_text(json.dumps({"lists": {}}), encoding="utf-8")
    answers = answer_rows(StoredResults(tmp_path))
    assert ours(answers, paper="002", method="MNiL vs MNiL(I->T)").value == pytest.approx(20.0)
    assert ours(answers, table="Table 1", method="MNiL", metric="MAP@50", direction="average").value == 0.36
    reasons = {(one.row["table"], one.row["method"]): one.reason for one in answers if one.ours is None}
    assert reasons["Table 1", "LDSP"] == "no result of `diptych bench run --task neural-coco` is stored"
    assert reasons["Table V", "PSI"] == "the stored results lack 'experts'"
    assert reasons["Table IX", "SCM"].startswith("no result of `diptych bench costa-pereira")
    n_valued = sum(one.ours is not None for one in answers)
    said = f"{len(answers)} of {len(answers)} printed numbers are answered: {n_valued} by a value of ours"
    assert said in reproduction_page(answers)


def test_results_of_tvgraz_fill_their_rows(tmp_path: Path) -> None:
    """The data are in no package, but whoever has them gets the table and the gain that the text prints."""
    for method, title, value in (("cca", "CCA", 0.3), ("logistic-cross-product", "logistic cross-product", 0.33)):
        both = {"image_query": value, "text_query": value}
        facts: dict[str, Any] = {"dataset": "tvgraz", "setting": "standard", "features": "f", "fold": 0}
        measures = {"measures": {"AP()": both}, "chance": {"AP()": both}, "seconds": {"fit": 0.1}}
        record = Record(task="pairwise-tvgraz", method=method, method_title=title, **measures, **facts)
        ResultFolder(tmp_path).write(record)
    answers = answer_rows(StoredResults(tmp_path))
    assert ours(answers, table="Table 3", method="CCA", direction="text_query").value == 0.3
    assert ours(answers, paper="001", dataset="TVGRAZ", metric="gain_percent", value="3").value == pytest.approx(10)
    sm = [one for one in answers if one.row["table"] == "Table 3" and one.row["method"] == "SM"]
    assert all("`diptych bench run --task pairwise-tvgraz` reads its files" in one.reason for one in sm)


def test_ranks_are_among_the_methods_of_the_paper(results: StoredResults, answers: tuple[Answer, ...]) -> None:
    found = ours(answers, table="Fig. 3(b)", method="TS", metric="MAP_rank")
    names = ["cca", "sm", "scm", "pls", "blm", "gmmfa", "gmlda", "cca-3v", "lcfs", "deep-sm", "ts", "deep-ts"]
    means = {
        name: sum(
            record.measures["AP()"]["image_query"] for record in results.folds("extendable-wikipedia-unseen", name)
        )
        for name in names
    }
    assert found.value == 1 + sorted(means.values(), reverse=True).index(means["ts"])


def test_a_table_of_a_page_says_what_it_lacks(results: StoredResults, tmp_path: Path) -> None:
    shown = made_table(results, "standard cca sm")
    cca = results.folds("standard-wikipedia", "cca")[0].average()
    assert f"| CCA | {cca:.4f} |" in shown
    with pytest.raises(UnknownNameError, match="maker of tables"):
        made_table(results, "standards cca")
    with pytest.raises(InvalidInputError, match="no stored result of nope on standard-wikipedia"):
        made_table(results, "standard nope")


def test_the_command_writes_what_is_stale(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    words = ["bench", "pages", str(tmp_path), str(tmp_path)]
    assert CliRunner().invoke(app, [*words, "--check"]).exit_code == 1
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert (tmp_path / "reproduction.md").read_text(encoding="utf-8").startswith("# Printed numbers and ours")
    assert CliRunner().invoke(app, [*words, "--check"]).exit_code == 0
