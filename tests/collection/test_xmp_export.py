"""What is known of pictures goes to XMP files beside them, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.collection import Collection, Record
from diptych.data.photo_facts.fields import xmp_fields


@pytest.fixture
def described(photos: Path, collection: Collection) -> Collection:
    collection.add(
        [
            Record(photos / "a.png", ["a <red> boat", "a ship & sea"], ["boat", "säa"], {"rating": 4}),
            Record(photos / "b.png", labels=["dog"]),
            Record(photos / "c.png"),
            Record(captions=["a text alone"]),
        ]
    )
    return collection


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_other_programs_read_what_is_known(
    described: Collection, photos: Path, tmp_path: Path, is_elsewhere: bool
) -> None:
    before = {path: path.read_bytes() for path in photos.glob("*.png")}
    target = tmp_path / "xmp" if is_elsewhere else None
    assert described.export_xmp(target).written == 2
    written = {path.name: xmp_fields(path.read_bytes()) for path in (target or photos).glob("*.xmp")}
    assert written == {
        "a.png.xmp": {"description": "a <red> boat\na ship & sea", "keyword": ["boat", "säa"], "rating": 4},
        "b.png.xmp": {"keyword": ["dog"]},
    }
    assert {path: path.read_bytes() for path in photos.glob("*.png")} == before
    assert described.export_xmp(target, filter="label:dog").written == 1


def test_files_of_other_programs_stay_as_they_are(described: Collection, photos: Path) -> None:
    theirs = photos / "a.png.xmp"
    theirs.write_text("<x:xmpmeta xmlns:x='adobe:ns:meta/' x:xmptk='Other'/>")
    done = described.export_xmp()
    assert (done.written, done.left_out) == (1, (str(theirs),))
    assert "Other" in theirs.read_text()
