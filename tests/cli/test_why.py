from __future__ import annotations

import pytest

from diptych.collection import Collection
from diptych.retriever import Retriever, explain
from tests.cli.command_line import Run, World


@pytest.fixture
def here(indexed: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(indexed.pictures)
    return indexed


def test_the_first_answers_come_with_their_reasons(run: Run, here: World) -> None:
    result = run("search", "a", "red", "car", "--why", "--all", "-k", "5", "--format", "paths")
    assert result.exit_code == 0, result.output
    with Collection.open(here.collection) as collection:
        retriever = collection.retriever
        assert isinstance(retriever, Retriever)
        best = collection.search("a red car", 1)[0]
        assert f"1  {explain(retriever, 'a red car', best.path).summary}" in result.stderr.splitlines()
    assert sum(line.endswith("  red") for line in result.stderr.splitlines()) == 3
    assert len(result.stdout.splitlines()) == 5, "a pipe gets the answers alone"


def test_combined_queries_and_texts_have_reasons(run: Run, here: World) -> None:
    result = run("search", "a car + scene-000007.png - snow", "--why", "--all", "-k", "1")
    assert "Of the score " in result.stderr
    result = run("search", "scene-000007.png", "--target", "texts", "--why", "--all", "-k", "1")
    assert "this text" in result.stderr


def test_without_the_flag_there_are_no_reasons(run: Run, here: World) -> None:
    assert "matched" not in run("search", "a red car", "--all").stderr
