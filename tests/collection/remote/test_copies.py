"""Collections in object storage: what one machine writes the others find, whatever breaks in between."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.collection import Collection, Record, backup_collection, restore_collection
from diptych.collection.remote import place as places
from diptych.collection.remote.bucket import Bucket
from diptych.collection.search import folding
from diptych.collection.storage.place import write_lock
from diptych.errors import CollectionError, InvalidInputError, StorageConflictError, StorageError
from kill_trials import ToyRetriever

Machine = Callable[..., Collection]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "FOLLOW_SECONDS", 0.2)


def until(what: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def words(number: int, about: str = "ball") -> Record:
    return Record(captions=[f"a {about} with the number {number}"], labels=[about], id=f"{about}-{number}")


def content(collection: Collection) -> dict[str, Any]:
    return {item.id: (item.captions, item.labels, item.path, item.content_hash) for item in collection}


def answers(collection: Collection) -> list[Any]:
    found = []
    for query in ("a ball", "number 3", "something else"):
        for options in ({}, {"hybrid": True}, {"filter": "label:ball"}):
            got = collection.search(query, 5, target="texts", **options)
            found.append([(answer.caption, pytest.approx(answer.score, abs=1e-5)) for answer in got])
    return found


def test_machines_find_what_a_collection_in_a_folder_finds(machine: Machine, tmp_path: Path) -> None:
    first, second = machine("first", create=True), machine("second")
    folder = Collection.create(tmp_path / "local", ToyRetriever(), root=tmp_path, load_retriever=ToyRetriever.load)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in "abc":
        (pictures / f"{name}.png").write_text(f"picture {name}")
    steps: list[Callable[[Collection], object]] = [
        lambda one: one.add([words(number) for number in range(8)]),
        lambda one: one.add([Record(pictures / f"{name}.png", id=name) for name in "abc"]),
        lambda one: one.update("ball-3", captions=["another text"], labels=["cube"]),
        lambda one: one.remove(["ball-5", "ball-6"]),
        lambda one: one.add_retriever(ToyRetriever(1)),
        lambda one: one.activate_retriever("toy 1"),
        lambda one: one.remove_retriever("toy 0"),
        lambda one: one.add([words(number, "cube") for number in range(3)]),
        lambda one: one.repair(),
        lambda one: one.albums.add("Best", ["b", "ball-1"]),
    ]
    machines = [first, second]
    for step in steps:
        step(folder)
        # Now one machine writes, now the other.
        step(machines[0])
        machines.reverse()
    expected = content(folder)
    with first, second, machine("third") as third:
        for one in (first, second, third):
            until(lambda one=one: content(one) == expected and len(one.retrievers()) == 1)
            assert answers(one) == answers(folder)
            assert one.verify().is_whole
            until(lambda one=one: [album.ids for album in one.albums] == [("b", "ball-1")])
            assert np.allclose(one.points("text")[1], folder.points("text")[1])


def test_wherever_the_storage_fails_a_change_is_there_or_it_is_not(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-th write to the storage fails, for every n, before it has taken effect or after it, by turns."""
    first, calls = machine("first", create=True), itertools.count()
    first.add([words(0)])
    fail_at, after = [10**9], [False]

    def failing(name: str) -> None:
        real = getattr(Bucket, name)

        def call(self: Bucket, *arguments: Any) -> Any:
            is_now = next(calls) == fail_at[0]
            if is_now and not after[0]:
                raise StorageError("the storage is away")
            done = real(self, *arguments)
            if is_now:
                raise StorageError("the answer was lost")
            return done

        monkeypatch.setattr(Bucket, name, call)

    for name in ("put", "create", "replace", "upload", "delete"):
        failing(name)
    before, number, is_through = content(first), 0, False
    while not is_through:
        calls, fail_at[0], after[0] = itertools.count(), number, bool(number % 2)
        number += 1
        record = words(number)
        try:
            first.update("ball-0", captions=[f"text {number}"])
            first.add([record])
            is_through = next(calls) <= fail_at[0]
        except (StorageError, CollectionError):
            pass
        fail_at[0] = 10**9
        # Whatever is there now is what another machine finds, whole, which has a copy of what was there before; and
        # this one, after it has looked.
        with machine("other") as other:
            there = content(other)
            assert there.keys() - before.keys() <= {record.id}
            assert there["ball-0"][0] in (before["ball-0"][0], (f"text {number}",))
            assert other.verify().is_whole
            until(lambda there=there: content(first) == there)
            before = there
    assert number > 10
    assert first.add([words(1, "last")]).added == 1
    with machine("new") as new:
        assert content(new) == content(first)
        assert new.verify().is_whole
    assert first.verify().is_whole
    first.close()


