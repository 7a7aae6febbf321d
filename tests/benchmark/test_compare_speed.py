"""``make bench-compare``: which changes of a ratio count as a loss, on made-up records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare_speed import main
from run_speed import merged


def row(ratio: float | None = 10.0, spread: float = 0.02, work: str = "a fit", **facts: Any) -> dict[str, Any]:
    made_up = {"script": "made_up", "work": work, "size": None, "peer": "another library", "limit": None}
    return {**made_up, "ratio": ratio, "spread": spread, **facts}


def compared(folder: Path, before: list[dict[str, Any]], after: list[dict[str, Any]], form: str = "quick") -> int:
    paths = folder / "recorded.json", folder / "new.json"
    for path, rows, of_form in zip(paths, (before, after), ("quick", form), strict=True):
        path.write_text(json.dumps({"form": of_form, "rows": rows}), encoding="utf-8")
    return main([str(path) for path in paths])


def test_a_loss_beyond_noise_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, [row(10.0)], [row(8.0)]) == 1
    assert "lost          made_up: a fit, another library: 10.00 -> 8.00" in capsys.readouterr().out


def test_a_small_loss_and_one_within_the_spread_of_either_run_pass(tmp_path: Path) -> None:
    assert compared(tmp_path, [row(10.0)], [row(8.8)]) == 0
    assert compared(tmp_path, [row(10.0, spread=0.1)], [row(8.0)]) == 0
    assert compared(tmp_path, [row(10.0)], [row(8.0, spread=0.1)]) == 0


def test_a_gain_passes_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, [row(10.0)], [row(20.0)]) == 0
    assert "gained" in capsys.readouterr().out


def test_a_row_that_is_missing_fails_but_not_a_peer_that_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(tmp_path, [row(), row(work="another fit")], [row()]) == 1
    assert "missing       made_up: another fit" in capsys.readouterr().out
    assert compared(tmp_path, [row()], [row(None)]) == 0
    assert "not installed" in capsys.readouterr().out


def test_the_sizes_of_a_curve_are_compared_each_with_its_own(tmp_path: Path) -> None:
    curve = [row(10.0, size=1000), row(2.0, size=2000)]
    assert compared(tmp_path, curve, curve[::-1]) == 0
    assert compared(tmp_path, curve, [row(10.0, size=1000), row(1.0, size=2000)]) == 1


def test_two_forms_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="run the same form"):
        compared(tmp_path, [row()], [row()], form="full")


def test_a_script_that_runs_again_replaces_its_own_rows_alone() -> None:
    machine = {"processor": "a processor", "cores": 2, "architecture": "x86_64"}
    run = {"seconds": 1.0, "status": 0}
    record: dict[str, Any] = {"rows": []}
    for script, ratio in (("first", 1.0), ("second", 2.0), ("first", 3.0)):
        found = {"machine": machine, "rows": [{"script": script, "ratio": ratio}]}
        record = merged(record, "quick", script, found, run)
    assert {each["script"]: each["ratio"] for each in record["rows"]} == {"first": 3.0, "second": 2.0}
    elsewhere = {"machine": {**machine, "cores": 16}, "rows": [{"script": "third", "ratio": 4.0}]}
    assert [each["script"] for each in merged(record, "quick", "third", elsewhere, run)["rows"]] == ["third"]
    assert [each["script"] for each in merged(record, "full", "third", elsewhere, run)["rows"]] == ["third"]
