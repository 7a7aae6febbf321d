"""The text in pictures is read once, kept with them, found, and gone with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diptych.collection import (
    AddProgress,
    Collection,
    PictureText,
    PictureWord,
    Record,
    backup_collection,
    restore_collection,
)
from diptych.collection.indexing.content_reading import TextReading
from diptych.collection.root import Root
from diptych.collection.store.sqlite import WRITE_LOCK, write_lock
from diptych.errors import CollectionBusyError, InvalidInputError
from tests.doubles import ToyRetriever
from tests.doubles.signs import plain_sign

pytest.importorskip("rapidocr")


@pytest.fixture
def signs(photos: Path, collection: Collection) -> Collection:
    """Three signs, two of them with the same content, and a text without a picture."""
    for name, lines in {"shop": ["Kaliso 4711"], "copy": ["Kaliso 4711"], "station": ["Platform Kaliso"]}.items():
        plain_sign(lines)[0].save(photos / f"{name}.png")
    collection.add([photos / "shop.png", photos / "copy.png", photos / "station.png", Record(captions=["a text"])])
    return collection


class CountingReader:
    """Says that every picture holds its own name, and counts what it is asked for."""

    def __init__(self) -> None:
        self.read_names: list[str] = []

    def prepare(self) -> None:
        pass

    def read(self, picture: Path) -> PictureText:
        self.read_names.append(picture.name)
        if picture.name == "station.png":
            raise InvalidInputError("it is too dark")
        return PictureText(f"sign {picture.stem}", (PictureWord(picture.stem, ((0, 0), (1, 0), (1, 1), (0, 1))),))


def names(collection: Collection, words: str, **options: object) -> list[str]:
    found = collection.search(words, **options)
    return sorted(answer.path.stem for answer in found if answer.path is not None and answer.has_words)


def test_words_in_pictures_are_found_with_their_boxes(signs: Collection) -> None:
    assert names(signs, "kaliso") == []
    steps: list[AddProgress] = []
    report = signs.read_text(progress=steps.append)
    assert (report.read, report.with_text, report.known, report.skipped) == (2, 2, 0, {})
    assert [(step.done, step.total) for step in steps] == [(1, 2), (2, 2)]
    assert signs.status().texts_read == 2
    assert names(signs, "KALISO") == ["copy", "shop", "station"]
    assert names(signs, "4711") == ["copy", "shop"]
    best = signs.search('"platform kaliso"')[0]
    assert (best.path.name, best.matched_fields) == ("station.png", ("text in picture",))
    assert [word.text for word in best.picture_words] == ["Platform", "Kaliso"]
    assert not signs.search("4711").no_good_match
    assert signs.read_text().known == 2
    text = signs.picture_text("shop.png")
    assert text is not None
    assert text.text == "Kaliso 4711"
    assert all(0 <= share <= 1 for word in text.words for corner in word.corners for share in corner)


def test_reading_goes_on_where_it_was_interrupted(signs: Collection) -> None:
    reader = CountingReader()

    def stop(step: AddProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TextReading(signs.store, Root(signs.root), reader).run(stop)
    assert reader.read_names == ["shop.png"]
    report = TextReading(signs.store, Root(signs.root), reader).run()
    assert reader.read_names == ["shop.png", "station.png"]
    assert (report.known, report.read, report.skipped) == (1, 0, {"station.png": "it is too dark"})


def test_what_cannot_be_stored_yet_is_not_lost_while_another_writes(signs: Collection) -> None:
    reading = TextReading(signs.store, Root(signs.root), CountingReader())
    signs.store.write_wait = 0.05
    with write_lock(signs.folder / WRITE_LOCK), pytest.raises(CollectionBusyError):
        reading.run()
    signs.store.write_wait = 5
    assert TextReading(signs.store, Root(signs.root), CountingReader()).run().read == 1


def test_a_file_that_has_changed_is_not_read_for_another(signs: Collection, photos: Path) -> None:
    plain_sign(["Other words"])[0].save(photos / "station.png")
    report = signs.read_text()
    assert (report.read, list(report.skipped)) == (1, ["station.png"])


def test_text_goes_with_its_picture_and_stays_with_a_copy(signs: Collection) -> None:
    TextReading(signs.store, Root(signs.root), CountingReader()).run()
    signs.remove("shop.png")
    assert names(signs, "sign") == ["copy"]
    signs.remove("copy.png")
    assert signs.status().texts_read == 0
    assert signs.verify().is_whole


def test_backups_and_exports_have_the_text(signs: Collection, tmp_path: Path) -> None:
    TextReading(signs.store, Root(signs.root), CountingReader()).run()
    signs.export(tmp_path / "items.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted(row["picture_text"] for row in rows) == ["", "", "sign shop", "sign shop"]
    backup_collection(signs.folder, tmp_path / "backup")
    restored = restore_collection(tmp_path / "backup", tmp_path / "restored").target
    with Collection.open(restored, load_retriever=ToyRetriever.load) as opened:
        assert names(opened, "sign") == ["copy", "shop"]
