from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import AddReport, Collection, FolderWatcher, Record
from diptych.collection.indexing.watching import SettlingPaths
from diptych.collection.store.sqlite import WRITE_LOCK, write_lock
from tests.doubles import ToyRetriever


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


class Watch:
    """A watcher in a thread of its own, and all that it says."""

    def __init__(self, collection: Collection, **options: Any) -> None:
        self.reports: list[AddReport] = []
        self.notes: list[str] = []
        self.problems: list[BaseException] = []
        self._stop = threading.Event()
        self._watcher = FolderWatcher(collection, **{"settle": 0.05, **options})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._watcher.run(self._stop, self.reports.append, self.notes.append)
        except BaseException as problem:
            self.problems.append(problem)

    def total(self, name: str) -> int:
        values = [getattr(report, name) for report in list(self.reports)]
        return sum(value if isinstance(value, int) else len(value) for value in values)

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.problems == []


Start = Callable[..., Watch]


@pytest.fixture
def watch() -> Iterator[Start]:
    started: list[Watch] = []

    def start(collection: Collection, **options: Any) -> Watch:
        started.append(Watch(collection, **options))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def elsewhere(photos: Path, tmp_path: Path) -> Iterator[Collection]:
    """A collection that lies outside the folder of its pictures, which can then go and come back."""
    with Collection.create(
        tmp_path / "collection", ToyRetriever(), root=photos, load_retriever=ToyRetriever.load
    ) as made:
        yield made


def paths(collection: Collection) -> set[str | None]:
    return {item.path for item in collection}


@pytest.mark.parametrize("polling", [False, True])
def test_changes_of_a_folder_come_in_by_themselves(
    collection: Collection, photos: Path, tmp_path: Path, watch: Start, polling: bool
) -> None:
    following = watch(collection, polling=polling)
    wait_until(lambda: following.total("added") == 3)
    assert paths(collection) == {"a.png", "b.png", "c.png"}
    collection.update("a.png", captions=["a boat"])
    known = collection["a.png"].id

    (photos / "b.png").unlink()
    (photos / "c.png").write_text("another picture")
    (photos / "a.png").rename(photos / "renamed.png")
    (photos / "new.png").write_text("a new picture")
    album = tmp_path / "album"
    (album / "below").mkdir(parents=True)
    (album / "below" / "d.png").write_text("picture d")
    album.rename(photos / "album")
    wait_until(lambda: paths(collection) == {"c.png", "renamed.png", "new.png", "album/below/d.png"})
    # What was said about a picture stays with it under its new name.
    assert (collection["renamed.png"].id, collection["renamed.png"].captions) == (known, ("a boat",))
    wait_until(lambda: [following.total(name) for name in ("added", "updated", "renamed", "removed")] == [5, 1, 1, 1])

    (photos / "album").rename(photos / "trip")
    wait_until(lambda: "trip/below/d.png" in paths(collection))
    (photos / "trip" / "e.png").write_text("picture e")
    wait_until(lambda: "trip/e.png" in paths(collection))
    (photos / "trip").rename(album)
    wait_until(lambda: paths(collection) == {"c.png", "renamed.png", "new.png"})
    # Nothing else was looked at.
    assert following.total("unchanged") == 0


def test_what_is_being_copied_waits_until_it_keeps_still(tmp_path: Path) -> None:
    copied, whole = tmp_path / "copied.jpg", tmp_path / "whole.jpg"
    copied.write_text("ha")
    whole.write_text("whole")
    waiting = SettlingPaths(1.0)
    waiting.note([copied, whole], 0.0)
    copied.write_text("half")
    assert waiting.take(1.0) == ({}, []), "one batch for both"
    copied.write_text("half of it")
    assert list(waiting.take(3.0)[0]) == [whole], "but others do not wait for ever"
    assert waiting.take(3.9) == ({}, [])
    assert list(waiting.take(4.0)[0]) == [copied]
    assert waiting.take(9.0) == ({}, [])


