"""The tiers name tests that exist, and every folder of tests has a shard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiers

TESTS = Path(__file__).parent


def test_every_module_has_a_shard() -> None:
    for module in TESTS.rglob("test_*.py"):
        assert tiers.shard_of(module) in tiers.SHARD_FOLDERS


@pytest.mark.parametrize("place", sorted(tiers.FULL_FILES | tiers.FULL_FOLDERS))
def test_full_modules_and_folders_exist(place: str) -> None:
    assert (TESTS / place).exists()


@pytest.mark.parametrize("name", sorted(tiers.END_TO_END))
def test_end_to_end_tests_exist(name: str) -> None:
    place, _, function = name.partition("::")
    assert f"def {function}(" in (TESTS / place).read_text(encoding="utf-8")


def test_a_quick_module_is_not_full() -> None:
    assert not tiers.is_full(TESTS / "metrics" / "test_measures.py")
    assert tiers.is_full(TESTS / "browser" / "test_search.py")
    assert tiers.has_end_to_end(TESTS / "browser" / "test_search.py")
