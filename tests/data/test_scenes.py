from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diptych.data.datasets.scenes import (
    BACKGROUNDS,
    CLASS_NAMES,
    COLOURS,
    PictureSequence,
    Scene,
    make_scene,
    write_folder,
)
from diptych.data.datasets.scenes.composition import SIZES
from diptych.errors import InvalidInputError


@cache
def scenes() -> list[Scene]:
    return [make_scene(index) for index in range(3000)]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


PICTURE_DIGESTS = {
    (0, 0, 128): "131a72c66ab430ac5db97c35d7a261b03a8d33c1c251fe5a147fa7dab4717d62",
    (1, 0, 64): "fb5f9bb0bbb5b9ca3ff6d625d98eaf2d5ccb803ac6d518fdc8eaffab99975800",
    (2, 7, 33): "8c516f122232c9155297fa233c02d351a1ec475f1204fe3fb2bc6a3dbb23d179",
    (123456789, 0, 64): "e74ee03ecee1925626d1e3ee1bec47c181ac782b0eaab684a1b1f53c1e7dc165",
}
CAPTION_DIGESTS = {
    (1000, 0): "0e16d607f1680b9ea3d77d9a3b7d84e30cd5533547591a787af0a2cfaa9cdc1f",
    (100, 7): "2e7781f3c6abea53199f4d75774b8a1e87ae6840ccb619b534a674bce1e1b5bb",
}


@pytest.mark.parametrize(("index", "seed", "size"), PICTURE_DIGESTS)
def test_pixels_are_the_same_on_every_machine(index: int, seed: int, size: int) -> None:
    assert digest(make_scene(index, seed).render(size).tobytes()) == PICTURE_DIGESTS[index, seed, size]


def test_every_backdrop_and_kind_is_the_same_on_every_machine() -> None:
    assert {scene.background for scene in scenes()[:120]} == set(BACKGROUNDS)
    assert {kind for scene in scenes()[:120] for kind in scene.kinds} == set(CLASS_NAMES)
    pixels = b"".join(scene.render(32).tobytes() for scene in scenes()[:120])
    assert digest(pixels) == "0b5b960b47b7fa49faf837adda173b611dbc0ce7f5684bbeae11f9da521ecaa8"


@pytest.mark.parametrize(("count", "seed"), CAPTION_DIGESTS)
def test_captions_are_the_same_on_every_machine(count: int, seed: int) -> None:
    lines = "\n".join(caption for index in range(count) for caption in make_scene(index, seed).captions)
    assert digest(lines.encode()) == CAPTION_DIGESTS[count, seed]


@given(st.integers(0, 10**12), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_any_scene_is_whole_and_reproducible(index: int, seed: int) -> None:
    scene = make_scene(index, seed)
    assert scene == make_scene(index, seed)
    assert scene.label == scene.objects[0].kind
    assert scene.kinds == tuple(sorted({thing.kind for thing in scene.objects}))
    assert 1 <= len(scene.objects) <= 4
    assert len(set(scene.captions)) == 5
    assert scene.background in BACKGROUNDS
    for thing in scene.objects:
        assert thing.colour in COLOURS
        assert thing.extent == pytest.approx(SIZES[thing.size], rel=0.071)
        assert min(thing.box) >= 0
        assert max(thing.box) <= 1
        assert thing.extent <= scene.objects[0].extent * 1.16
    picture = scene.render(32)
    assert picture.shape == (32, 32, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, make_scene(index, seed).render(32))


def test_seeds_and_numbers_give_different_scenes() -> None:
    assert len({scene.captions for scene in scenes()[:500]}) == 500
    assert len({make_scene(3, seed).captions for seed in range(50)}) == 50


def test_sizes_do_not_overlap() -> None:
    extents = {
        size: [thing.extent for scene in scenes() for thing in scene.objects if thing.size == size] for size in SIZES
    }
    assert max(extents["small"]) < min(extents["medium"])
    assert max(extents["medium"]) < min(extents["large"])


def test_words_for_places_agree_with_coordinates() -> None:
    for thing in (thing for scene in scenes() for thing in scene.objects):
        words = thing.place.split()
        assert ("left" in words) == (thing.x < 0.37)
        assert ("right" in words) == (thing.x > 0.63)
        assert ("top" in words) == (thing.y < 0.37)
        assert ("bottom" in words) == (thing.y > 0.63)
        assert ("middle" in words) == (0.37 <= thing.x <= 0.63 and 0.37 <= thing.y <= 0.63)


@pytest.mark.parametrize("index", range(40))
def test_every_thing_can_be_seen_in_its_box_and_nowhere_else(index: int) -> None:
    scene, size = scenes()[index], 64
    whole = scene.render(size).astype(int)
    for thing in scene.objects:
        without = replace(scene, objects=tuple(other for other in scene.objects if other is not thing))
        changed = np.abs(whole - without.render(size)).sum(axis=2) > 8
        left, top, right, bottom = (edge * size for edge in thing.box)
        inside = changed[max(round(top), 0) : round(bottom), max(round(left), 0) : round(right)]
        assert inside.mean() > 0.1
        margin = 0.35 * thing.extent * size + 2
        rows, columns = np.nonzero(changed)
        assert rows.min() >= top - margin
        assert rows.max() <= bottom + margin
        assert columns.min() >= left - margin
        assert columns.max() <= right + margin


@pytest.mark.parametrize("index", range(20))
def test_size_changes_the_resolution_and_not_the_scene(index: int) -> None:
    small = scenes()[index].render(48).astype(float)
    large = scenes()[index].render(96).astype(float).reshape(48, 2, 48, 2, 3).mean(axis=(1, 3))
    assert np.abs(small - large).mean() < 4.0


def test_pictures_are_lively() -> None:
    pictures = [scene.render(32).astype(float) for scene in scenes()[:60]]
    assert np.mean([picture.std(axis=(0, 1)).mean() for picture in pictures]) > 30
    assert all(picture.std() > 8 for picture in pictures)


def test_every_class_has_a_good_share() -> None:
    shares = Counter(scene.label for scene in scenes())
    assert set(shares) == set(CLASS_NAMES)
    assert min(shares.values()) > 0.09 * len(scenes())
    assert max(shares.values()) < 0.17 * len(scenes())


def test_every_background_colour_size_and_count_occurs() -> None:
    things = [thing for scene in scenes() for thing in scene.objects]
    assert min(Counter(scene.background for scene in scenes()).values()) > 0.03 * len(scenes())
    assert len(Counter(scene.background for scene in scenes())) == len(BACKGROUNDS)
    assert all(sum(thing.colour == colour for thing in things) > 0.05 * len(things) for colour in COLOURS)
    assert all(sum(thing.size == size for thing in things) > 0.1 * len(things) for size in SIZES)
    assert all(sum(len(scene.objects) == count for scene in scenes()) > 0.05 * len(scenes()) for count in (1, 2, 3, 4))


def entropy(counts: Counter) -> float:
    shares = np.array(list(counts.values())) / sum(counts.values())
    return float(-(shares * np.log2(shares)).sum())


def test_the_background_tells_about_the_class_without_giving_it_away() -> None:
    labels = entropy(Counter(scene.label for scene in scenes()))
    backgrounds = entropy(Counter(scene.background for scene in scenes()))
    together = entropy(Counter((scene.label, scene.background) for scene in scenes()))
    shared = labels + backgrounds - together
    assert 0.3 < shared < 0.5 * labels


def test_negative_numbers_and_tiny_pictures_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="index must be 0 or more"):
        make_scene(-1)
    with pytest.raises(InvalidInputError, match="at least 32"):
        make_scene(0).render(31)
    with pytest.raises(InvalidInputError, match="at least 32"):
        PictureSequence(3, size=16)


