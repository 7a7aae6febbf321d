from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from diptych.encoders import read_picture, thumbnail
from diptych.encoders.image.picture_formats import open_regular_file
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


def test_the_content_of_a_file_serves_as_well_as_its_path(photo: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    Image.fromarray(photo).save(path)
    with open_regular_file(path) as file:
        file.read()
        for source in (path.read_bytes(), file):
            assert (read_picture(source) == photo).all()
    with pytest.raises(InvalidInputError, match="a picture given as bytes cannot be read"):
        read_picture(b"nothing")


def test_the_first_frame_of_an_animation_is_taken(photo: np.ndarray, tmp_path: Path) -> None:
    frames = [Image.fromarray(photo), Image.fromarray(255 - photo)]
    for name in ("moving.gif", "moving.webp", "moving.png", "pages.tif"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], lossless=True)
        assert_close(read_picture(tmp_path / name), photo)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_rotated_tiff_is_turned_once(photo: np.ndarray, tmp_path: Path, orientation: int) -> None:
    path = tmp_path / "photo.tif"
    Image.fromarray(photo).save(path, tiffinfo={0x0112: orientation})
    turned = {
        1: photo,
        2: photo[:, ::-1],
        3: photo[::-1, ::-1],
        4: photo[::-1],
        5: photo.transpose(1, 0, 2),
        6: np.rot90(photo, -1),
        7: photo[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(photo, 1),
    }
    assert (read_picture(path) == turned[orientation]).all()


def sixteen_bit_png(values: np.ndarray) -> bytes:
    """Return a colour PNG of sixteen bits, which Pillow reads but does not write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, channels = values.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_sixteen_bit_colour_keeps_its_shades(photo: np.ndarray) -> None:
    assert (read_picture(sixteen_bit_png(photo.astype(np.uint16) * 257)) == photo).all()
    alpha = np.full((*photo.shape[:2], 1), 65535, dtype=np.uint16)
    assert (read_picture(sixteen_bit_png(np.dstack([photo.astype(np.uint16) * 257, alpha]))) == photo).all()


def sixteen_bit_tiff(values: np.ndarray) -> bytes:
    """Return an uncompressed TIFF of sixteen bits a channel, in the byte order of Intel."""
    height, width, channels = values.shape
    content = values.astype("<u2").tobytes()
    start = 8 + 2 + 12 * 9 + 4
    colours = {1: 1, 3: 2}[channels]
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, channels, 16 if channels == 1 else start),
        (259, 3, 1, 1),
        (262, 3, 1, colours),
        (273, 4, 1, start + 8),
        (277, 3, 1, channels),
        (278, 4, 1, height),
        (279, 4, 1, len(content)),
    ]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + struct.pack("<4H", *[16] * 4) + content


def test_sixteen_bit_tiff_keeps_its_shades(photo: np.ndarray) -> None:
    assert (read_picture(sixteen_bit_tiff(photo.astype(np.uint16) * 257)) == photo).all()
    grey = read_picture(sixteen_bit_tiff(photo[:, :, :1].astype(np.uint16) * 257))
    assert (grey == photo[:, :, :1]).all()


def test_values_beyond_sixteen_bits_are_stretched() -> None:
    values = np.array([[-1000, 0, 99_000]], dtype=np.int32)
    assert read_picture(Image.fromarray(values))[0, :, 0].tolist() == [0, 3, 255]
    broken = np.array([[np.nan, 1.0, 3.0, np.inf, -np.inf]], dtype=np.float32)
    assert read_picture(Image.fromarray(broken))[0, :, 0].tolist() == [0, 0, 255, 255, 0]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"])
def test_odd_modes_become_the_same_colours(photo: np.ndarray, mode: str) -> None:
    grey = np.broadcast_to(np.asarray(Image.fromarray(photo).convert("L"))[:, :, None], photo.shape)
    through = {"La": "LA", "RGBa": "RGBA", "PA": "P"}.get(mode)
    image = Image.fromarray(photo).convert(through).convert(mode) if through else Image.fromarray(photo).convert(mode)
    picture = read_picture(image)
    if mode == "1":
        assert set(np.unique(picture)) <= {0, 255}
    else:
        assert_close(picture, grey if mode in ("L", "LA", "La") else photo, tolerance=26 if "P" in mode else 6)


def test_lab_is_converted_by_its_profile() -> None:
    red = Image.new("LAB", (2, 2), (136, 208, 195))
    assert_close(read_picture(red), np.broadcast_to(np.array([255, 0, 0], dtype=np.uint8), (2, 2, 3)), tolerance=10)


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 90), st.integers(1, 90), st.just(3))),
    st.integers(1, 40),
)
def test_reading_again_with_the_same_side_changes_nothing(picture: np.ndarray, side: int) -> None:
    once = read_picture(picture, shortest_side=side)
    np.testing.assert_array_equal(read_picture(once, shortest_side=side), once)
    assert min(once.shape[:2]) >= min(side, *picture.shape[:2])
    assert min(once.shape[:2]) < 2 * side
    assert max(once.shape[:2]) <= 16 * side


def test_reading_smaller_averages_blocks() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    small = read_picture(picture, shortest_side=20)
    blocks = picture.reshape(20, 3, 30, 3, 3).mean(axis=(1, 3))
    assert small.shape == (20, 30, 3)
    assert np.abs(small - blocks).max() <= 1


def test_a_long_strip_is_shortened() -> None:
    assert read_picture(np.zeros((3, 50_000, 3), dtype=np.uint8), shortest_side=100).shape == (3, 1563, 3)
    assert read_picture(np.zeros((50_000, 3, 3), dtype=np.uint8), shortest_side=100).shape == (1563, 3, 3)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK", "I;16"])
def test_strips_give_what_the_whole_gives(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).integers(0, 256, (83, 40, 4), dtype=np.uint8)
    image = Image.fromarray(values).convert("RGB" if mode in ("P", "CMYK") else "RGBA")
    image = Image.fromarray(values[:, :, 0].astype(np.uint16) * 200) if mode == "I;16" else image.convert(mode)
    for side in (None, 7, 20):
        whole = read_picture(image, shortest_side=side)
        with monkeypatch.context() as patch:
            patch.setattr("diptych.encoders.image.picture_decoding._STRIP_PIXELS", 500)
            np.testing.assert_array_equal(read_picture(image, shortest_side=side), whole)


def test_a_large_jpeg_is_decoded_small(tmp_path: Path) -> None:
    Image.linear_gradient("L").resize((4000, 3000)).convert("RGB").save(tmp_path / "large.jpg", quality=95)
    small = read_picture(tmp_path / "large.jpg", shortest_side=100)
    assert small.shape == (125, 167, 3)
    expected = read_picture(read_picture(tmp_path / "large.jpg"), size=(167, 125))
    assert np.abs(small.astype(int) - expected).max() <= 3


def test_the_pixel_limit_is_checked_before_decoding(tmp_path: Path) -> None:
    Image.new("1", (3000, 2000)).save(tmp_path / "wide.png")
    # Cut right after the header: decoding would fail, so the limit must have been read from the header.
    (tmp_path / "wide.png").write_bytes((tmp_path / "wide.png").read_bytes()[:60])
    with pytest.raises(
        InvalidInputError, match=r"wide\.png has 3,000 × 2,000 pixels, more than the limit of 5,999,999"
    ):
        read_picture(tmp_path / "wide.png", max_pixels=5_999_999)
    with pytest.raises(InvalidInputError, match=r"more than the limit"):
        read_picture(np.zeros((10, 10), dtype=np.uint8), max_pixels=99)


@pytest.mark.parametrize("format", ["JPEG", "WEBP"])
def test_a_thumbnail_is_small_and_alike(photo: np.ndarray, format: str) -> None:
    large = photo.repeat(20, axis=0).repeat(20, axis=1)
    content = thumbnail(large, longest_side=120, format=format)
    assert len(content) < 4000
    assert_close(read_picture(content), read_picture(large, size=(120, 80)))
    assert read_picture(thumbnail(photo, format=format)).shape == photo.shape


@pytest.mark.parametrize("pixels", [np.zeros((4, 4)), np.zeros((4, 4), dtype=np.uint8), np.zeros((0, 4, 3), np.uint8)])
def test_a_thumbnail_needs_rgb_bytes(pixels: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="uint8 pixels"):
        thumbnail(pixels)
    with pytest.raises(InvalidInputError, match="longest_side"):
        thumbnail(np.zeros((4, 4, 3), dtype=np.uint8), longest_side=0)
