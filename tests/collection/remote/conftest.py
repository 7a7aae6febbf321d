"""An address in a real object storage, and machines that each keep a copy of what is there."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import Collection
from kill_trials import ToyRetriever

Machine = Callable[..., Collection]


@pytest.fixture
def address(storage: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A free address in the storage, whose credentials are in the environment."""
    for name, value in storage.environment.items():
        monkeypatch.setenv(name, value)
    return f"{storage.address}/{uuid.uuid4().hex[:12]}"


@pytest.fixture
def machine(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Open the collection as on another machine, which has a cache of its own; ``create`` makes it."""

    def opened(name: str, *, create: bool = False, write_wait: float = 20.0) -> Collection:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        how: dict[str, Any] = {"load_retriever": ToyRetriever.load, "write_wait": write_wait}
        if create:
            return Collection.create(address, ToyRetriever(), root=tmp_path, **how)
        return Collection.open(address, **how)

    return opened
