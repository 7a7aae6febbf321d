"""What the page of ratios must say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("performance_page", ROOT / "scripts" / "performance_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def record(script: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script.RECORD.read_text(encoding="utf-8"))
    return found


def test_every_ratio_below_one_and_every_steep_growth_has_a_reason(script: ModuleType, record: dict[str, Any]) -> None:
    assert script.unexplained(record) == []


def test_what_has_no_reason_is_found(script: ModuleType, record: dict[str, Any]) -> None:
    slow = {"script": "map_speed", "work": "new", "unit": "s", "peer": "somebody", "limit": None, "size": None}
    steep = [{**slow, "peer": None, "ratio": None, "size": size, "ours": size**1.2} for size in (1, 10, 100, 1000)]
    rows = [{**slow, "ratio": 0.9, "ours": 1.0}, {**slow, "ratio": 1.0, "ours": 1.0}, *steep]
    assert script.unexplained({**record, "rows": [*record["rows"], *rows]}) == ["new beside somebody", "growth of new"]


def test_the_page_is_the_one_that_the_record_makes(
    script: ModuleType, record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "IMAGES", tmp_path)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(record)
    named = (tmp_path / "performance-fitting.svg").read_text(encoding="utf-8")
    assert all(
        f">{curve.work.removeprefix('fit of ')}<" in named
        for curve in script.curves(record["rows"])
        if curve.script == "fit_speed"
    )
