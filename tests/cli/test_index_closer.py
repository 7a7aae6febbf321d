"""``diptych index --read-text`` and ``--regions``: signs and small things become findable, and answers say by what."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.command_line import Run, World
from tests.doubles.signs import plain_sign


@pytest.fixture
def signs(scenery: World, nothing_indexed: Path) -> World:
    world = scenery.copied(nothing_indexed / "pictures")
    for picture in sorted(world.pictures.glob("*.png"))[2:]:
        picture.unlink()
    plain_sign(["Kaliso 4711"])[0].save(world.pictures / "shop.png")
    return world


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="needs the extra ocr")
def test_words_in_pictures_are_read_once_and_found(run: Run, signs: World) -> None:
    indexed = run("index", signs.pictures, "--retriever", signs.retriever, "--read-text")
    assert indexed.exit_code == 0, indexed.output
    assert "3 pictures read, 1 of them have text" in indexed.stderr
    assert "0 pictures read" in run("index", signs.pictures, "--read-text").stderr
    found = json.loads(run("search", "kaliso", "--json").stdout)
    first = found["answers"][0]
    assert (found["mode"], found["no_good_match"]) == ("both", False)
    assert (Path(first["path"]).name, first["matched_fields"]) == ("shop.png", ["text in picture"])
    assert [word["text"] for word in first["picture_words"]] == ["Kaliso"]
    shown = run("search", "kaliso", "--format", "table", "-k", "1").stdout
    assert "text in the picture: Kaliso" in " ".join(shown.split())


def test_regions_are_made_once_searched_and_removed(run: Run, scenery: World, nothing_indexed: Path) -> None:
    world = scenery.copied(nothing_indexed / "pictures")
    for picture in sorted(world.pictures.glob("*.png"))[3:]:
        picture.unlink()
    indexed = run("index", world.pictures, "--retriever", world.retriever, "--regions")
    assert indexed.exit_code == 0, indexed.output
    assert "3 pictures read" in indexed.stderr
    assert "0 pictures read" in run("index", world.pictures, "--regions").stderr
    assert "of 3 pictures" in run("status").stdout
    query = ("search", "a red ball", "--all")
    found = json.loads(run(*query, "--json").stdout)["answers"]
    places = [answer["region"]["place"] for answer in found if answer["region"] is not None]
    assert places
    assert f"({places[0]})" in " ".join(run(*query, "--format", "table").stdout.split())
    without = json.loads(run(*query, "--no-regions", "--json").stdout)["answers"]
    assert len(without) == len(found) == 3
    assert all(answer["region"] is None for answer in without)
    assert run("index", world.pictures, "--no-regions").exit_code == 0
    assert all(answer["region"] is None for answer in json.loads(run(*query, "--json").stdout)["answers"])
