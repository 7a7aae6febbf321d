"""Points and features come back as they were stored, by content."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.collection.store.dialect import Connection
from diptych.collection.store.points import (
    PointForm,
    drop_point_tables,
    encoder_id,
    missing_points,
    point_crc,
    point_table,
    prune_contents,
    put_features,
    put_points,
    read_features,
    read_points,
    remove_points,
)
from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError
from tests.collection.store.rows import add_caption, add_content, add_item, add_model

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("form", ["f16", "bits"])
def test_points_come_back_by_content_and_part(store: Store, form: PointForm) -> None:
    dtype = np.float16 if form == "f16" else np.uint8
    rows = RNG.integers(0, 256, (5, 16)).astype(dtype)

    def job(db: Connection) -> None:
        model = add_model(db, 16, form)
        put_points(db, model, "region", [7, 3, 3, 7, 5], rows, [1, 0, 1, 0, 0])
        contents, parts, vectors = read_points(db, model, "region")
        assert contents.tolist() == [3, 3, 5, 7, 7]
        assert parts.tolist() == [0, 1, 0, 0, 1]
        assert np.array_equal(vectors, rows[[1, 2, 4, 3, 0]])
        contents, _, vectors = read_points(db, model, "region", [5, 99, 3])
        assert contents.tolist() == [3, 3, 5]
        assert np.array_equal(vectors, rows[[1, 2, 4]])
        assert len(read_points(db, model, "region", [])[0]) == 0 == len(read_points(db, model, "image")[0])
        put_points(db, model, "region", [3], rows[:1])
        assert read_points(db, model, "region", [3])[1].tolist() == [0]
        remove_points(db, model, "region", [3, 7])
        assert read_points(db, model, "region")[0].tolist() == [5]
        crc = db.value(f"SELECT crc FROM {point_table(model, 'region')}")
        assert crc == point_crc(5, 0, rows[4].tobytes())
        drop_point_tables(db, model)

    store.write(job)


def test_coordinates_that_float16_has_not_are_refused(store: Store) -> None:
    def job(db: Connection) -> None:
        put_points(db, add_model(db, 2), "image", [1], np.array([[1.0, 1e6]]))

    with pytest.raises(InvalidInputError, match="65504"):
        store.write(job)


def test_contents_of_live_items_and_captions_lack_points_and_features(store: Store) -> None:
    def job(db: Connection) -> None:
        model, encoder = add_model(db, 2), encoder_id(db, "print", "image", 3)
        assert encoder_id(db, "print", "image", 3) == encoder != encoder_id(db, "print", "text", 3)
        pictures, unused = [add_content(db) for _ in range(3)], add_content(db)
        items = [add_item(db, content) for content in [*pictures, pictures[0], None]]
        words = add_content(db, kind=1)
        add_caption(db, items[0], words)
        assert missing_points(db, model, "image").tolist() == pictures == missing_points(db, model, "region").tolist()
        put_points(db, model, "image", [pictures[1], unused], np.ones((2, 2)))
        features = RNG.standard_normal((2, 3)).astype(np.float32)
        put_features(db, encoder, [pictures[2], unused], np.zeros((2, 3)))
        put_features(db, encoder, [unused, pictures[2]], features)
        assert missing_points(db, model, "image").tolist() == [pictures[0], pictures[2]]
        assert missing_points(db, model, "text").tolist() == [words]
        contents, rows = read_features(db, encoder, [unused, *pictures])
        assert contents.tolist() == [pictures[2], unused]
        assert np.array_equal(rows, features[::-1])
        assert np.array_equal(read_features(db, encoder, [unused, 99])[1], features[:1])
        assert prune_contents(db, [*pictures, words, unused]) == 1
        assert read_points(db, model, "image")[0].tolist() == [pictures[1]]
        assert read_features(db, encoder, [unused, *pictures])[0].tolist() == [pictures[2]]

    store.write(job)
