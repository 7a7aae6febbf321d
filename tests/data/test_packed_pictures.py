"""Pictures that come packed with their captions: what is written, what is said, and what is refused."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from diptych.data import read_captions, unpack_pictures
from diptych.errors import InvalidInputError


def picture(colour: str, kind: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(stream, kind)
    return stream.getvalue()


def write_shard(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w") as shard:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    return path


def hugging_face_table(rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
    """A table as the library ``datasets`` writes it: pictures as bytes and paths, classes as numbers."""
    features = {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
    schema = pa.schema(
        [
            ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            ("label", pa.int64()),
            ("caption", pa.list_(pa.string())),
            ("year", pa.int32()),
        ],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    return pa.Table.from_pylist(rows, schema=schema)


ROWS = [
    {"image": {"bytes": picture("red"), "path": "a/1.jpg"}, "label": 1, "caption": ["red", "a square"], "year": 2001},
    {"image": {"bytes": picture("blue", "PNG"), "path": "b/1.png"}, "label": 0, "caption": ["blue"], "year": 2002},
    {"image": {"bytes": picture("green"), "path": "c/1.jpg"}, "label": 1, "caption": ["green"], "year": None},
    {"image": {"bytes": b"no picture", "path": "4.jpg"}, "label": 0, "caption": ["nothing"], "year": 2004},
]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_a_hugging_face_data_set_on_disk_is_unpacked(kind: str, tmp_path: Path) -> None:
    table = hugging_face_table(ROWS, ["cold", "warm"])
    split = tmp_path / "set" / "train"
    split.mkdir(parents=True)
    if kind == "arrow":
        with (
            pa.OSFile(str(split / "data-00000-of-00001.arrow"), "wb") as stream,
            pa.ipc.new_stream(stream, table.schema) as writer,
        ):
            writer.write_table(table)
        (split / "cache-1.arrow").write_bytes(b"of no interest")
    else:
        pq.write_table(table, split / "train-00000-of-00001.parquet")
    found = unpack_pictures(tmp_path / "set", tmp_path / "pictures")
    said = {path.name: (picture.captions, picture.labels, dict(picture.metadata)) for path, picture in found.items()}
    assert said == {
        "1.jpg": (("red", "a square"), ("warm",), {"year": 2001}),
        "1.png": (("blue",), ("cold",), {"year": 2002}),
        # Two files of one name in different folders.
        "1-2.jpg": (("green",), ("warm",), {}),
    }
    assert found.missing == ("4.jpg",)
    assert (tmp_path / "pictures" / "1.jpg").read_bytes() == ROWS[0]["image"]["bytes"]


def test_a_second_call_changes_no_file(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "0.tar", [("1.jpg", picture("red")), ("1.txt", b"red")])
    (path,) = unpack_pictures(shard, tmp_path / "pictures")
    before = path.stat()
    (again,) = unpack_pictures(shard, tmp_path / "pictures")
    assert (again, again.stat().st_mtime_ns, again.stat().st_ino) == (path, before.st_mtime_ns, before.st_ino)


def test_shards_of_webdataset_are_unpacked_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    shard = write_shard(
        tmp_path / "shards-0.tar",
        [
            ("n/1.jpg", picture("red")),
            ("n/1.txt", b"a red square\nno circle\n"),
            ("n/1.cls", b"3"),
            ("../../2.png", picture("blue", "PNG")),
            ("../../2.json", json.dumps({"caption": "blue", "tags": "cold", "width": 8}).encode()),
            ("3.txt", b"words without a picture"),
        ],
    )
    with tarfile.open(shard, "a") as opened:
        link = tarfile.TarInfo("4.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        opened.addfile(link)
    target = tmp_path / "inner" / "pictures"
    found = unpack_pictures(shard, target)
    said = {path.name: (picture.captions, picture.labels) for path, picture in found.items()}
    assert said == {"1.jpg": (("a red square", "no circle"), ("3",)), "2.png": (("blue",), ("cold",))}
    assert found[target / "2.png"].metadata == {"width": 8}
    assert sorted(path.name for path in target.iterdir()) == ["1.jpg", "2.png", "captions.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner", "shards-0.tar"]


def test_tables_with_bytes_or_paths_are_unpacked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"img": [picture("red")], "text": ["red"], "id": ["x"]}), tmp_path / "bytes.parquet")
    found = unpack_pictures(tmp_path / "bytes.parquet", tmp_path / "one")
    assert {path.name: picture.captions for path, picture in found.items()} == {"bytes-000001.jpg": ("red",)}
    (tmp_path / "2.jpg").write_bytes(picture("blue"))
    paths = tmp_path / "paths.parquet"
    pq.write_table(pa.table({"image_path": ["2.jpg", "3.jpg"], "caption": ["blue", "gone"]}), paths)
    found = unpack_pictures(paths, tmp_path / "two")
    assert {path.name: picture.captions for path, picture in found.items()} == {"2.jpg": ("blue",)}
    assert found.missing == ("3.jpg",)
    # Named in a table, the pictures need no unpacking.
    captioned = read_captions(paths, tmp_path)
    assert captioned[tmp_path / "2.jpg"].captions == ("blue",)
    with pytest.raises(InvalidInputError, match="--from"):
        read_captions(tmp_path / "bytes.parquet", tmp_path)


def test_what_cannot_be_unpacked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut.tar").write_bytes(write_shard(tmp_path / "0.tar", [("1.jpg", picture("red"))]).read_bytes()[:700])
    with pytest.raises(InvalidInputError, match="no whole tar file"):
        unpack_pictures(tmp_path / "cut.tar", tmp_path / "a")
    (tmp_path / "no.arrow").write_bytes(b"no table")
    with pytest.raises(InvalidInputError, match="no readable Arrow file"):
        unpack_pictures(tmp_path / "no.arrow", tmp_path / "b")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "1.jpg").write_bytes(b"mine")
    with pytest.raises(InvalidInputError, match="holds other files"):
        unpack_pictures(tmp_path / "0.tar", tmp_path / "mine")
    with pytest.raises(InvalidInputError, match="nothing to unpack"):
        unpack_pictures(tmp_path / "mine", tmp_path / "c")
    monkeypatch.setattr("diptych.data.packed_pictures._LARGEST_PICTURE", 10)
    with pytest.raises(InvalidInputError, match="holds no picture"):
        unpack_pictures(tmp_path / "0.tar", tmp_path / "d")
