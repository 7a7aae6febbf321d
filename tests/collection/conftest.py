"""A retriever that costs nothing, shared with the kill trials, and an empty collection that uses it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from diptych.collection import Collection


def load_script(folder: str, name: str) -> ModuleType:
    """Import a script by its name, as it is run: with the modules beside it."""
    place = Path(__file__).parents[2] / folder
    spec = importlib.util.spec_from_file_location(name, place / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(place))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(place))
    return module


_MODULE = load_script("benchmarks", "kill_trials")
for _name in ("byte_flips", "power_cuts", "full_disk"):
    load_script("reliability", _name)


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
