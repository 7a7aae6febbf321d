"""Answers as folders, zip files and galleries: whole, safe to hand on, and nothing overwritten."""

from __future__ import annotations

import io
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from diptych.collection import Collection, Record
from diptych.collection.export import PictureExport, safe_name
from diptych.data import read_captions
from diptych.errors import InvalidInputError

MARK = "secret-camera-of-mine"


def write_picture(path: Path, size: tuple[int, int] = (40, 20)) -> None:
    """A photograph that says where it was taken, turned by its camera."""
    exif = Image.Exif()
    exif[0x010F] = MARK
    exif[0x0112] = 6
    exif.get_ifd(0x8825).update({1: "N", 2: (38.0, 42.0, 0.0), 3: "W", 4: (9.0, 8.0, 0.0)})
    Image.new("RGB", size, "navy").save(path, exif=exif)


@pytest.fixture
def pictures(collection: Collection, photos: Path) -> Collection:
    write_picture(photos / "a b.jpg")
    (photos / "sub").mkdir()
    write_picture(photos / "sub" / "a b.jpg")
    collection.add(
        [
            Record(photos / "sub" / "a b.jpg", captions=['<script>alert("1")</script>'], id="two"),
            Record(photos / "a b.jpg", captions=["a boat", "at sea"], labels=["boat"], id="one"),
            Record(captions=["only words & more"], id="words"),
            Record(photos / "c.png", id="broken"),
        ]
    )
    return collection


class Links(HTMLParser):
    """What a page points to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def test_a_folder_has_the_files_as_they_are_with_captions_to_index_them(
    pictures: Collection, photos: Path, tmp_path: Path
) -> None:
    done = pictures.export_pictures(tmp_path / "out", ["one", "two", "words", "one"])
    assert (done.items, done.left_out) == (3, ())
    assert (tmp_path / "out" / "1-a_b.jpg").read_bytes() == (photos / "a b.jpg").read_bytes()
    assert (tmp_path / "out" / "3-text.txt").read_text() == "only words & more\n"
    written = read_captions(tmp_path / "out" / "captions.json", tmp_path / "out")
    read = {path.name: (tuple(one.captions), tuple(one.labels)) for path, one in written.items()}
    assert read["1-a_b.jpg"] == (("a boat", "at sea"), ("boat",))
    assert set(read) == {"1-a_b.jpg", "2-a_b.jpg"}


def test_a_gallery_tells_nothing_but_what_it_shows(pictures: Collection, photos: Path, tmp_path: Path) -> None:
    done = pictures.export_pictures(
        tmp_path / "g", ["two", "one", "words", "broken"], gallery=True, title="Me & <you>", about="Answers to “x”"
    )
    # The toy collection holds a file that is no picture.
    assert done.left_out == ("c.png",)
    page = (tmp_path / "g" / "index.html").read_text()
    links = Links(page)
    assert "script" not in links.tags
    assert "Me &amp; &lt;you&gt;" in page
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;" in page
    assert "only words &amp; more" in page
    assert "c.png" in page
    assert links.found
    for link in links.found:
        assert re.fullmatch(r"(pictures|thumbnails)/[\w.-]+", link)
        assert (tmp_path / "g" / link).is_file()
    with Image.open(tmp_path / "g" / "pictures" / "1-a_b.jpg") as shown:
        # Upright, as the camera meant it.
        assert shown.size == (20, 40)
        assert not shown.getexif()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "g").rglob("*") if path.is_file())
    assert MARK.encode() not in everything
    assert str(photos).encode() not in everything
    pictures.export_pictures(tmp_path / "kept", ["one"], gallery=True, keep_metadata=True)
    assert MARK.encode() in (tmp_path / "kept" / "pictures" / "1-a_b.jpg").read_bytes()
    pictures.export_pictures(tmp_path / "bare", ["one"], keep_metadata=False)
    assert MARK.encode() not in (tmp_path / "bare" / "1-a_b.jpg").read_bytes()


def test_a_zip_file_is_made_block_by_block(pictures: Collection, photos: Path, tmp_path: Path) -> None:
    large = photos / "large.png"
    large.write_bytes(bytes(3 << 20))
    pictures.add(Record(large, id="large"))
    files = PictureExport([pictures["large"], pictures["one"]], pictures._open_picture, pictures.thumbnails)
    blocks = list(files.zipped())
    assert max(map(len, blocks)) <= 1 << 18
    with zipfile.ZipFile(io.BytesIO(b"".join(blocks))) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["1-large.png", "2-a_b.jpg", "captions.json"]
        assert archive.read("1-large.png") == large.read_bytes()


def test_what_vanished_is_named_and_left_out(pictures: Collection, photos: Path, tmp_path: Path) -> None:
    (photos / "a b.jpg").unlink()
    done = pictures.export_pictures(tmp_path / "out.zip", pictures.search("a boat", min_probability=0.0))
    assert "a b.jpg" in done.left_out
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.read("left-out.txt").decode().splitlines() == list(done.left_out)


def test_nothing_is_overwritten_unasked(pictures: Collection, photos: Path, tmp_path: Path) -> None:
    out, archive = tmp_path / "out", tmp_path / "out.zip"
    for target in (out, archive):
        pictures.export_pictures(target, ["one", "two"])
        with pytest.raises(InvalidInputError, match="--force"):
            pictures.export_pictures(target, ["one"])
    (out / "mine.txt").write_text("mine")
    pictures.export_pictures(archive, ["two"], force=True)
    pictures.export_pictures(out, ["two"], force=True)
    assert sorted(path.name for path in out.iterdir()) == [".diptych-export", "1-a_b.jpg", "captions.json", "mine.txt"]
    with pytest.raises(InvalidInputError, match="other files"):
        pictures.export_pictures(photos, ["one"], force=True)
    # A list of files that somebody has changed leads nowhere else.
    (out / ".diptych-export").write_text(f"../out.zip\n{archive}\n")
    pictures.export_pictures(out, ["one"], force=True)
    assert archive.is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 300 + ".jpg", "CON.png", "x\n.jpg", ".hidden", "é.JPEG"])
def test_names_are_safe_everywhere(name: str) -> None:
    safe = safe_name(name, 3, 40)
    assert safe.startswith("03-")
    assert re.fullmatch(r"[\w.-]+", safe)
    assert len(safe) < 80
