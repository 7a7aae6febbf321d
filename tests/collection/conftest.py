"""An empty collection with a retriever that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection import Collection
from tests.doubles import ToyRetriever


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
    with Collection.create(photos / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        yield made