def test_what_is_gone_waits_for_its_new_name(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jpg", tmp_path / "new.jpg"
    new.touch()
    waiting = SettlingPaths(1.0)
    waiting.note([old], 0.0)
    waiting.note([new], 0.5)
    assert waiting.take(1.9) == ({}, [])
    added, gone = waiting.take(2.0)
    assert (list(added), gone) == ([new], [old])


def test_a_large_burst_comes_in_batches_and_removes_last(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.jpg" for number in range(300)]
    for file in files:
        file.touch()
    waiting = SettlingPaths(1.0)
    waiting.note([tmp_path / "gone.jpg", *files], 0.0)
    first, gone = waiting.take(5.0)
    assert (len(first), gone) == (256, [])
    rest, gone = waiting.take(5.0)
    assert ([*first, *rest], gone) == (files, [tmp_path / "gone.jpg"])


def test_an_unreadable_picture_is_tried_again_when_it_changes(
    collection: Collection, photos: Path, watch: Start
) -> None:
    (photos / "old.png").write_text("bad since ever")
    known = collection.add(photos).skipped
    following = watch(collection, polling=False, skipped=known)
    (photos / "new.png").write_text("bad")
    wait_until(lambda: following.total("skipped") == 1)
    # The one that was known is no news.
    assert list(following.reports[0].skipped) == [str(photos / "new.png")]
    (photos / "new.png").write_text("good")
    wait_until(lambda: "new.png" in paths(collection))


def test_what_indexing_leaves_out_is_left_out(
    collection: Collection, photos: Path, tmp_path: Path, watch: Start
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (photos / "inner").mkdir()
    (photos / "also inner").symlink_to(photos / "inner")
    watch(collection, polling=False)
    wait_until(lambda: len(collection) == 3)
    (photos / ".hidden.png").write_text("hidden")
    (photos / ".diptych" / "own.png").write_text("our own")
    (photos / "notes.txt").write_text("no picture")
    (photos / "inner" / "x.png").write_text("picture x")
    (photos / "outer").symlink_to(outside)
    wait_until(lambda: "inner/x.png" in paths(collection))
    # A link is followed from now on; its folder is not one of those that were listened to.
    (outside / "y.png").write_text("picture y")
    wait_until(lambda: "outer/y.png" in paths(collection))
    (outside / "y.png").write_text("another y")
    (outside / "z.png").write_text("picture z")
    wait_until(lambda: "outer/z.png" in paths(collection))
    assert paths(collection) == {"a.png", "b.png", "c.png", "inner/x.png", "outer/y.png", "outer/z.png"}


def test_changes_wait_for_another_writer(collection: Collection, photos: Path, watch: Start) -> None:
    collection.add(photos)
    with write_lock(collection.folder / WRITE_LOCK):
        following = watch(collection, polling=False)
        (photos / "d.png").write_text("picture d")
        wait_until(lambda: any("another process is writing" in note for note in following.notes))
        assert "d.png" not in paths(collection)
        other = watch(collection, polling=True)
        wait_until(lambda: other.notes)
        # A request to end is heeded meanwhile.
        other.end()
    wait_until(lambda: "d.png" in paths(collection))
    assert len(following.notes) == 1


@pytest.mark.parametrize("polling", [False, True])
def test_a_folder_that_is_away_loses_nothing(
    elsewhere: Collection, photos: Path, tmp_path: Path, watch: Start, polling: bool
) -> None:
    following = watch(elsewhere, polling=polling)
    wait_until(lambda: len(elsewhere) == 3)
    photos.rename(tmp_path / "away")
    wait_until(lambda: any("is not there" in note for note in following.notes))
    # As a mount point without its disk.
    photos.mkdir()
    assert len(elsewhere) == 3
    photos.rmdir()
    (tmp_path / "away").rename(photos)
    (photos / "b.png").unlink()
    (photos / "d.png").write_text("picture d")
    wait_until(lambda: paths(elsewhere) == {"a.png", "c.png", "d.png"})
    assert following.notes[-1].endswith("is back")

    for picture in photos.glob("*.png"):
        picture.unlink()
    wait_until(lambda: "has no pictures" in following.notes[-1])
    assert len(elsewhere) == 3
    (photos / "e.png").write_text("picture e")
    wait_until(lambda: paths(elsewhere) == {"e.png"})


def test_an_item_that_was_removed_stays_away_while_its_file_does_not_change(
    collection: Collection, photos: Path, watch: Start
) -> None:
    following = watch(collection, polling=True)
    wait_until(lambda: following.total("added") == 3)
    collection.remove("a.png")
    for number in range(2):
        # Each has taken a look at the whole folder.
        (photos / f"{number}.png").write_text(f"picture {number}")
        wait_until(lambda: f"{number}.png" in paths(collection))  # noqa: B023
    assert paths(collection) == {"b.png", "c.png", "0.png", "1.png"}
    (photos / "a.png").write_text("picture a, changed")
    wait_until(lambda: "a.png" in paths(collection))
    assert following.total("removed") == 0


def test_records_and_missing_files_are_as_asked(collection: Collection, photos: Path, watch: Start) -> None:
    following = watch(
        collection,
        polling=False,
        keep_missing=True,
        make_records=lambda pictures: [Record(path, labels=[path.stem]) for path in pictures],
    )
    wait_until(lambda: len(collection) == 3)
    assert collection["a.png"].labels == ("a",)
    (photos / "a.png").unlink()
    (photos / "d.png").write_text("picture d")
    wait_until(lambda: "d.png" in paths(collection))
    (photos / "e.png").write_text("picture e")
    wait_until(lambda: "e.png" in paths(collection))
    assert "a.png" in paths(collection)
    assert following.total("removed") == 0


def test_a_name_that_is_no_unicode_ends_nothing(collection: Collection, photos: Path, watch: Start) -> None:
    following = watch(collection, polling=False)
    wait_until(lambda: len(collection) == 3)
    with suppress(OSError):
        open(os.fsencode(photos) + b"/\xff.png", "w").close()
        wait_until(lambda: following.total("skipped") == 1)
    (photos / "d.png").write_text("picture d")
    wait_until(lambda: "d.png" in paths(collection))
    assert following.notes == []


def test_a_folder_is_looked_through_where_the_system_does_not_tell(tmp_path: Path, watch: Start) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this system has no such names")
    with Collection.create(tmp_path / "collection", ToyRetriever(), load_retriever=ToyRetriever.load) as collection:
        following = watch(collection, folder=folder, polling=False)
        wait_until(lambda: any("is looked through every few seconds" in note for note in following.notes))
        (folder / "a.png").write_text("picture a")
        wait_until(lambda: following.total("skipped") == 1)
    assert len(following.notes) == 1
