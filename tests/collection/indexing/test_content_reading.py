"""Texts in pictures and regions: each content is read once, and what was read survives an interruption."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.collection.indexing.add_report import AddProgress
from diptych.collection.indexing.content_reading import (
    RegionReading,
    TextReading,
    blend_with_whole_image,
    remove_regions,
)
from diptych.collection.item import Record
from diptych.collection.store.models import active_model
from diptych.collection.store.points import read_points
from diptych.collection.store.store import Store
from diptych.encoders.image.picture_parts import REGIONS, PictureText, PictureWord, read_regions
from diptych.errors import InvalidInputError
from tests.collection.colour_retriever import COLOURS, ColourRetriever

from .conftest import Indexed


class NameReader:
    """Says that every picture holds its own name, and counts what it is asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def prepare(self) -> None:
        pass

    def read(self, picture: Path) -> PictureText:
        self.names.append(picture.name)
        if picture.name == "c.png":
            raise InvalidInputError("it is too dark")
        return PictureText(f"sign {picture.stem}", (PictureWord(picture.stem, ((0, 0), (1, 0), (1, 1), (0, 1))),))


def stop(_: AddProgress) -> None:
    raise KeyboardInterrupt


def test_each_content_is_read_once(indexed: Indexed, photos: Path) -> None:
    shutil.copy(photos / "a.png", photos / "copy.png")
    indexed.changes.add([photos, Record(captions=["a text"])], None)
    reader = NameReader()
    with pytest.raises(KeyboardInterrupt):
        TextReading(indexed.store, indexed.root, reader).run(stop)  # type: ignore[arg-type]
    report = TextReading(indexed.store, indexed.root, reader).run()  # type: ignore[arg-type]
    assert reader.names == ["a.png", "b.png", "c.png"]
    assert (report.known, report.read, report.with_text, report.skipped) == (1, 1, 1, {"c.png": "it is too dark"})
    with indexed.store.reading() as db:
        rows = db.rows("SELECT path, picture FROM said JOIN item ON item.id = item WHERE kind = 0 ORDER BY path")
    assert [row for row in rows if row[0]] == [
        ("a.png", "sign a"),
        ("b.png", "sign b"),
        ("c.png", ""),
        ("copy.png", "sign a"),
    ]


def test_regions_are_the_points_of_parts(store: Store, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shades = np.array(list(COLOURS.values()), dtype=np.uint8)
    for name in "ab":
        Image.fromarray(shades[rng.integers(4, size=(40, 40))]).save(tmp_path / f"{name}.png")
    indexed = Indexed(store, tmp_path)
    indexed.add_model(ColourRetriever(), "active")
    indexed.changes.add(sorted(tmp_path.glob("*.png")), None)
    with pytest.raises(KeyboardInterrupt):
        RegionReading(store, indexed.root, indexed.sources()[0]).run(stop)
    report = RegionReading(store, indexed.root, indexed.sources()[0]).run()
    assert (report.known, report.read) == (1, 1)
    with store.reading() as db:
        model = active_model(db)
        contents, parts, points = read_points(db, model.id, "region")
        first = db.value("SELECT content FROM item WHERE path = 'a.png'")
        points_of_images = read_points(db, model.id, "image", [first])[2]
    assert model.has_regions
    assert parts.tolist() == 2 * list(range(len(REGIONS)))
    expected = ColourRetriever().encode_images(read_regions(tmp_path / "a.png"))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    expected = blend_with_whole_image(expected, points_of_images[0].astype(np.float32))
    np.testing.assert_allclose(points[contents == first].astype(np.float32), expected, atol=1e-3)
    store.write(lambda db: remove_regions(db, model))
    with store.reading() as db:
        assert not active_model(db).has_regions
        assert len(read_points(db, model.id, "region")[0]) == 0
