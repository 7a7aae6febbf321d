"""The libraries that the joint models come from, which have an environment of their own: ``make test-joint``."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import pytest

LIBRARIES = ("ftfy", "open_clip", "sentencepiece", "timm", "torch", "torchvision", "transformers")
MISSING = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
# Examples in docstrings are looked for in every module, and this one imports all of them.
collect_ignore = ["tiny_models.py"] if MISSING else []

if not MISSING:
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        # The build of another device than PyTorch's lacks its compiled operators; preparing pictures needs none.
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")

COSINES: dict[str, dict[str, float]] = {}


@pytest.fixture(autouse=True)
def libraries() -> None:
    """Skip what cannot be compared here."""
    if MISSING:
        pytest.skip(f"{', '.join(MISSING)} not installed here; `make test-joint` has an environment for them")


@pytest.fixture(scope="session")
def cosines() -> dict[str, dict[str, float]]:
    """The least cosine of each architecture and side, for the summary."""
    return COSINES


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how well each architecture agrees with its original."""
    if COSINES:
        terminalreporter.section("least cosine with the original")
    for name, sides in COSINES.items():
        shown = "  ".join(f"{side} {value:.7f}" for side, value in sides.items())
        terminalreporter.write_line(f"{name:24} {shown}")
