from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.hub import FakeHub, running_hub


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's models, which does not exist yet."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DIPTYCH_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "models"


@pytest.fixture
def hub(models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that the library finds, without a proxy in between."""
    with running_hub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        yield running
