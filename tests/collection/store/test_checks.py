"""Damage is found wherever it lies, and what can be made again is."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from diptych.collection.item import Item
from diptych.collection.store.models import active_model
from diptych.collection.store.opening import create_store, open_store
from diptych.collection.store.points import encoder_id, point_table, put_features, put_points
from diptych.collection.store.sqlite import DATABASE
from diptych.collection.store.store import Store
from diptych.collection.store.writing import content_ids, put_items, put_picture_texts, put_thumbnails
from diptych.collection.upkeep.checks import CHECKED, repair, verify
from diptych.encoders.image.picture_parts import PictureText
from diptych.errors import CollectionError
from tests.collection.store.rows import add_model

HASHES = [f"{number:064x}" for number in range(40)]


def fill(store: Store) -> int:
    """Store items with all that belongs to them, and return their search model."""
    items = [
        Item(
            id=f"item {number}",
            path=f"Éa/{number}.jpg",
            content_hash=content,
            labels=("sea", "ß"),
            metadata={"n": number / 3, "of": {"x": None}},
            captions=(f"a dog {number}", "the sea"),
            caption_ids=(f"{number} 0", f"{number} 1"),
        )
        for number, content in enumerate(HASHES)
    ]
    store.write(lambda db: put_items(db, items))
    store.write(lambda db: put_items(db, items[:9]))
    model = store.write(lambda db: add_model(db, 8))
    rows = np.random.default_rng(0).normal(size=(len(HASHES), 8))

    def put(db):  # type: ignore[no-untyped-def]
        contents = list(content_ids(db, HASHES, 0).values())
        put_thumbnails(db, {content: bytes(rows[0]) * 9 for content in contents})
        put_picture_texts(db, {content: PictureText("stop") for content in contents})
        put_points(db, model, "image", contents, rows)
        put_features(db, encoder_id(db, "f", "image", 8), contents, rows)

    store.write(put)
    return model


CHANGES = {
    "item": "UPDATE item SET metadata = '{}' WHERE id = 7",
    "caption": "UPDATE caption SET text = 'a cat' WHERE id = 7",
    "thumbnail": "UPDATE thumbnail SET jpeg = content.hash FROM content WHERE content = 7 AND content.id = 7",
    "picture_text": "UPDATE picture_text SET words = '[1]' WHERE content = 7",
    "feature": "UPDATE feature SET crc = crc + 1 WHERE content = 7",
    "point": "UPDATE {point} SET crc = crc + 1 WHERE content = 7",
}


def test_every_changed_row_is_found_and_what_can_be_made_again_is_removed(store: Store) -> None:
    model = fill(store)
    assert verify(store) == []
    table = point_table(model, "image")
    store.write(lambda db: [db.run(change.replace("{point}", table)) for change in CHANGES.values()])
    assert {damage.table for damage in verify(store)} == {*CHANGES, table} - {"point"}
    left = repair(store)
    assert [str(damage) for damage in left] == [
        "item Éa/6.jpg is not as it was written",
        "caption of Éa/3.jpg is not as it was written",
    ]
    with store.reading() as db:
        assert db.value(f"SELECT count(*) FROM {table}") == len(HASHES) - 1


def test_a_word_index_that_lags_is_made_again(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    fill(store)
    store.write(lambda db: db.run("DROP TRIGGER said_changed"))
    store.write(lambda db: db.run("UPDATE said SET caption_words = 'mountain' WHERE item = 20"))
    assert [damage.table for damage in verify(store)] == ["word"]
    assert repair(store) == []
    with store.reading() as db:
        assert db.value("SELECT count(*) FROM word WHERE word MATCH 'mountain'") == 0
    store.close()


def test_no_flipped_bit_changes_a_row_silently(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    fill(store)
    store.close()
    path = tmp_path / "store" / "collection.sqlite"
    whole = path.read_bytes()
    expected = contents_of(store)
    store.close()
    chosen = random.Random(1)
    seen = 0
    for _ in range(30):
        body = bytearray(whole)
        body[chosen.randrange(len(body))] ^= 1 << chosen.randrange(8)
        path.write_bytes(body)
        try:
            is_found = bool(verify(store))
        except CollectionError:
            is_found = True
        seen += is_found
        assert is_found or contents_of(store) == expected
        store.close()
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
    assert seen > 2


def contents_of(store: Store) -> list[object]:
    with store.reading() as db:
        return [db.rows(f"SELECT * FROM {table} ORDER BY {', '.join(key)}") for table, key, _ in CHECKED]


def test_flipped_bytes_of_the_description_of_tables_are_told(tmp_path: Path) -> None:
    with closing(create_store(tmp_path / "store")) as store:
        file = store.folder / DATABASE
    file.write_bytes(file.read_bytes().replace(b"image_fingerprint", b"imagf_fingerprint"))
    with closing(open_store(tmp_path / "store")) as store:
        with pytest.raises(CollectionError, match="is damaged"), store.reading() as db:
            active_model(db)
        assert "database describes model otherwise than it was made" in map(str, verify(store))
