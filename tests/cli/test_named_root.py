from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from diptych.collection import Collection
from tests.cli.command_line import Run, World


@pytest.fixture
def world(indexed: World, tmp_path: Path) -> World:
    return indexed.copied(tmp_path / "pictures")


@pytest.fixture
def foreign(world: World, tmp_path: Path) -> Path:
    """The collection alone, copied to another place."""
    return Path(shutil.copytree(world.collection, tmp_path / "foreign"))


def test_indexing_names_the_root_of_a_collection_from_elsewhere(run: Run, world: World, foreign: Path) -> None:
    refused = run("index", world.pictures, "--collection", foreign)
    assert refused.exit_code == 2
    assert "was made elsewhere" in refused.stderr
    assert f"--collection {foreign} --root FOLDER" in refused.stderr.replace("\n", " ")
    named = run("index", world.pictures, "--collection", foreign, "--root", world.pictures)
    assert named.exit_code == 0, named.stderr
    with Collection.open(foreign) as collection:
        assert (collection.root, collection.is_root_trusted) == (world.pictures, True)


def test_indexing_the_folder_around_a_moved_collection_names_it(run: Run, world: World) -> None:
    moved = world.pictures.rename(world.pictures.with_name("moved"))
    with Collection.open(moved / ".diptych") as collection:
        assert not collection.is_root_trusted
    assert run("index", moved).exit_code == 0
    with Collection.open(moved / ".diptych") as collection:
        assert collection.is_root_trusted


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--root", "/"], "is the whole file system"),
        (["--root", "{foreign}"], "belongs to the collection itself"),
        (["--watch"], "was made elsewhere"),
        (["--root", "{pictures}", "--root", "{pictures}"], "--root is given 2 times for 1 collections"),
        (["--root", "{pictures}", "--token-file", "{pictures}/token"], "keep the token elsewhere"),
    ],
)
def test_serving_refuses_a_root(run: Run, world: World, foreign: Path, words: list[str], reason: str) -> None:
    (world.pictures / "token").write_text("a-token-that-only-the-tests-know")
    filled = [word.format(foreign=foreign, pictures=world.pictures) for word in words]
    result = run("serve", foreign, "--port", "0", *filled)
    assert result.exit_code == 2
    assert reason in result.stderr