def test_without_the_storage_searches_go_on_and_say_so(
    machine: Machine, storage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_STALE_AFTER", 0.5)
    with machine("first", create=True) as first:
        first.add([words(number) for number in range(3)])
        with machine("second") as second:
            # To open it, or to look, may have taken longer than that on a busy machine.
            until(lambda: second.storage_away_seconds is None)
            storage.kill("s3")
            try:
                until(lambda: second.storage_away_seconds is not None)
                assert [answer.caption for answer in second.search("ball", 3, target="texts", hybrid=True)]
                away = second.status().storage_away_seconds
                assert away is not None
                # Nor is it taken to be there where another process has the copy, which may be waiting for it.
                with write_lock(second.folder.parent / "copy.lock", 60):
                    until(lambda: (second.storage_away_seconds or 0.0) > away + 1.5)
                with pytest.raises(StorageError, match="cannot be reached now"):
                    first.add([words(7)])
                # One that has a copy opens; one that has none says what to look at.
                with machine("second") as again:
                    assert content(again) == content(second)
                with pytest.raises(StorageError, match="look at the network"):
                    machine("third")
            finally:
                storage.start("s3")
            until(lambda: second.storage_away_seconds is None)
            assert content(second).keys() == {"ball-0", "ball-1", "ball-2"}
            # Worse than a storage that is gone is one that does not answer.
            storage.pause("s3")
            try:
                with pytest.raises(StorageError, match="cannot be reached now"):
                    first.add([words(7)])
            finally:
                storage.pause("s3", resume=True)
            first.add([words(8)])
            until(lambda: "ball-8" in second)


def test_a_new_machine_takes_over_the_search_files_and_fetches_features_when_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "FOLD_FROM", 40)
    monkeypatch.setattr("diptych.collection.search.live_state.FOLD_FROM", 40)
    with machine("first", create=True) as first:
        first.add([words(number) for number in range(60)])
        for segment in (first.folder / "index").glob("segment-*"):
            (segment / ".draft").mkdir()
            (segment / ".draft" / "half.npy").touch()
        first.add([words(60)])
        segments = {path.name for path in (first.folder / "index").glob("segment-*")}
        assert segments
        with machine("second") as second:
            assert list((first.folder / "index").rglob("half.npy"))
            assert not list((second.folder / "index").rglob("half.npy"))
            assert {path.name for path in (second.folder / "index").glob("segment-*")} == segments
            assert answers(second) == answers(first)
            kept = second.folder / "store"
            assert not list(kept.glob("features_*"))
            ids, rows = second.features("text")
            assert list(kept.glob("features_*"))
            assert ids == first.features("text")[0]
            assert np.array_equal(rows, first.features("text")[1])


@pytest.mark.folder
def test_a_backup_moves_a_collection_into_the_storage_and_back(
    machine: Machine, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "first"))
    monkeypatch.setattr("diptych.collection.storage.saved_retrievers.load_retriever", ToyRetriever.load)
    how: dict[str, Any] = {"load_retriever": ToyRetriever.load}
    with Collection.create(tmp_path / "local", ToyRetriever(), root=tmp_path, **how) as folder:
        folder.add([words(number) for number in range(5)])
        backup_collection(tmp_path / "local", tmp_path / "backup")
        assert restore_collection(tmp_path / "backup", address).items == 5
        with machine("second") as second:
            assert answers(second) == answers(folder)
            second.add([words(5)])
            backup_collection(address, tmp_path / "again")
        restore_collection(tmp_path / "again", tmp_path / "restored")
        with Collection.open(tmp_path / "restored", **how) as restored:
            assert content(restored).keys() == content(folder).keys() | {"ball-5"}
            assert len(restored.features("text")[0]) == 6


def test_pictures_are_shown_by_machines_that_do_not_have_them(machine: Machine, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"picture " + random.Random(0).randbytes(20_000_000))
    with machine("first", create=True) as first, machine("second") as second:
        first.add(picture)
        until(lambda: "a.png" in second)
        content = picture.read_bytes()
        picture.unlink()
        stored = second.original(second["a.png"])
        assert stored is not None
        with stored:
            assert stored.read() == content


def test_what_was_written_twice_because_an_answer_was_lost_counts_once(address: str) -> None:
    bucket = Bucket(address)
    tag = bucket.create("object", b"one")
    assert bucket.create("object", b"one") == tag
    with pytest.raises(StorageConflictError):
        bucket.create("object", b"two")
    newer = bucket.replace("object", b"two", tag)
    assert bucket.replace("object", b"two", tag) == newer
    with pytest.raises(StorageConflictError):
        bucket.replace("object", b"three", tag)
    assert bucket.get("object") == (b"two", newer)
    bucket.delete(["object", "not there"])
    assert bucket.get("object") is None


def test_a_tag_is_the_same_however_it_is_asked_for(address: str) -> None:
    bucket = Bucket(address)
    tag = bucket.create("folder/name", b"one")
    assert tag == bucket.list("folder/")["folder/name"].tag
    assert (b"one", tag) == bucket.get("folder/name")
    facts = bucket.facts("folder/name")
    assert facts is not None
    assert facts.tag == tag
    later = bucket.replace("folder/name", b"two", tag)
    assert later != tag
    with pytest.raises(StorageConflictError):
        bucket.replace("folder/name", b"three", tag)
    with pytest.raises(StorageConflictError):
        bucket.create("folder/name", b"three")
    assert bucket.get("folder/name") == (b"two", later)


def test_addresses_that_cannot_be_are_refused(
    address: str, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="s3://BUCKET/NAME"):
        Collection.open("s3://bucket")
    with pytest.raises(InvalidInputError, match="environment"):
        Collection.open("s3://key:secret@bucket/name")
    with pytest.raises(CollectionError, match="is not a collection"):
        Collection.open(address)
    machine("first", create=True).close()
    with pytest.raises(CollectionError, match="is a collection already"):
        Collection.create(Path(address), ToyRetriever())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "YW5vdGhlcg==")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    with pytest.raises(StorageError, match="credentials"):
        Collection.open(address)
