"""A retriever that costs nothing, shared with the kill trials, and an empty collection that uses it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection import Collection

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_trials.py"
_SPEC = importlib.util.spec_from_file_location("kill_trials", _SCRIPT)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules["kill_trials"] = _MODULE
_SPEC.loader.exec_module(_MODULE)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with three files that the toy retriever takes for pictures."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.png").write_text(f"picture {name}")
    return folder


@pytest.fixture
def collection(photos: Path) -> Iterator[Collection]:
    toy = _MODULE.ToyRetriever
    with Collection.create(photos / ".diptych", toy(), load_retriever=toy.load) as made:
        yield made
