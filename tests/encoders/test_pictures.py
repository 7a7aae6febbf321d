from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.encoders import read_picture
from diptych.errors import InvalidInputError


@pytest.fixture
def photo() -> np.ndarray:
    """Four flat quarters, so that a turned or mirrored copy cannot pass for the original."""
    picture = np.zeros((32, 48, 3), dtype=np.uint8)
    picture[:16, :24] = (200, 30, 30)
    picture[:16, 24:] = (30, 200, 30)
    picture[16:, :24] = (30, 30, 200)
    picture[16:, 24:] = (220, 220, 40)
    return picture


def assert_close(picture: np.ndarray, expected: np.ndarray, tolerance: int = 6) -> None:
    assert picture.shape == expected.shape
    inner = (slice(None), slice(None))
    assert np.median(np.abs(picture[inner].astype(int) - expected.astype(int))) <= tolerance


def test_rgb_file_and_array_agree(photo: np.ndarray, tmp_path: Path) -> None:
    Image.fromarray(photo).save(tmp_path / "photo.png")
    for source in (tmp_path / "photo.png", str(tmp_path / "photo.png"), photo, Image.fromarray(photo)):
        assert (read_picture(source) == photo).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_camera_rotation_is_undone(photo: np.ndarray, tmp_path: Path, orientation: int) -> None:
    """Store the photo as a camera held in each way would, and expect it upright."""
    undone = {
        1: photo,
        2: photo[:, ::-1],
        3: photo[::-1, ::-1],
        4: photo[::-1],
        5: photo.transpose(1, 0, 2),
        6: np.rot90(photo, 1),
        7: photo[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(photo, -1),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.ascontiguousarray(undone[orientation])).save(path, exif=exif, quality=95)
    assert_close(read_picture(path), photo)
    assert_close(read_picture(path, size=(12, 8)), read_picture(photo, size=(12, 8)), tolerance=8)


def test_transparency_lies_on_white(photo: np.ndarray, tmp_path: Path) -> None:
    alpha = np.full(photo.shape[:2], 255, dtype=np.uint8)
    alpha[:16] = 0
    transparent = np.dstack([photo, alpha])
    Image.fromarray(transparent).save(tmp_path / "photo.png")
    for source in (transparent, tmp_path / "photo.png"):
        picture = read_picture(source)
        assert (picture[:16] == 255).all()
        assert (picture[16:] == photo[16:]).all()


def test_palette_with_transparency(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((0, 0), 1)
    image.save(tmp_path / "palette.png", transparency=0)
    picture = read_picture(tmp_path / "palette.png")
    assert picture[0, 0].tolist() == [200, 100, 50]
    assert picture[1, 1].tolist() == [255, 255, 255]


def test_grey_bilevel_and_cmyk(photo: np.ndarray, tmp_path: Path) -> None:
    image = Image.fromarray(photo)
    image.convert("L").save(tmp_path / "grey.png")
    grey = read_picture(tmp_path / "grey.png")
    assert (grey == np.asarray(image.convert("L"))[..., None]).all()
    assert (read_picture(grey[:, :, 0]) == grey).all()
    assert (read_picture(grey[:, :, :1]) == grey).all()
    image.convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    assert_close(read_picture(tmp_path / "cmyk.jpg"), photo)
    image.convert("1").save(tmp_path / "bilevel.png")
    assert set(np.unique(read_picture(tmp_path / "bilevel.png"))) <= {0, 255}


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    picture = read_picture(tmp_path / "deep.png")
    assert (picture[:, :, 0].ravel() == np.arange(256)).all()


def test_floating_point_picture_is_stretched(tmp_path: Path) -> None:
    Image.fromarray(np.array([[-1.0, 0.0, 1.0]], dtype=np.float32)).save(tmp_path / "float.tif")
    assert read_picture(tmp_path / "float.tif")[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("damage", ["text", "empty", "truncated"])
def test_a_corrupt_file_is_named(photo: np.ndarray, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "broken.jpg"
    Image.fromarray(photo).save(path)
    whole = path.read_bytes()
    path.write_bytes({"text": b"not a picture", "empty": b"", "truncated": whole[: len(whole) // 2]}[damage])
    with pytest.raises(InvalidInputError, match=r"broken\.jpg cannot be read as a picture"):
        read_picture(path)


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("nowhere.jpg", r"nowhere\.jpg does not exist"),
        (np.zeros((2, 2)), "must be uint8"),
        (np.zeros((2, 2, 2), dtype=np.uint8), "1, 3 or 4 channels"),
        (np.zeros((0, 2, 3), dtype=np.uint8), "shape"),
        (7, "a path, an array of bytes or a Pillow image"),
    ],
)
def test_what_is_no_picture_is_refused(picture: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_picture(picture)
