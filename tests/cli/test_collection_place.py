from __future__ import annotations

import os
from pathlib import Path

import pytest

from diptych.cli.console.paths import find_collection, new_collection, remember
from diptych.errors import InvalidInputError
from tests.cli.command_line import Run

NOBODY = 65534


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "collection.sqlite").touch()
    return folder


def test_without_any_collection_the_message_says_what_to_run(nothing_indexed: Path) -> None:
    with pytest.raises(InvalidInputError, match="diptych index FOLDER"):
        find_collection(None)


def test_what_is_nearer_wins(nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order, from the last resort to the first choice: remembered, above, here, variable, named."""
    remember(make(nothing_indexed.parent / "remembered"))
    assert find_collection(None).place == nothing_indexed.parent / "remembered"
    above = make(nothing_indexed.parent / ".diptych")
    assert find_collection(None).place == above
    assert str(nothing_indexed.parent) in find_collection(None).reason
    here = make(nothing_indexed / ".diptych")
    assert find_collection(None) == (here, "")
    monkeypatch.setenv("DIPTYCH_COLLECTION", str(make(nothing_indexed.parent / "variable")))
    assert find_collection(None).place == nothing_indexed.parent / "variable"
    named = make(nothing_indexed.parent / "named")
    assert find_collection(named) == (named, "")


def test_the_folder_of_the_pictures_names_its_collection(nothing_indexed: Path) -> None:
    inside = make(nothing_indexed / "photos" / ".diptych")
    assert find_collection(nothing_indexed / "photos").place == inside


def test_a_forgotten_collection_is_not_remembered(nothing_indexed: Path) -> None:
    folder = make(nothing_indexed / "gone")
    remember(folder)
    (folder / "collection.sqlite").unlink()
    with pytest.raises(InvalidInputError, match="no collection yet"):
        find_collection(None)


@pytest.mark.parametrize("variable", [None, "nowhere"])
def test_a_named_collection_must_be_one(
    nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    if variable is not None:
        monkeypatch.setenv("DIPTYCH_COLLECTION", variable)
    with pytest.raises(InvalidInputError, match="nowhere does not exist"):
        find_collection(None if variable else Path("nowhere"))


def test_a_new_collection_lies_in_the_pictures(nothing_indexed: Path) -> None:
    assert new_collection(nothing_indexed, None) == (nothing_indexed / ".diptych", "")
    assert not (nothing_indexed / ".diptych").exists()


@pytest.mark.skipif(not hasattr(os, "seteuid") or os.geteuid() != 0, reason="only root can be somebody else")
def test_pictures_that_cannot_be_written_beside_are_indexed_in_the_cache(nothing_indexed: Path) -> None:
    os.seteuid(NOBODY)
    try:
        place = new_collection(nothing_indexed, None)
    finally:
        os.seteuid(0)
    assert place.place.is_relative_to(nothing_indexed.parent / "cache")
    assert place.place.name.startswith("here-")
    assert "cannot be written" in place.reason


def test_two_folders_of_one_name_have_two_places_in_the_cache(tmp_path: Path) -> None:
    # What does not exist cannot be written to, whoever asks.
    places = {new_collection(tmp_path / parent / "photos", None).place for parent in ("a", "b")}
    assert len(places) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", ".", "--collection", "s3://bucket/photos"],
        ["search", "a dog", "-c", "gs://bucket/photos"],
        ["serve", "az://container/photos"],
        ["restore", "backup", "s3://bucket/photos"],
    ],
)
def test_addresses_in_object_storage_are_refused(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert "collections in object storage are not supported; give a folder" in " ".join(result.stderr.split())
