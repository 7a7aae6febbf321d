"""What every test shares: one numerical thread per process, repeatable examples, a fresh cache, the ``data`` marker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy is imported: parallel workers that each start a thread per core only wait for one another.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Programs that the tests start share what one of them has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A commit passes or fails, whatever the machine's load and luck; `--hypothesis-profile explore` looks further.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the whole run one cache of its own: features of another day would hide what changed since."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def no_given_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be as wide as they are: test runners tell the width of a terminal that is not there."""
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose data is not here, or fail it where DIPTYCH_REQUIRE_DATA says that it must be."""
    for marker in item.iter_markers("data"):
        problem = missing_data(os.environ.get("DIPTYCH_DATA", ""), *marker.args)
        if problem and os.environ.get("DIPTYCH_REQUIRE_DATA", "0") not in ("", "0"):
            pytest.fail(f"{problem}, and DIPTYCH_REQUIRE_DATA is set", pytrace=False)
        elif problem:
            pytest.skip(problem)


def missing_data(root: str, *folders: str) -> str | None:
    """Say what is missing under ``root``; ``@pytest.mark.data("wikipedia")`` asks for that folder in it."""
    if not root:
        return "DIPTYCH_DATA is not set"
    for folder in (Path(root), *(Path(root) / name for name in folders)):
        if not folder.is_dir():
            return f"no data folder {folder}"
    return None
