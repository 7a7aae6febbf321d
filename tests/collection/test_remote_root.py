"""Pictures at an address: indexed, searched, handed out and forgotten as those of a folder are."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from PIL import Image

from diptych.collection import Collection, FolderWatcher, Record, backup_collection, restore_collection
from diptych.collection.root import OriginalError, refused_root
from diptych.data import find_pictures
from diptych.data.remote_files import RemotePath
from diptych.errors import InvalidInputError, UntrustedRootError
from tests.collection.colour_retriever import COLOURS, ColourRetriever
from tests.doubles.s3_server import s3_server


def picture(colour: str, side: int = 300) -> bytes:
    content = BytesIO()
    Image.fromarray(np.full((side, side, 3), COLOURS[colour], dtype=np.uint8)).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server():
        fsspec.filesystem("s3").mkdir("bucket")
        yield "s3://bucket"


@pytest.fixture(params=["memory", "s3"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a folder with three pictures, one of them below, and what indexing leaves out."""
    root = request.getfixturevalue("s3") if request.param == "s3" else "memory://bucket"
    address = f"{root}/{tmp_path.name}/my photos"
    for name, colour in {"red.png": "red", "trip #1/green.png": "green", "blue?.png": "blue"}.items():
        put(f"{address}/{name}", picture(colour))
    for name in (".hidden/red.png", "notes.txt", "drawing.xcf"):
        put(f"{address}/{name}", b"no picture")
    yield address
    files, name = fsspec.core.url_to_fs(address)
    files.rm(name, recursive=True)


def put(address: str, content: bytes) -> None:
    files, name = fsspec.core.url_to_fs(address)
    files.pipe(name, content)


def remove(address: str) -> None:
    files, name = fsspec.core.url_to_fs(address)
    files.rm(name)


@pytest.fixture
def create(bucket: str, tmp_path: Path) -> Callable[[], Collection]:
    options: dict[str, Any] = {"root": bucket, "load_retriever": ColourRetriever.load}
    return lambda: Collection.open_or_create(tmp_path / "collection", ColourRetriever(), **options)


def paths(collection: Collection) -> set[str | None]:
    return {item.path for item in collection}


def test_a_collection_follows_its_bucket(bucket: str, create: Callable[[], Collection]) -> None:
    with create() as collection:
        report = collection.refresh()
        assert (report.added, list(report.skipped)) == (3, [f"{bucket}/drawing.xcf"])
        assert paths(collection) == {"red.png", "trip #1/green.png", "blue?.png"}
        assert collection.path_of(collection["red.png"]) == RemotePath(f"{bucket}/red.png")
        assert collection.thumbnail("red.png") is not None
        assert collection.search("green", k=1)[0].item == collection["trip #1/green.png"]
        known = collection.update("red.png", captions=["a red square"])
    with create() as collection:
        assert collection.refresh().unchanged == 3
        put(f"{bucket}/new name.png", picture("red"))
        remove(f"{bucket}/red.png")
        # As large as the one before, within the same second.
        put(f"{bucket}/trip #1/green.png", picture("grey"))
        report = collection.refresh()
        assert (report.renamed, report.updated, report.unchanged) == (1, 1, 1)
        assert collection["new name.png"].id == known.id
        assert collection.search("grey", k=1)[0].item == collection["trip #1/green.png"]
        remove(f"{bucket}/blue?.png")
        assert collection.remove_missing() == ["blue?.png"]
        assert collection.add(f"{bucket}/trip #1").unchanged == 1
        assert collection.verify().is_whole


