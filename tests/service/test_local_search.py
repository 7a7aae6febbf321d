"""``diptych search`` asks the service that has the collection open, and nobody could tell by what it prints."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from diptych.cli import app
from diptych.cli.commands.served_collection import ServedCollection
from diptych.collection import Collection, parse_query
from diptych.service.local_search import SIGNATURE_HEADER, announced, answers_text, read_note, signature
from tests.service.conftest import RunningService


@pytest.fixture(scope="module")
def served(shared_service: Callable[..., RunningService]) -> Iterator[Path]:
    """The folder of a collection that a service has open, with its note."""
    service = shared_service()
    (folder,) = service.settings.collections.values()
    with announced(service.settings.collections, ("127.0.0.1", service.port), service.settings.session_secret):
        yield folder
    assert read_note(folder) is None


def never_opened() -> Collection:
    raise AssertionError("the service was not asked")


def printed(folder: Path, *words: str) -> tuple[int, Any, str]:
    result = CliRunner().invoke(app, ["search", "-c", str(folder), *words], prog_name="diptych")
    shown = result.stdout
    if "--json" in words and shown:
        shown = json.loads(shown)
        del shown["seconds"]
    return result.exit_code, shown, result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["a", "red", "ball", "--json"],
        ["2:a red ball + a house - snow", "--all", "-k", "3", "--offset", "2", "--json"],
        ["a boat", "--target", "texts", "--all", "--json"],
        ["a ball", "--hybrid", "--exact", "--filter", "objects>=2", "--all", "--json"],
        ["xqzv"],
        ["a ball", "--filter", "colour:nosuch"],
        ["a ball", "--all", "--format", "paths"],
        ["item:nosuch"],
    ],
)
def test_the_service_answers_as_the_collection_does(served: Path, words: list[str]) -> None:
    assert printed(served, *words) == printed(served, *words, "--local")


def test_answers_and_thumbnails_are_those_of_the_service(served: Path) -> None:
    asked = ServedCollection(served, never_opened)
    answers = asked.search(parse_query("a red ball"), 3, target="images")
    with Collection.open(served) as collection:
        expected = collection.search("a red ball", 3)
        assert replace(answers, seconds=0.0) == replace(expected, seconds=0.0)
        assert [asked[answer.id] for answer in answers] == [collection[answer.id] for answer in expected]
        assert asked.thumbnail(answers[0].id) == collection.thumbnail(answers[0].id)
    asked.close()


def test_whoever_asks_the_service_waits_for_nothing_that_it_has(served: Path) -> None:
    listing = "import sys; from diptych.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    words = ["search", "-c", str(served), "a", "red", "ball", "--all", "-k", "3", "--format", "paths"]
    asked = subprocess.run([sys.executable, "-c", listing, *words], capture_output=True, text=True, check=True)
    assert len(asked.stdout.splitlines()) == 3
    loaded = {name.partition(".")[0] for name in asked.stderr.split()}
    # Typer would check every argument by Pydantic.
    assert {"numpy", "pyarrow", "lancedb", "onnxruntime", "PIL", "pydantic", "rich"}.isdisjoint(loaded)


def test_a_picture_of_this_machine_is_searched_with_here(served: Path) -> None:
    picture = next(served.parent.glob("*.png"))
    assert printed(served, str(picture), "--json") == printed(served, str(picture), "--json", "--local")
    with pytest.raises(AssertionError, match="was not asked"):
        ServedCollection(served, never_opened).search(parse_query(str(picture)), 1)


def opens_here(folder: Path) -> bool:
    try:
        ServedCollection(folder, never_opened).search(parse_query("a ball"), 1, target="images")
    except AssertionError:
        return True
    return False


def test_a_note_is_believed_only_where_it_is_of_this_service_version_and_collection(served: Path) -> None:
    note = read_note(served)
    assert note is not None
    place = served / "service" / "address.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert not opens_here(served)
    copy = served.with_name("copy")
    shutil.copytree(served, copy)
    assert opens_here(copy), "a copy is another collection"
    changed: list[dict[str, Any]] = [
        {"version": "0"},
        {"port": 1},
        {"key": "another"},
        {"name": "another"},
        {"host": "192.0.2.1"},
        {"host": "example.org"},
    ]
    for change in changed:
        place.write_text(answers_text(replace(note, **change)))
        assert opens_here(served), change
    place.write_text("{")
    assert opens_here(served)
    place.write_text(answers_text(note))
    assert not opens_here(served)


def test_whoever_has_no_key_gets_nothing(served: Path) -> None:
    note = read_note(served)
    assert note is not None
    address = f"http://{note.host}:{note.port}/v1/collections/{note.name}/answers"
    words = "q=ball&k=3&target=images"
    assert httpx.get(f"{address}?{words}").status_code == 401
    right = {SIGNATURE_HEADER: signature(note.key, words)}
    assert httpx.get(f"{address}?{words}", headers=right).status_code == 200
    assert httpx.get(f"{address}?{words}&offset=1", headers=right).status_code == 401
