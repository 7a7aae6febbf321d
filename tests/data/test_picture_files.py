from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data import find_pictures, picture_suffixes
from diptych.data.picture_files import unread_kinds
from diptych.errors import InvalidInputError


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in find_pictures(folder)]


def test_pictures_of_all_folders_and_nothing_else(tmp_path: Path) -> None:
    wanted = ["a.JPG", "b/c.png", "b/d/e.webp", "b/movie.mp4", "f.tiff", "g.pgm", "h.jpe", "i.HEIC"]
    make(tmp_path, *wanted, "notes.txt", "photo.xmp", "no_suffix", "paper.pdf", "code.ts")
    make(tmp_path, ".hidden.jpg", ".diptych/thumb.jpg", "b/.cache/x.jpg")
    assert names(tmp_path) == wanted


def test_kinds_that_cannot_be_read_are_told_with_the_reason(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg", "b.jxl", "c/d.EPS", "notes.txt", ".hidden.jxl")
    told: dict[str, str] = {}
    list(find_pictures(tmp_path, on_unreadable=lambda path, reason: told.update({path.name: reason})))
    assert list(told) == ["b.jxl", "d.EPS"]
    assert told["d.EPS"] == "files of the kind EPS cannot be read; convert it to JPEG or PNG"
    assert unread_kinds(tmp_path / name for name in (*told, "e.jxl", "f.pdf")) == {"EPS": 1, "JXL": 2}


@given(st.sets(st.lists(st.sampled_from(["a", "A b", "a-b", "ab", "é"]), min_size=1, max_size=4).map("/".join)))
@settings(max_examples=30)
def test_the_order_is_that_of_sorted_paths(tmp_path_factory: pytest.TempPathFactory, parts: set[str]) -> None:
    folder = tmp_path_factory.mktemp("pictures")
    make(folder, *(f"{part}.jpg" for part in parts))
    found = list(find_pictures(folder))
    assert found == sorted(found)
    assert len(found) == len(parts)


def test_only_formats_that_can_be_read() -> None:
    assert {".jpg", ".jpeg", ".jpe", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"} <= picture_suffixes()
    assert picture_suffixes().isdisjoint({".pdf", ".eps", ".jxl", ".txt", ".xmp", ".ts"})


def test_links_in_circles_end_and_nothing_is_found_twice(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    make(folder, "a/1.jpg", "b/2.jpg")
    make(elsewhere, "3.jpg", "deep/4.jpg")
    (folder / "a" / "up").symlink_to(folder)
    (folder / "a" / "self").symlink_to(folder / "a")
    (folder / "above").symlink_to(tmp_path)
    (folder / "away").symlink_to(elsewhere)
    (folder / "away_again").symlink_to(elsewhere / "deep")
    (elsewhere / "back").symlink_to(folder)
    (folder / "first").symlink_to(folder / "second")
    (folder / "second").symlink_to(folder / "first")
    (folder / "dangling.jpg").symlink_to(folder / "nowhere.jpg")
    (folder / "linked.jpg").symlink_to(elsewhere / "3.jpg")
    assert names(folder) == ["a/1.jpg", "away/3.jpg", "away/deep/4.jpg", "b/2.jpg", "linked.jpg"]


def test_a_link_that_leads_round_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").symlink_to(tmp_path / "y.jpg")
    (tmp_path / "y.jpg").symlink_to(tmp_path / "x.jpg")
    seen: list[str] = []
    assert list(find_pictures(tmp_path, on_unreadable=lambda path, reason: seen.append(f"{path.name}: {reason}"))) == []
    assert [line.partition(":")[0] for line in seen] == ["x.jpg", "y.jpg"]


def test_a_folder_that_cannot_be_read_is_reported_and_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg", "b/c.jpg", "d.jpg")
    seen: list[tuple[str, str]] = []
    pictures = find_pictures(tmp_path, on_unreadable=lambda path, reason: seen.append((path.name, reason)))
    found = [next(pictures).name]
    shutil.rmtree(tmp_path / "b")
    found += [path.name for path in pictures]
    assert found == ["a.jpg", "d.jpg"]
    assert seen == [("b", "No such file or directory")]


def test_pipes_and_folders_with_a_suffix_are_no_pictures(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    make(tmp_path, "folder.jpg/inner.jpg")
    assert names(tmp_path) == ["folder.jpg/inner.jpg"]


def test_folders_deeper_than_the_stack(tmp_path: Path) -> None:
    levels = [os.path.join(tmp_path, *["d"] * depth) for depth in range(1, 1201)]
    for level in levels:
        os.mkdir(level)
    bottom = Path(levels[-1], "bottom.jpg")
    bottom.touch()
    assert [path.name for path in find_pictures(tmp_path)] == ["bottom.jpg"]
    # Removing it is not for recursion, either.
    bottom.unlink()
    for level in reversed(levels):
        os.rmdir(level)


@pytest.mark.parametrize("name", ["odd\nname.jpg", "naïve.jpg", "日本.png", os.fsdecode(b"bad\xff.jpg")])
def test_odd_names(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    assert names(tmp_path) == [name]


def test_a_folder_must_be_a_folder(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg")
    with pytest.raises(InvalidInputError, match="is a file; name the folder"):
        find_pictures(tmp_path / "a.jpg")
    with pytest.raises(InvalidInputError, match="does not exist"):
        find_pictures(tmp_path / "b")
