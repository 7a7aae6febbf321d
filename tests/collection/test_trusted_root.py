from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych.collection import Collection, Item, Record, backup_collection, restore_collection
from diptych.collection.root import OriginalError, refused_root
from diptych.data.folders import cache_folder, state_folder
from diptych.errors import InvalidInputError, UntrustedRootError
from tests.doubles import ToyRetriever


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(folder / f"{number}.png")
    return folder


@pytest.fixture
def copied(pictures: Path, tmp_path: Path) -> Path:
    """A collection with its pictures, copied to another place."""
    with Collection.create(pictures / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        assert made.refresh().added == 3
        made.add([Record(captions=["a text"])])
    return Path(shutil.copytree(pictures, tmp_path / "copied"))


def opened(folder: Path, **options: Any) -> Collection:
    return Collection.open(folder / ".diptych", load_retriever=ToyRetriever.load, **options)


def refusal(collection: Collection, item: Item) -> str:
    with pytest.raises(OriginalError) as caught:
        collection.open_original(item)
    return caught.value.kind


def test_a_copied_collection_is_searched_without_its_files(copied: Path) -> None:
    with opened(copied) as collection:
        assert not collection.is_root_trusted
        assert len(collection.search("a picture", 3)) == 3
        assert collection.add([Record(captions=["another text"])]).added == 1
        for use in (
            collection.refresh,
            collection.remove_missing,
            lambda: collection.add(copied / "0.png"),
            lambda: collection.open_original(collection["0.png"]),
        ):
            with pytest.raises(UntrustedRootError, match=r"made elsewhere.*diptych index FOLDER .*--root FOLDER"):
                use()
        exported = collection.export_pictures(copied / "exported", [collection["0.png"]])
        assert not list(copied.glob("exported/*.png")), exported


def test_a_root_is_named_once(copied: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(copied, tmp_path / "moved", ignore=shutil.ignore_patterns(".diptych")))
    with opened(copied, root=moved) as collection:
        assert collection.refresh().unchanged == 3
    with opened(copied) as collection:
        assert (collection.root, collection.is_root_trusted) == (moved, True)
        assert collection.open_original(collection["0.png"]).read() == (moved / "0.png").read_bytes()


def test_a_restored_backup_opens_files_below_the_root_that_was_named(copied: Path, tmp_path: Path) -> None:
    backup = backup_collection(copied / ".diptych", tmp_path / "backup").target
    without = restore_collection(backup, tmp_path / "without")
    named = restore_collection(backup, tmp_path / "named", root=copied)
    assert (without.is_root_trusted, named.is_root_trusted) == (False, True)
    with pytest.raises(InvalidInputError, match="whole file system"):
        restore_collection(backup, tmp_path / "third", root="/")
    assert not (tmp_path / "third").exists()


def test_some_folders_are_no_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("DIPTYCH_DATA", raising=False)
    collection = tmp_path / "photos" / ".diptych"
    (tmp_path / "root").symlink_to("/")
    refused = ["/", tmp_path / "root", tmp_path / ".ssh", tmp_path / ".config" / "x", state_folder(), collection]
    for root in (*refused, collection / "store", state_folder() / "sessions", cache_folder()):
        assert refused_root(collection, root), root
        with pytest.raises(InvalidInputError, match="name the folder that holds the pictures"):
            Collection.create(collection, ToyRetriever(), root=root)
    for root in (tmp_path, tmp_path / "photos", cache_folder() / "scenes"):
        assert not refused_root(collection, root), root


def test_only_recorded_pictures_below_the_root_are_opened(copied: Path, tmp_path: Path) -> None:
    with opened(copied, root=copied) as collection:
        zero, one = collection["0.png"], collection["1.png"]
        (text,) = (item for item in collection if item.path is None)
        assert refusal(collection, text) == "no-picture"
        assert collection.open_original(zero).read() == (copied / "0.png").read_bytes()
        (copied / "0.png").rename(tmp_path / "outside.png")
        assert refusal(collection, zero) == "original-gone"
        (copied / "0.png").symlink_to(tmp_path / "outside.png")
        assert refusal(collection, zero) == "outside-the-collection"
        (copied / "1.png").unlink()
        os.mkfifo(copied / "1.png")
        assert refusal(collection, one) == "original-gone"
        (copied / "1.png").unlink()
        shutil.copy(copied / "2.png", copied / "1.png")
        assert refusal(collection, one) == "original-changed"
        (copied / "notes.txt").write_text("no picture")
        collection.add(Record(copied / "notes.txt"))
        assert refusal(collection, collection["notes.txt"]) == "no-picture"
