from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from diptych.cli.commands.serve import named_roots, served_collections
from diptych.cli.console.paths import find_collection, remember
from diptych.service.app import create_app
from diptych.service.settings import Settings
from tests.cli.command_line import Run, World
from tests.collection.store.conftest import postgres_address, postgres_server

__all__ = ["postgres_address", "postgres_server"]


def test_the_last_collection_is_remembered_without_its_password(nothing_indexed: Path) -> None:
    remember("postgresql://ann:secret@host/db?schema=photos")
    assert find_collection(None) == ("postgresql://ann@host/db?schema=photos", "indexed last")


@pytest.mark.server
def test_a_folder_is_indexed_searched_and_served_in_postgresql(
    run: Run,
    scenery: World,
    nothing_indexed: Path,
    postgres_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = scenery.copied(nothing_indexed / "pictures")
    words = ["--captions", world.captions, "--retriever", world.retriever, "--json"]
    made = json.loads(run("index", world.pictures, "--collection", postgres_address, *words).stdout)
    assert (made["collection"], made["added"]) == (postgres_address, 60)
    assert not (world.pictures / ".diptych").exists()
    again = json.loads(run("index", world.pictures, "--collection", postgres_address, "--json").stdout)
    assert (again["added"], again["unchanged"]) == (0, 60)

    # The last collection is meant; and it answers as one in a folder does.
    asked = ("search", "a red car", "--all", "-k", "5", "--sort", "name")
    found = run(*asked).stdout
    assert run("index", world.pictures, *words).exit_code == 0
    assert found == run(*asked).stdout
    monkeypatch.setenv("DIPTYCH_COLLECTION", postgres_address)
    assert found == run(*asked).stdout
    status = json.loads(run("status", "--json").stdout)
    assert (status["folder"], status["pictures"], status["root"]) == (postgres_address, 60, str(world.pictures))
    assert run("verify").exit_code == 0

    served = served_collections([postgres_address], ["scenes"])
    settings = Settings(collections=served, roots=named_roots([postgres_address], served, []))
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        found = client.post("/v1/collections/scenes/search", json={"query": "a red car"})
        assert (found.status_code, found.json()["considered"]) == (200, 60)

    backup = run("backup", tmp_path / "backup")
    assert (backup.exit_code, "pg_dump" in backup.stderr) == (2, True)
