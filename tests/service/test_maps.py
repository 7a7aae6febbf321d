from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from diptych.collection import Collection, Record
from diptych.service.maps import has_map, make_map, map_path, plane, read_map
from diptych.space import SPACE_NAMES, Space


@pytest.fixture
def collection(own_scene_collection: Path) -> Iterator[Collection]:
    with Collection.open(own_scene_collection / ".diptych") as opened:
        yield opened


@pytest.fixture(scope="module")
def scene_map(scene_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any]:
    import shutil

    folder = shutil.copytree(scene_collection, tmp_path_factory.mktemp("map") / "scenes")
    with Collection.open(folder / ".diptych") as collection:
        made = make_map(collection)
        document = read_map(collection, collection.retriever.fingerprint)
        assert document is not None
        assert made["points"] == len(document["points"])
        rows = [collection.points("image")[1], collection.points("text", _first_captions(collection))[1]]
        return document, np.vstack(rows)


def _first_captions(collection: Collection) -> list[str]:
    return [item.caption_ids[0] for item in collection if item.caption_ids]


def places(document: dict[str, Any]) -> Any:
    return np.array([[point["x"], point["y"]] for point in document["points"]])


def test_neighbours_of_the_space_are_neighbours_on_the_map(scene_map: tuple[dict[str, Any], Any]) -> None:
    document, points = scene_map
    assert trustworthiness(points, places(document), n_neighbors=5, metric="cosine") > 0.8
    shuffled = np.random.default_rng(0).permutation(places(document))
    assert trustworthiness(points, shuffled, n_neighbors=5, metric="cosine") < 0.65


def test_a_picture_lies_nearer_to_its_caption_than_to_others(scene_map: tuple[dict[str, Any], Any]) -> None:
    document, _ = scene_map
    at = {(point["kind"], point["id"]): np.array([point["x"], point["y"]]) for point in document["points"]}
    ids = [item for kind, item in at if kind == "image"]
    own = [np.linalg.norm(at["image", item] - at["text", item]) for item in ids]
    other = [np.linalg.norm(at["image", a] - at["text", b]) for a in ids for b in ids if a != b]
    assert np.mean(own) < 0.6 * np.mean(other)


def test_a_map_fills_the_unit_square_and_keeps_its_shape(scene_map: tuple[dict[str, Any], Any]) -> None:
    spans = np.ptp(places(scene_map[0]), axis=0)
    assert places(scene_map[0]).min() >= 0
    assert places(scene_map[0]).max() <= 1
    assert spans.max() == pytest.approx(1, abs=1e-4)


def test_the_same_seed_gives_the_same_map(collection: Collection) -> None:
    def made(seed: int) -> Any:
        make_map(collection, seed=seed, most=60)
        return (read_map(collection, collection.retriever.fingerprint) or {})["points"]

    first = made(3)
    assert made(3) == first
    assert {point["id"] for point in made(4)} != {point["id"] for point in first}


@pytest.mark.parametrize("n_items", [0, 1, 2, 5])
def test_tiny_collections_have_maps(collection: Collection, n_items: int) -> None:
    collection.remove([item.id for item in collection][n_items:])
    assert make_map(collection)["points"] == 2 * n_items
    document = read_map(collection, collection.retriever.fingerprint)
    assert document is not None
    assert all(0 <= point[axis] <= 1 for point in document["points"] for axis in "xy")


@pytest.mark.parametrize("name", SPACE_NAMES)
def test_every_space_has_a_plane(name: str) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 12)
    points: Any = rng.dirichlet(np.where(np.eye(2)[:, [0, 0, 1, 1]] > 0, 8.0, 0.3)[0], size=24)
    points[groups == 1] = points[groups == 1][:, ::-1]
    if name == "hamming":
        points = np.where(groups[:, None] == 0, 15, 240).astype(np.uint8) ^ rng.integers(0, 2, (24, 4), dtype=np.uint8)
    found = plane(Space(name), points)
    assert found.shape == (24, 2)
    centres = [found[groups == group].mean(axis=0) for group in (0, 1)]
    scatter = np.mean([np.linalg.norm(found[row] - centres[group]) for row, group in enumerate(groups)])
    assert np.linalg.norm(centres[0] - centres[1]) > scatter


def test_points_that_are_all_the_same_share_a_place() -> None:
    assert plane(Space("cosine"), np.ones((8, 3), dtype=np.float32)).tolist() == [[0.5, 0.5]] * 8


def test_a_split_space_has_a_plane() -> None:
    points = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
    assert np.isfinite(plane(Space("cosine", split=2), points)).all()


def test_a_map_is_served_and_says_when_it_is_old(running_service: Callable[..., Any]) -> None:
    service = running_service()
    address = f"{service.url}/v1/collections/scenes/map"
    missing = httpx.get(address)
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/no-map")
    assert '"map"' in missing.json()["detail"]
    assert httpx.get(address, params={"retriever": "nobody"}).status_code == 404
    with Collection.open(service.folders["scenes"] / ".diptych") as collection:
        make_map(collection, most=60)
        assert has_map(collection, collection.retriever.fingerprint)
        assert httpx.get(f"{service.url}/v1/collections/scenes").json()["map"] == "ready"
        document = httpx.get(address).json()
        assert (document["items_in_map"], document["items_total"], document["stale"]) == (30, 60, False)
        assert "sample of 30 of 60" in document["note"]
        assert document["retriever"] == "scenes"
        gone = document["points"][0]["id"]
        collection.remove(gone)
        collection.add([Record(captions=["a new text"])])
    document = httpx.get(address).json()
    assert document["stale"]
    assert gone not in {point["id"] for point in document["points"]}


def test_a_damaged_map_is_none(collection: Collection) -> None:
    path = map_path(collection, "f")
    path.parent.mkdir(parents=True)
    for content in ("{", json.dumps([1]), json.dumps({"points": 3})):
        path.write_text(content)
        assert read_map(collection, "f") is None
