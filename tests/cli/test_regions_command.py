"""``diptych regions``: small things become findable, and the answers say where."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command_line import Run, World


def test_regions_are_made_once_searched_and_removed(run: Run, scenery: World, nothing_indexed: Path) -> None:
    world = scenery.copied(nothing_indexed / "pictures")
    for picture in sorted(world.pictures.glob("*.png"))[3:]:
        picture.unlink()
    indexed = run("index", world.pictures, "--retriever", world.retriever, "--regions")
    assert indexed.exit_code == 0, indexed.output
    assert "parts of 3 pictures are searchable" in indexed.stderr
    again = json.loads(run("regions", "--json").stdout)
    assert (again["read"], again["known"]) == (0, 3)
    assert "of 3 pictures" in run("status").stdout
    query = ("search", "a red ball", "--all")
    found = json.loads(run(*query, "--json").stdout)["answers"]
    places = [answer["region"]["place"] for answer in found if answer["region"] is not None]
    assert places
    assert f"({places[0]})" in " ".join(run(*query, "--format", "table").stdout.split())
    without = json.loads(run(*query, "--no-regions", "--json").stdout)["answers"]
    assert len(without) == len(found) == 3
    assert all(answer["region"] is None for answer in without)
    assert run("regions", "--remove").exit_code == 0
    assert all(answer["region"] is None for answer in json.loads(run(*query, "--json").stdout)["answers"])
