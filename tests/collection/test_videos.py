"""Videos in a collection: an item for each moment, found by what it shows, kept up to date with the file."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection import AddReport, Collection, FolderWatcher, Query, Record
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA
from diptych.retriever import Retriever
from tests.doubles.picture_samples import picture, write_video


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    pairs = load_dataset("scenes", n_train=60, n_test=10, size=32).train
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(n_components=20)}
    return Retriever(model=CCA(n_components=8), cache=False, **parts).fit(pairs, baseline=None)


@pytest.fixture
def videos(retriever: Retriever, tmp_path: Path) -> Iterator[Collection]:
    folder = tmp_path / "films"
    folder.mkdir()
    write_video(folder / "clip.mp4", [picture(1), picture(2), picture(3)], seconds=3)
    picture(4).save(folder / "still.png")
    with Collection.create(folder / ".diptych", retriever) as made:
        made.add(folder)
        yield made


def seconds_of(collection: Collection, name: str = "clip.mp4") -> list[int]:
    found = [item for item in collection if (path := collection.path_of(item)) and path.name == name]
    return sorted(int(item.seconds or 0) for item in found)


def test_each_moment_is_found_by_what_it_shows(videos: Collection) -> None:
    assert seconds_of(videos) == [0, 3, 6]
    for number, place in ((1, 0), (2, 3), (3, 6)):
        answer = videos.search(Query.picture(picture(number)), k=1)[0]
        assert answer.path == videos.root / "clip.mp4"
        assert int(answer.seconds or 0) == place
        shown = videos.thumbnail(answer.id)
        assert shown is not None
        item = videos[answer.id]
        assert (item.width, item.height) == picture(number).size
    assert videos.search(Query.picture(picture(4)), k=1)[0].seconds is None
    # A moment has a name of its own, by which it is a query too.
    moment = next(item for item in videos if item.seconds and item.seconds > 5)
    assert videos[moment.path or ""].id == moment.id
    assert len({item.content_hash for item in videos}) == 4


def test_what_is_said_of_a_video_holds_for_its_moments(videos: Collection) -> None:
    path = videos.root / "clip.mp4"
    report = videos.add([Record(path, captions=["a holiday"], labels=["sea"], metadata={"year": 2026})])
    assert report.updated == 3
    moments = [item for item in videos if item.seconds is not None]
    assert {item.labels for item in moments} == {("sea",)}
    assert [item.metadata for item in moments] == [{"year": 2026}] * 3
    # A text that all of them had would be found three times.
    assert sorted(item.captions for item in moments) == [(), (), ("a holiday",)]
    assert videos.add([path]).unchanged == 1


def test_a_video_that_changes_its_name_or_content_keeps_what_stays(videos: Collection) -> None:
    before = {item.seconds: item.id for item in videos}
    (videos.root / "clip.mp4").rename(videos.root / "film.mp4")
    report = videos.add(videos.root)
    assert (report.renamed, report.added, report.unchanged) == (3, 0, 1)
    assert {item.seconds: item.id for item in videos} == before
    assert videos.remove_missing() == []
    write_video(videos.root / "film.mp4", [picture(1), picture(2)], seconds=3)
    report = videos.add(videos.root)
    assert (report.updated, report.added) == (2, 0)
    assert [path.partition("#")[0] for path in report.removed] == ["film.mp4"]
    assert seconds_of(videos, "film.mp4") == [0, 3]
    (videos.root / "film.mp4").unlink()
    assert len(videos.remove_missing()) == 2
    assert len(videos) == 1


def test_a_change_of_retriever_reads_every_moment_again(videos: Collection, retriever: Retriever) -> None:
    pairs = load_dataset("scenes", n_train=60, n_test=10, size=32).train
    parts = {"image_encoder": ColourEdgeHistograms(size=48), "text_encoder": TfidfTopics(n_components=20)}
    other = Retriever(model=CCA(n_components=8), cache=False, **parts).fit(pairs, baseline=None)
    report = videos.set_retriever(other)
    assert report.failures == {}
    assert videos.status().pictures == 4
    assert int(videos.search(Query.picture(picture(3)), k=1)[0].seconds or 0) == 6


def test_a_damaged_video_is_named_and_costs_no_other(videos: Collection) -> None:
    content = (videos.root / "clip.mp4").read_bytes()
    (videos.root / "broken.mp4").write_bytes(content[:200])
    shutil.copyfile(videos.root / "clip.mp4", videos.root / "copy.mp4")
    report = videos.add(videos.root)
    assert [Path(path).name for path in report.skipped] == ["broken.mp4"]
    assert report.added == 3
    assert len(report.duplicates) == 3


def test_a_watched_folder_follows_videos_and_names_what_cannot_be_read(videos: Collection) -> None:
    stop, told = threading.Event(), list[AddReport]()
    watcher = FolderWatcher(videos, settle=0.05, polling=False)

    def hear(report: AddReport) -> None:
        told.append(report)
        if report.removed:
            stop.set()
        elif any(path.endswith(".jxl") for path in report.skipped):
            os.remove(videos.root / "clip.mp4")

    thread = threading.Thread(target=watcher.run, args=(stop, hear))
    thread.start()
    (videos.root / "new.jxl").write_bytes(b"\xff\x0a")
    for _ in range(60):
        if not thread.is_alive():
            break
        # The folder is listened to a moment after the thread has begun, and a file that changes is waited for.
        thread.join(1.0)
        if not told:
            os.utime(videos.root / "new.jxl")
    stop.set()
    thread.join()
    assert [len(report.removed) for report in told][-1] == 3
    assert seconds_of(videos) == []
    assert [item.path for item in videos] == ["still.png"]
