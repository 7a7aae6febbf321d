"""A collection whose last changes were torn is brought back to what is whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diptych.collection import Collection, CollectionError, Record, go_back
from diptych.collection.storage.ledger import version_of
from tests.doubles import ToyRetriever


def newest_manifest(folder: Path, table: str) -> Path:
    versions = (folder / "store" / f"{table}.lance" / "_versions").glob("*.manifest")
    return max(versions, key=lambda path: version_of(path.name) or 0)


def cut_manifest(folder: Path) -> None:
    manifest = newest_manifest(folder, "items")
    manifest.write_bytes(manifest.read_bytes()[:20])


def empty_manifest(folder: Path) -> None:
    newest_manifest(folder, "captions").write_bytes(b"")


def zero_manifest(folder: Path) -> None:
    # As if nobody had ever noted it, so that no checksum tells.
    (folder / "store" / "ledger.jsonl").unlink()
    manifest = newest_manifest(folder, "items")
    manifest.write_bytes(bytes(manifest.stat().st_size))


def zero_data(folder: Path) -> None:
    newest = max((folder / "store" / "items.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(bytes(newest.stat().st_size))


def lose_points(folder: Path) -> None:
    for table in (folder / "store").glob("points_*.lance"):
        newest_manifest(folder, table.stem).unlink()
        for data in (table / "data").iterdir():
            data.write_bytes(b"")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "collection"
    options = {"load_retriever": ToyRetriever.load, "durability": "process"}
    with Collection.create(folder, ToyRetriever(), root=folder.parent, **options) as collection:
        for number in range(4):
            collection.add([Record(captions=[f"text {number}", f"words {number}"], id=str(number))])
    return folder


@pytest.fixture
def written(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "collection"))


@pytest.mark.parametrize("tear", [cut_manifest, empty_manifest, zero_manifest, zero_data, lose_points])
def test_what_was_torn_goes_back_to_what_is_whole(written: Path, tear: Callable[[Path], None]) -> None:
    tear(written)
    lost = go_back(written)
    assert lost
    assert all("lost" in line or "made anew" in line for line in lost)
    with Collection.open(written, load_retriever=ToyRetriever.load) as collection:
        assert collection.repair().is_whole
        kept = sorted(item.id for item in collection)
        # The first ones, as many as there were, and all of what can be made again.
        assert kept == [str(number) for number in range(len(kept))]
        assert len(kept) >= (4 if tear is lose_points else 2)
        assert collection["1"].captions == ("text 1", "words 1")
        assert collection.search("words 1", 1, target="texts")[0].id == "1"
        collection.add([Record(captions=["later"], id="later")])
        assert collection.verify().is_whole
    assert list((written / "gone-back").rglob("*.manifest"))


def test_what_is_whole_stays_as_it_is(written: Path) -> None:
    assert go_back(written) == []
    with Collection.open(written, load_retriever=ToyRetriever.load) as collection:
        assert collection.repair().is_whole
        assert len(collection) == 4


def test_where_nothing_is_whole_everything_stays_as_it_was_found(written: Path) -> None:
    for manifest in (written / "store" / "items.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    before = sorted(str(path) for path in (written / "store").rglob("*"))
    with pytest.raises(CollectionError, match="no version of items"):
        go_back(written)
    assert sorted(str(path) for path in (written / "store").rglob("*")) == before