def test_a_picture_does_not_depend_on_the_sequence_it_is_in() -> None:
    few, many = PictureSequence(5, size=32), PictureSequence(10_000_000, size=32)
    np.testing.assert_array_equal(many[4], few[-1])
    np.testing.assert_array_equal(few[4], make_scene(4).render(32))
    assert not np.array_equal(PictureSequence(5, seed=1, size=32)[4], few[4])


def test_a_slice_of_a_sequence_is_one() -> None:
    pictures = PictureSequence(12, size=32)
    chosen = pictures[2:9:3]
    assert isinstance(chosen, PictureSequence)
    assert np.asarray(chosen).shape == (3, 32, 32, 3)
    np.testing.assert_array_equal(chosen[-1], pictures[8])
    np.testing.assert_array_equal(np.stack(list(pictures[:2])), np.asarray(pictures)[:2])
    with pytest.raises(IndexError):
        pictures[12]


def test_a_folder_holds_the_pictures_and_what_is_said_about_them(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    folder = write_folder(tmp_path / "new" / "scenes", 3, seed=4, size=40, progress=lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    content = json.loads((folder / "captions.json").read_text(encoding="utf-8"))
    assert (content["seed"], content["size"]) == (4, 40)
    assert {file.name for file in folder.iterdir()} == {
        "captions.json",
        *(item["file"] for item in content["pictures"]),
    }
    for index, item in enumerate(content["pictures"]):
        scene = make_scene(index, 4)
        with Image.open(folder / item["file"]) as picture:
            np.testing.assert_array_equal(np.asarray(picture), scene.render(40))
        assert tuple(item["captions"]) == scene.captions
        assert (item["label"], item["background"], tuple(item["kinds"])) == (scene.label, scene.background, scene.kinds)
        assert [thing["colour"] for thing in item["objects"]] == [thing.colour for thing in scene.objects]
        assert item["objects"][0]["place"] == scene.objects[0].place


def test_an_interrupted_folder_is_completed_by_running_again(tmp_path: Path) -> None:
    class Interruption(Exception):
        pass

    def stop_at_two(done: int, total: int) -> None:
        if done == 2:
            raise Interruption

    with pytest.raises(Interruption):
        write_folder(tmp_path, 4, size=32, progress=stop_at_two)
    assert not (tmp_path / "captions.json").exists()
    (tmp_path / "scene-000002.png.part").write_bytes(b"half a picture")
    write_folder(tmp_path, 4, size=32)
    assert len(list(tmp_path.iterdir())) == 5
    write_folder(tmp_path, 4, seed=1, size=32)
    assert json.loads((tmp_path / "captions.json").read_text(encoding="utf-8"))["seed"] == 1


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"precious")
    with pytest.raises(InvalidInputError, match=r"holiday\.jpg"):
        write_folder(tmp_path, 2, size=32)
    assert [file.name for file in tmp_path.iterdir()] == ["holiday.jpg"]


@pytest.mark.parametrize("content", ["not json", "[]", '{"images": []}'])
def test_foreign_captions_are_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "captions.json").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match="not written by Diptych"):
        write_folder(tmp_path, 2, size=32)
    assert (tmp_path / "captions.json").read_text(encoding="utf-8") == content


def test_a_folder_of_more_pictures_is_left_alone(tmp_path: Path) -> None:
    write_folder(tmp_path, 3, size=32)
    with pytest.raises(InvalidInputError, match=r"scene-000002\.png"):
        write_folder(tmp_path, 2, size=32)


def test_impossible_folders_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="n must be at least 1"):
        write_folder(tmp_path, 0)
    with pytest.raises(InvalidInputError, match="at least 32"):
        write_folder(tmp_path, 1, size=8)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="is a file"):
        write_folder(tmp_path / "file", 1)
