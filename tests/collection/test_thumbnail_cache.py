from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from PIL import Image

from diptych.collection import Collection
from diptych.collection.browse import thumbnail_cache
from diptych.collection.browse.thumbnail_cache import Thumbnails
from diptych.collection.storage.store import Store
from tests.doubles import ToyRetriever


def test_thumbnails_are_found_wherever_their_rows_move(tmp_path: Path) -> None:
    writer = Store(tmp_path)
    writer.prepare()
    thumbnails = Thumbnails(lambda: Store(tmp_path))
    assert thumbnails.get(["a-1"]) == {}
    for letter in "abc":
        writer.add_thumbnails({f"{letter}-{number}": f"{letter}{number}".encode() for number in range(20)})
    assert thumbnails.get(["a-1", "nothing", "c-7"]) == {"a-1": b"a1", "c-7": b"c7"}
    writer.delete_rows("thumbnails", [f"a-{number}" for number in range(10)])
    writer.compact(everything=True)
    writer.add_thumbnails({"new": b"new"})
    assert thumbnails.get(["a-1", "c-7"]) == {"a-1": b"a1", "c-7": b"c7"}
    assert thumbnails.get(["a-2", "a-15", "b-3", "new"]) == {"a-15": b"a15", "b-3": b"b3", "new": b"new"}


def test_the_first_to_ask_all_get_an_answer(tmp_path: Path) -> None:
    """Many threads find at once that nothing is known yet; one looks, and all must profit."""
    writer = Store(tmp_path)
    writer.prepare()
    writer.add_thumbnails({str(number): str(number).encode() for number in range(40)})
    with ThreadPoolExecutor(16) as threads:
        for _ in range(10):
            thumbnails = Thumbnails(lambda: Store(tmp_path))
            start = Barrier(16)

            def ask(number: int, thumbnails: Thumbnails = thumbnails, start: Barrier = start) -> dict[str, bytes]:
                start.wait()
                return thumbnails.get([str(number)])

            assert list(threads.map(ask, range(16))) == [{str(number): str(number).encode()} for number in range(16)]


def test_thumbnails_of_many_items(photos: Path, collection: Collection) -> None:
    for name, colour in (("red", "#f00"), ("blue", "#00f")):
        Image.new("RGB", (400, 300), colour).save(photos / f"{name}.png")
    collection.add(photos)
    red, nothing, blue, again = collection.thumbnails(["red.png", "a.png", "blue.png", "red.png"])
    assert nothing is None
    assert red is not None
    assert red.startswith(b"\xff\xd8")
    assert red == again == collection.thumbnail("red.png")
    assert red != blue
    reader = Collection.open(collection.folder, load_retriever=ToyRetriever.load)
    assert reader.thumbnail("blue.png") == blue


def test_what_is_kept_in_memory_stays_within_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnail_cache, "_LARGEST_CACHE", 10)
    writer = Store(tmp_path)
    writer.prepare()
    pictures = {**{str(number): bytes(3) for number in range(7)}, "large": bytes(11)}
    writer.add_thumbnails(pictures)
    thumbnails = Thumbnails(lambda: writer)
    for _ in range(2):
        assert thumbnails.get(pictures) == pictures
        assert 0 < thumbnails._kept.currsize <= 10
