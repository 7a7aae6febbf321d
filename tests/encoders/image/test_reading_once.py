from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.encoders import EfficientNetLite, FeatureCache, read_picture
from diptych.encoders.feature_cache import item_key
from diptych.encoders.image.reading_once import HashedFile, PictureReading, held_pixels, read_alike

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
def test_pixels_are_taken_where_reading_again_would_give_the_same(
    size: tuple[int, int], ending: str, tmp_path: Path
) -> None:
    file = HashedFile(picture(size, tmp_path / f"a.{ending}"))
    file.reading = PictureReading(read_picture(Path(file), shortest_side=260), 260, size)
    for side in (260, 258, 200, 128):
        held = held_pixels(file, side)
        assert (held is not None) == read_alike(size, 260, side)
        if held is not None:
            np.testing.assert_array_equal(held, read_picture(Path(file), shortest_side=side))
        np.testing.assert_array_equal(
            read_picture(file, shortest_side=side), read_picture(Path(file), shortest_side=side)
        )


def test_a_path_made_from_one_knows_nothing(tmp_path: Path) -> None:
    file = HashedFile(picture((300, 300), tmp_path / "a.png"))
    file.reading = PictureReading(np.zeros((300, 300, 3), dtype=np.uint8), 260, (300, 300))
    other = picture((40, 40), tmp_path / "b.png")
    assert file.with_name("b.png") == other
    assert read_picture(file.with_name("b.png"), shortest_side=260).shape == (40, 40, 3)
    assert read_picture(file).any()
    sent = pickle.loads(pickle.dumps(file))
    assert sent == Path(file)
    assert not isinstance(sent, HashedFile)


def test_features_are_kept_by_the_digest_that_a_path_brings(tmp_path: Path) -> None:
    path = picture((300, 300), tmp_path / "a.png")
    file = HashedFile(path)
    file.digest, file.status = item_key(path, "image"), path.stat()
    file.reading = PictureReading(read_picture(path, shortest_side=64), 64, (300, 300))
    cache, encoder = FeatureCache(tmp_path / "cache"), EfficientNetLite(network="lite0", pixels=64)
    made = cache.encode(encoder, [file])
    np.testing.assert_array_equal(made, encoder.transform([path]))
    path.unlink()
    np.testing.assert_array_equal(cache.encode(encoder, [file]), made)
