"""The page of performance is the one that its record makes, and stays short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "performance.md"
MAX_ROWS = 32


def test_the_page_is_the_one_that_the_record_makes(tmp_path: Path) -> None:
    made = tmp_path / "performance.md"
    subprocess.run([sys.executable, "-m", "bench.performance_page", str(made)], cwd=ROOT, check=True)
    assert made.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_page_has_few_rows() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    tables = lines.count("| work | measured | beside it |")
    assert 0 < sum(line.startswith("| ") for line in lines) - tables <= MAX_ROWS
