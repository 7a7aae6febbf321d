"""Binary codes from the command line: learned, stored, counted, searched and scored again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diptych.collection import Collection
from tests.cli.command_line import Run, World


@pytest.fixture
def world(indexed: World, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    copy = indexed.copied(nothing_indexed / "pictures")
    monkeypatch.chdir(copy.pictures)
    return copy


def test_codes_replace_vectors_and_are_scored_again(run: Run, world: World) -> None:
    refused = run("search", "a red car", "--rerank", "5")
    assert refused.exit_code != 0
    assert "leave rerank out" in str(refused.exception or refused.output) + refused.stderr
    assert run("train", "--method", "cvh", "--param", "n_bits=24", "--anyway").exit_code == 0
    shown = " ".join(run("status").stdout.split())
    assert "kept of each codes of 24 bits, 3 B;" in shown
    orders = {}
    for words in ((), ("--rerank", "60"), ("--rerank", "60", "--rerank-by", "features")):
        result = run("search", "a red car", "--all", "-k", "60", "--json", *words)
        assert result.exit_code == 0
        orders[words] = [answer["id"] for answer in json.loads(result.stdout)["answers"]]
    assert len({tuple(order) for order in orders.values()}) == 3
    assert len({frozenset(order) for order in orders.values()}) == 1
    with Collection.open(world.collection) as collection:
        assert collection.status().point_bytes == 3
        asked = collection.search("a red car", 60, rerank=60, rerank_by="features")
        assert [answer.id for answer in asked] == orders["--rerank", "60", "--rerank-by", "features"]
    assert run("search", "a red car", "--why", "--rerank", "20", "--all").exit_code == 0
