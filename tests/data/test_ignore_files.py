"""``.diptychignore`` leaves pictures out, as ``.gitignore`` would."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.collection import Collection
from diptych.data import find_pictures
from diptych.data.ignore_files import IgnoreFiles, add_patterns
from tests.doubles import ToyRetriever

NAMES = ("a.jpg", "a.png", "keep.png", "private/b.jpg", "trips/c.png", "trips/draft/d.jpg", "trips/e.jpg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "photos"


@pytest.mark.parametrize(
    ("patterns", "left_out"),
    [
        ({".": "*.png\n!keep.png\n"}, {"a.png", "trips/c.png"}),
        ({".": "private/\n# a remark\n"}, {"private/b.jpg"}),
        ({".": "/*.jpg\ntrips/**/d.*\n"}, {"a.jpg", "trips/draft/d.jpg"}),
        ({".": "*.png\n", "trips": "!c.png\ndraft\n"}, {"a.png", "keep.png", "trips/draft/d.jpg"}),
        ({".": "trips\n", "trips": "!e.jpg\n"}, {"trips/c.png", "trips/draft/d.jpg", "trips/e.jpg"}),
        ({"..": "e.jpg\n"}, {"trips/e.jpg"}),
    ],
)
def test_patterns_hold_below_their_folder(folder: Path, patterns: dict[str, str], left_out: set[str]) -> None:
    for place, text in patterns.items():
        (folder / place / ".diptychignore").write_text(text)
    found = {path.relative_to(folder).as_posix() for path in find_pictures(folder)}
    assert found == set(NAMES) - left_out
    ignored = IgnoreFiles()
    assert {name for name in NAMES if ignored.leaves_out(folder / name, folder)} == left_out


def test_what_is_ignored_later_leaves_the_collection(folder: Path) -> None:
    with Collection.create(folder / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as collection:
        assert collection.refresh().added == len(NAMES)
        add_patterns(folder, ["private/", "*.png"])
        add_patterns(folder, ["*.png"])
        assert (folder / ".diptychignore").read_text() == "private/\n*.png\n"
        assert set(collection.refresh().removed) == {"a.png", "keep.png", "private/b.jpg", "trips/c.png"}
        assert collection.refresh().removed == []
        assert (folder / "a.png").exists()
