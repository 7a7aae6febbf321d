"""The words in pictures are read, and their boxes lie where they were painted."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from diptych.collection.sought_words import folded_words
from diptych.data.sample_photographs import sample_photographs
from diptych.encoders.image.picture_parts import PictureTextReader
from tests.doubles.painted_words import paint, words_of
from tests.doubles.signs import plain_sign

pytest.importorskip("rapidocr")


@pytest.fixture(scope="module")
def reader() -> PictureTextReader:
    return PictureTextReader()


def test_nearly_all_words_of_painted_pictures_are_read(reader: PictureTextReader) -> None:
    n_words = n_found = 0
    for seed in (0, 4, 8):
        found = set(folded_words(reader.read(paint(seed)).text))
        wanted = [word.lower() for word in words_of(seed).words]
        n_words += len(wanted)
        n_found += sum(word in found for word in wanted)
    assert n_found >= 0.95 * n_words


def test_boxes_lie_on_their_words(reader: PictureTextReader) -> None:
    sign, boxes = plain_sign(["OPEN", "Kaliso 4711"])
    found = reader.read(sign)
    assert found.text.splitlines() == ["OPEN", "Kaliso 4711"]
    assert [word.text for word in found.words] == ["OPEN", "Kaliso", "4711"]
    for word, (left, top, right, bottom) in zip(found.words, boxes, strict=True):
        corners = np.array(word.corners)
        centre = corners.mean(axis=0) * sign.size
        assert left < centre[0] < right
        assert top < centre[1] < bottom
        assert corners.min() >= 0
        assert corners.max() <= 1


def test_a_turned_photograph_is_read_upright(reader: PictureTextReader) -> None:
    sign, _ = plain_sign(["OPEN"])
    turned = sign.transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.info["exif"] = exif.tobytes()
    assert reader.read(turned).text == "OPEN"


def test_a_lone_letter_is_no_text(reader: PictureTextReader) -> None:
    assert reader.read(plain_sign(["X"])[0]).words == ()


def test_a_photograph_without_text_has_none(reader: PictureTextReader) -> None:
    """The networks look at shapes there and refuse what they read."""
    photograph = next(photo.path for photo in sample_photographs() if photo.path.name == "cat.jpg")
    assert reader.read(photograph).text == ""
