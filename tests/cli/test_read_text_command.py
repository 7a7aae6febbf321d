"""``diptych read-text``: signs become findable, and the table says by what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Run, World
from tests.doubles.signs import plain_sign

pytest.importorskip("rapidocr")


@pytest.fixture
def signs(scenery: World, nothing_indexed: Path) -> World:
    world = scenery.copied(nothing_indexed / "pictures")
    for picture in sorted(world.pictures.glob("*.png"))[2:]:
        picture.unlink()
    plain_sign(["Kaliso 4711"])[0].save(world.pictures / "shop.png")
    return world


def test_words_in_pictures_are_read_once_and_found(run: Run, signs: World) -> None:
    indexed = run("index", signs.pictures, "--retriever", signs.retriever, "--read-text")
    assert indexed.exit_code == 0, indexed.output
    assert "3 pictures read, 1 of them have text" in indexed.stderr
    again = json.loads(run("read-text", "--json").stdout)
    assert (again["read"], again["known"]) == (0, 3)
    found = json.loads(run("search", "kaliso", "--format", "json").stdout)
    first = found["answers"][0]
    assert (found["mode"], found["no_good_match"]) == ("both", False)
    assert (Path(first["path"]).name, first["matched_fields"]) == ("shop.png", ["text in picture"])
    assert [word["text"] for word in first["picture_words"]] == ["Kaliso"]
    shown = run("search", "kaliso", "--format", "table", "-k", "1").stdout
    assert "text in the picture: Kaliso" in " ".join(shown.split())


def test_one_choice_at_a_time(run: Run, signs: World) -> None:
    assert "give one of them" in run("search", "kaliso", "--hybrid", "--mode", "words").stderr
