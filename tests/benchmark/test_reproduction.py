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
from diptych.benchmark.reporting.reproduction import Answer, Ours, StoredResults, answer_rows
from diptych.cli.app import app

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


def test_the_page_is_what_the_command_makes_of_the_stored_results(answers: tuple[Answer, ...]) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == reproduction_page(answers), "run `diptych bench reproduction` again, as the page says"
    rows = [line for line in page.splitlines() if line.startswith("|") and line.count(" | ") == 8]
    assert len(rows) - page.count("| method | data |") == len(answers)


def test_values_are_those_of_the_stored_results(results: StoredResults, answers: tuple[Answer, ...]) -> None:
    records = results.folds("extendable-wikipedia-seen", "sm")
    rank_one = sum(record.measures["CMC@1"]["image_query"] for record in records) / 5
    found = ours(answers, paper="000", table="Fig. 3(a)", method="SM", metric="CMC_rank1_percent")
    assert found.value == pytest.approx(100 * rank_one)
    assert found.command == "diptych bench run --task extendable-wikipedia-seen --method sm"
    assert ours(answers, paper="000", dataset="Pascal Sentence", metric="capacity_pairs").value == 1000
    pairwise = {row["name"]: row for row in results.studies["pairwise-wikipedia"]["rows"]}
    cca = {"paper": "001", "table": "Table 1", "method": "CCA"}
    assert ours(answers, **cca, direction="text_query").value == pairwise["CCA"]["text_query"]
    assert ours(answers, **cca, metric="training_time_s").value == pairwise["CCA"]["fit_seconds"]
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


def test_what_is_not_stored_is_said_and_counted(tmp_path: Path) -> None:
    studies: dict[str, Any] = {
        "neural": [{"task": "wikipedia", "methods": []}],
        "neural-coco": [{"task": "coco", "methods": [_neural("MNiL(I→T)", 0.3), _neural("MNiL", 0.36)]}],
        "clicks": {"lists": {}},
    }
    (tmp_path / "studies").mkdir()
    for name, document in studies.items():
        (tmp_path / "studies" / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    answers = answer_rows(StoredResults(tmp_path))
    assert ours(answers, paper="002", method="MNiL vs MNiL(I->T)").value == pytest.approx(20.0)
    assert ours(answers, table="Table 1", method="MNiL", metric="MAP@50", direction="average").value == 0.36
    reasons = {(one.row["table"], one.row["method"]): one.reason for one in answers if one.ours is None}
    assert reasons["Table 1", "LDSP"] == "no result of `diptych bench neural --data coco` is stored"
    assert reasons["Table V", "PSI"] == "the stored results lack 'experts'"
    assert reasons["Table IX", "SCM"].startswith("no result of `diptych bench costa-pereira")
    n_valued = sum(one.ours is not None for one in answers)
    said = f"{len(answers)} of {len(answers)} printed numbers are answered: {n_valued} by a value of ours"
    assert said in reproduction_page(answers)


def _neural(name: str, mean: float) -> dict[str, Any]:
    cells = {way: {"mean": mean} for way in ("image_query", "text_query")}
    return {"name": name, "measures": {"MAP": cells, "MAP@50 (retrieved)": cells}}


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    done = CliRunner().invoke(app, ["bench", "reproduction", str(tmp_path), "--output", str(tmp_path / "page.md")])
    assert done.exit_code == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Printed numbers and ours")
