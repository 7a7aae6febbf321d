from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.collection.indexing.file_facts import FileFacts, FileRequest, file_facts, hashed_file, read_files
from diptych.encoders import EfficientNetLite, FeatureCache, read_picture
from diptych.encoders.feature_cache import item_key
from diptych.encoders.image.reading_once import HashedFile, Square, hashed_path, held_square, read_alike
from diptych.errors import InvalidInputError

SIZES = [
    (50, 40),
    (500, 375),
    (518, 518),
    (519, 700),
    (779, 1100),
    (1037, 1200),
    (1039, 1040),
    (2100, 2080),
    (300, 5000),
]


def picture(size: tuple[int, int], path: Path) -> Path:
    rng = np.random.default_rng(sum(size))
    Image.fromarray(rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC).save(path)
    return path


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_one_reading_gives_the_pixels_of_another_where_it_says_so(
    size: tuple[int, int], ending: str, tmp_path: Path
) -> None:
    path = picture(size, tmp_path / f"a.{ending}")
    read = read_picture(path, shortest_side=260)
    for side in (260, 258, 200, 128):
        if read_alike(size, 260, side):
            np.testing.assert_array_equal(read, read_picture(path, shortest_side=side))


@pytest.mark.parametrize("size", SIZES)
def test_squares_are_those_that_networks_would_cut_themselves(size: tuple[int, int], tmp_path: Path) -> None:
    path = picture(size, tmp_path / "a.jpg")
    encoders = [
        EfficientNetLite(network="lite0", pixels=side, crop=crop) for side in (200, 260) for crop in ("whole", "centre")
    ]
    facts = file_facts(FileRequest(path, squares=tuple(encoder.square for encoder in encoders)))
    assert encoders[-1].square in facts.squares
    file = hashed_file(path, facts)
    for encoder in encoders:
        cut, expected = encoder.prepare(file), encoder.prepare(path)
        np.testing.assert_array_equal(cut, expected)
        assert (cut is facts.squares.get(encoder.square)) == (encoder.square in facts.squares)


def test_processes_read_what_threads_read(tmp_path: Path) -> None:
    squares = (Square(240), Square(200, "centre"))
    paths = [picture(size, tmp_path / f"{number}.jpg") for number, size in enumerate(SIZES)]
    (tmp_path / "text.jpg").write_text("no picture")
    requests = [
        FileRequest(path, squares=squares) for path in (*paths, tmp_path / "text.jpg", tmp_path / "nowhere.jpg")
    ]
    for expected, found in zip(read_files(requests), read_files(requests, in_processes=True), strict=True):
        if isinstance(expected, InvalidInputError):
            assert str(found) == str(expected)
            continue
        assert isinstance(found, FileFacts)
        assert found == expected
        assert found.squares.keys() == expected.squares.keys()
        assert bool(found.squares) == (found.width > 0)
        for square, pixels in expected.squares.items():
            np.testing.assert_array_equal(found.squares[square], pixels)


def test_a_path_made_from_one_knows_nothing(tmp_path: Path) -> None:
    square = Square(40)
    squares = {square: np.zeros((40, 40, 3), dtype=np.uint8)}
    file = hashed_path(picture((300, 300), tmp_path / "a.png"), None, None, squares)
    other = picture((40, 40), tmp_path / "b.png")
    assert file.with_name("b.png") == other
    assert held_square(file, square) is not None
    assert held_square(file, Square(41)) is None
    assert held_square(file.with_name("b.png"), square) is None
    assert read_picture(file).any()
    sent = pickle.loads(pickle.dumps(file))
    assert sent == Path(file)
    assert not isinstance(sent, HashedFile)


def test_features_are_kept_by_the_digest_that_a_path_brings(tmp_path: Path) -> None:
    path = picture((300, 300), tmp_path / "a.png")
    cache, encoder = FeatureCache(tmp_path / "cache"), EfficientNetLite(network="lite0", pixels=64)
    squares = {encoder.square: encoder.prepare(path)}
    file = hashed_path(path, item_key(path, "image"), path.stat(), squares)
    made = cache.encode(encoder, [file])
    np.testing.assert_array_equal(made, encoder.transform([path]))
    path.unlink()
    np.testing.assert_array_equal(cache.encode(encoder, [file]), made)