def test_files_are_handed_out_that_are_what_was_indexed(
    bucket: str, create: Callable[[], Collection], tmp_path: Path
) -> None:
    with create() as collection:
        collection.refresh()
        with collection.open_original(collection["red.png"]) as file:
            assert file.read() == picture("red")
        collection.export_pictures(tmp_path / "exported.zip", list(collection))
        with zipfile.ZipFile(tmp_path / "exported.zip") as exported:
            assert picture("green") in [exported.read(name) for name in exported.namelist()]
        put(f"{bucket}/red.png", picture("grey"))
        remove(f"{bucket}/blue?.png")
        for name, kind in {"red.png": "original-changed", "blue?.png": "original-gone"}.items():
            with pytest.raises(OriginalError) as refused:
                collection.open_original(collection[name])
            assert refused.value.kind == kind


def test_points_and_thumbnails_are_made_again_from_the_bucket(create: Callable[[], Collection]) -> None:
    with create() as collection:
        collection.refresh()
        before = collection.thumbnails(["red.png"])
        collection.store.write(lambda db: db.run("DELETE FROM thumbnail"))
        assert collection.repair().is_whole
        assert collection.thumbnails(["red.png"]) == before
        other = ColourRetriever(1)
        other.image_fingerprint = other.fingerprint = "others"
        report = collection.set_retriever(other)
        assert (report.read_again, report.failures) == (3, {})


def test_nothing_is_read_for_a_collection_from_elsewhere(
    bucket: str, create: Callable[[], Collection], tmp_path: Path
) -> None:
    with create() as collection:
        collection.refresh()
        backup_collection(collection.folder, tmp_path / "backup")
    shutil.copytree(tmp_path / "collection", tmp_path / "copied")
    restore_collection(tmp_path / "backup", tmp_path / "restored")
    for place in ("copied", "restored"):
        with Collection.open(tmp_path / place, load_retriever=ColourRetriever.load) as other:
            assert str(other.root) == bucket
            for use in (other.refresh, other.remove_missing, lambda: other.open_original(other["red.png"])):
                with pytest.raises(UntrustedRootError):
                    use()
    with Collection.open(tmp_path / "restored", root=bucket, load_retriever=ColourRetriever.load) as named:
        assert named.refresh().unchanged == 3


def test_what_an_address_cannot_do_is_one_sentence(create: Callable[[], Collection], tmp_path: Path) -> None:
    with create() as collection:
        collection.refresh()
        with pytest.raises(InvalidInputError, match="cannot be watched"):
            FolderWatcher(collection)
        outside = {"memory://other/red.png", "s3://other/red.png"}
        skipped = collection.add([Record(path) for path in outside]).skipped
        assert skipped.keys() == outside
        assert all("lies outside" in reason for reason in skipped.values())
        with pytest.raises(InvalidInputError, match="nothing was removed"):
            collection.refresh(collection.root / "no such folder")
        local = tmp_path / "local.png"
        local.write_bytes(picture("grey"))
        assert collection.add(local).added == 1
        assert collection.remove_missing() == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("s3://key:secret@bucket/photos", "must not hold a password"),
        ("sftp://ann:secret@host/photos", "must not hold a password"),
        ("s3://bucket?signature=secret", "must not hold a password"),
        ("memory://a::file:///etc", "must not hold a password"),
        ("s3://bucket/photos/../other", "no address of pictures"),
        ("s3://", "no address of pictures"),
    ],
)
def test_addresses_that_are_refused_are_not_repeated(address: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=reason) as refused:
        Collection.create(tmp_path / "collection", ColourRetriever(), root=address)
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "collection").exists()


def test_the_whole_of_a_computer_is_no_root() -> None:
    assert refused_root("/photos/.diptych", "sftp://ann@host/") == "is the whole file system of a computer"
    assert refused_root("/photos/.diptych", "sftp://ann@host/photos") == ""


def test_what_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(InvalidInputError, match=r"ftp://127.0.0.1:1/photos cannot be read \(.*refused.*\); check the"):
        find_pictures("ftp://127.0.0.1:1/photos")


def test_large_files_are_read_from_disk(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.data.remote_files.IN_MEMORY_BYTES", 10)
    with RemotePath(f"{bucket}/red.png").open("rb") as file:
        assert not isinstance(file, BytesIO)
        assert file.read() == picture("red")
