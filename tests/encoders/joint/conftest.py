"""The tiny models that ``make_tiny_*.py`` wrote, and what transformers and OpenCLIP make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def pictures(fixtures: Path) -> list[NDArray[np.uint8]]:
    by_name = load_file(fixtures / "pictures.safetensors")
    return [by_name[name] for name in sorted(by_name)]


@pytest.fixture(scope="session")
def texts(fixtures: Path) -> list[str]:
    content: Any = json.loads((fixtures / "texts.json").read_text(encoding="utf-8"))
    return list(content)
