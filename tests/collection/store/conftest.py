"""An empty store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection.store.store import SqliteStore, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = SqliteStore.create(tmp_path / "store")
    yield made
    made.close()
