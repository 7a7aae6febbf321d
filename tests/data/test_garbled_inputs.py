"""What ``reliability/fuzz.py`` does for hours, for a moment: what others wrote is read, or refused in a sentence."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "reliability" / "fuzz.py"
KINDS = ("filter", "query", "captions", "clicks", "model", "words", "facts", "features")
N_GARBLED = 60

# Pillow and NumPy tell of what they pass over.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", KINDS)
def test_garbled_inputs_are_read_or_refused(fuzz: ModuleType, name: str, tmp_path: Path) -> None:
    kind, rng = fuzz.KINDS[name], random.Random(7)
    seeds = kind.seeds()
    for seed in seeds:
        assert fuzz.finding(kind, tmp_path, seed)[1] == "", seed
    for given in [fuzz.garbled(rng, seeds) for _ in range(N_GARBLED)]:
        assert fuzz.finding(kind, tmp_path, given)[1] == "", given


@pytest.mark.parametrize("file", sorted((SCRIPT.parent / "corpus").glob("*/*")), ids=lambda file: file.name)
def test_what_was_an_error_once_is_refused(fuzz: ModuleType, file: Path, tmp_path: Path) -> None:
    outcome, error = fuzz.finding(fuzz.KINDS[file.parent.name], tmp_path, (file.suffix, file.read_bytes()))
    assert error == ""
    assert outcome != "read"


def test_every_kind_is_tried(fuzz: ModuleType) -> None:
    assert set(fuzz.KINDS) == set(KINDS)
