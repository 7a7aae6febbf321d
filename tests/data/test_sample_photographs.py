"""The photographs of the package: listed, credited, free, small."""

from __future__ import annotations

import re

from PIL import Image

from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER, sample_photographs

PHOTOGRAPHS = sample_photographs()


def test_every_photograph_is_listed_and_every_listed_one_is_there() -> None:
    files = sorted(PHOTOGRAPHS_FOLDER.glob("*.jpg"))
    assert [photo.path for photo in PHOTOGRAPHS] == files
    assert len(files) >= 40


def test_every_photograph_is_free_and_its_author_and_source_are_known() -> None:
    for photo in PHOTOGRAPHS:
        assert re.fullmatch(r"public domain|CC0-1\.0|CC-BY-[1234]\.0", photo.licence), photo
        assert photo.author, photo
        assert photo.package, photo
        assert photo.source, photo
        assert photo.captions, photo


def test_the_credits_name_every_photograph_with_its_author_and_licence() -> None:
    lines = (PHOTOGRAPHS_FOLDER / "CREDITS.md").read_text(encoding="utf-8").splitlines()
    for photo in PHOTOGRAPHS:
        (line,) = [line for line in lines if line.startswith(f"| `{photo.path.name}` |")]
        for part in (photo.author, photo.licence, photo.package, photo.source):
            assert part in line


def test_photographs_are_small_and_can_be_read() -> None:
    for photo in PHOTOGRAPHS:
        with Image.open(photo.path) as picture:
            picture.load()
            assert max(picture.size) <= 480
    assert sum(photo.path.stat().st_size for photo in PHOTOGRAPHS) < 2_000_000
