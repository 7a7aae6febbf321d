from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = """
import pytest

@pytest.mark.data
def test_any_data(): ...

@pytest.mark.data("pictures")
def test_pictures(): ...

def test_no_data(): ...
"""


def outcome(folder: Path, **environment: str) -> str:
    """Run three sample tests under this project's conftest and return pytest's summary line."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_sample.py").write_text(SAMPLE)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DIPTYCH", "PYTEST"))}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "ignore", str(folder)],
        cwd=folder,
        # No plugin has a part in this, and most of the start of pytest is theirs.
        env=inherited | environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return run.stdout.splitlines()[-1]


def test_data_tests_run_when_their_folder_is_there(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    assert "3 passed" in outcome(tmp_path, DIPTYCH_DATA=str(tmp_path), DIPTYCH_REQUIRE_DATA="1")


@pytest.mark.parametrize("environment", [{}, {"DIPTYCH_DATA": "/nowhere", "DIPTYCH_REQUIRE_DATA": "0"}])
def test_data_tests_are_skipped_without_data(tmp_path: Path, environment: dict[str, str]) -> None:
    assert "1 passed, 2 skipped" in outcome(tmp_path, **environment)


def test_a_named_folder_is_asked_for_by_itself(tmp_path: Path) -> None:
    assert "2 passed, 1 skipped" in outcome(tmp_path, DIPTYCH_DATA=str(tmp_path))


def test_missing_data_fails_where_data_is_required(tmp_path: Path) -> None:
    summary = outcome(tmp_path, DIPTYCH_REQUIRE_DATA="1")
    assert "2 failed" in summary or "2 errors" in summary
    assert "1 passed" in summary
