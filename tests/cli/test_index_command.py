from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from diptych import Retriever
from diptych.collection import Collection
from diptych.models import CCA
from tests.cli.command_line import Program, Run, World


@pytest.fixture
def world(scenery: World, nothing_indexed: Path) -> World:
    return scenery.copied(nothing_indexed / "pictures")


def counts(run: Run, world: World, *options: str | Path) -> dict[str, object]:
    result = run("index", world.pictures, "--retriever", world.retriever, "--json", *options)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_a_folder_becomes_searchable_with_one_command(program: Program, run: Run, world: World) -> None:
    """The real program, with nothing but its arguments."""
    done = program("index", world.pictures, "--captions", world.captions, "--retriever", world.retriever)
    assert done.returncode == 0
    assert done.stdout == "60 pictures and 300 captions are searchable: 60 added.\n"
    assert "diptych train" in done.stderr
    found = run("search", "a red car", "-k", "2", "--all")
    assert found.exit_code == 0
    assert [Path(line).is_file() for line in found.stdout.splitlines()] == [True, True]


def test_running_it_again_does_only_what_changed(run: Run, world: World) -> None:
    assert counts(run, world)["added"] == 60
    assert counts(run, world)["unchanged"] == 60
    files = sorted(world.pictures.glob("*.png"))
    files[0].rename(world.pictures / "renamed.png")
    files[1].unlink()
    shutil.copyfile(files[2], files[3])
    shutil.copyfile(files[4], world.pictures / "new.png")
    changed = counts(run, world)
    assert (changed["added"], changed["updated"], changed["renamed"], changed["unchanged"]) == (1, 1, 1, 57)
    assert changed["removed"] == [files[1].name]
    assert changed["pictures"] == 60
    with Collection.open(world.collection) as collection:
        assert {item.path for item in collection} == {path.name for path in world.pictures.glob("*.png")}


def test_dates_and_places_are_read_told_and_left_out(run: Run, world: World) -> None:
    paths = sorted(world.pictures.glob("*.png"))
    exif = Image.Exif()
    exif[0x0110], exif.get_ifd(0x8769)[0x9003] = "Pixel 6", "2019:07:14 18:05:31"
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2], gps[3], gps[4] = "N", (38.0, 43.0, 0.0), "W", (9.0, 8.0, 0.0)
    with Image.open(paths[0]) as picture:
        picture.save(paths[0], exif=exif)
    damaged = Image.Exif()
    damaged[0x010F] = "X"
    with Image.open(paths[1]) as picture:
        picture.save(paths[1], exif=damaged.tobytes()[:9])
    result = run("index", world.pictures, "--retriever", world.retriever)
    assert result.stderr.count("not all facts could be read") == 1
    assert f"{paths[1].name}: its EXIF cannot be read" in result.stderr
    wanted = "year>=2010 and near:Lisbon"
    shown = run("search", "a car", "--filter", wanted, "--all", "--format", "table")
    assert "2019-07-14 18:05, Lisbon, Portugal" in shown.stdout
    assert counts(run, world)["described"] == 0
    assert counts(run, world, "--facts", "no-places")["unchanged"] == 60
    assert run("search", "a car", "--filter", wanted, "--all").stdout == ""
    assert run("search", "a car", "--filter", "taken:2019-07", "--all").stdout.endswith(f"{paths[0].name}\n")
    again = run("index", world.pictures, "--facts", "all")
    assert "1 picture got what the file says of date, camera and place" in again.stderr


def test_vanished_files_stay_when_asked(run: Run, world: World) -> None:
    counts(run, world)
    next(world.pictures.glob("*.png")).unlink()
    assert counts(run, world, "--keep-missing")["pictures"] == 60


def test_unreadable_files_are_listed_and_never_fatal(run: Run, world: World) -> None:
    for number in range(12):
        (world.pictures / f"broken-{number:02d}.jpg").write_text(f"no picture {number}")
    result = run("index", world.pictures, "--retriever", world.retriever)
    assert result.exit_code == 0
    assert "12 skipped" in result.stdout
    assert "skipped 12 files" in result.stderr
    assert result.stderr.count("broken-") == 10
    assert "and 2 more" in result.stderr
    listed = (world.collection / "skipped.txt").read_text().splitlines()
    assert [line.partition(": ")[0] for line in listed] == [f"pictures/broken-{number:02d}.jpg" for number in range(12)]
    assert all(line.partition(": ")[2] for line in listed)


def test_nothing_but_unreadable_files_is_a_failure(run: Run, scenery: World, nothing_indexed: Path) -> None:
    (nothing_indexed / "broken.png").touch()
    result = run("index", nothing_indexed, "--retriever", scenery.retriever)
    assert result.exit_code == 1
    assert "nothing could be indexed" in result.stdout
    assert "broken.png" in result.stderr


def test_captions_labels_and_metadata_are_stored(run: Run, world: World) -> None:
    result = run("index", world.pictures, "--captions", world.captions, "--retriever", world.retriever)
    assert "captions: 60 pictures, 300 captions, 60 with labels" in result.stderr
    described = {entry["file"]: entry for entry in json.loads(world.captions.read_text())}
    with Collection.open(world.collection) as collection:
        for item in collection:
            entry = described[str(item.path)]
            assert list(item.captions) == entry["captions"]
            assert item.labels == (entry["label"],)
            assert item.metadata == {"background": entry["background"]}


def test_captions_stay_when_the_next_run_names_none(run: Run, world: World) -> None:
    counts(run, world, "--captions", world.captions)
    assert counts(run, world)["captions"] == 300


def test_sidecar_captions(run: Run, world: World) -> None:
    picture = next(world.pictures.glob("*.png"))
    picture.with_suffix(".txt").write_text("a picture with a file beside it\n")
    assert counts(run, world, "--captions", "sidecar")["captions"] == 1


def test_folders_can_be_labels(run: Run, world: World) -> None:
    (world.pictures / "holiday").mkdir()
    picture = next(world.pictures.glob("*.png"))
    picture.rename(world.pictures / "holiday" / picture.name)
    counts(run, world, "--label-folders")
    with Collection.open(world.collection) as collection:
        labelled = {item.path: item.labels for item in collection if item.labels}
    assert labelled == {f"holiday/{picture.name}": ("holiday",)}


def test_the_collection_can_lie_elsewhere(run: Run, world: World, tmp_path: Path) -> None:
    assert counts(run, world, "--collection", tmp_path / "elsewhere")["collection"] == str(tmp_path / "elsewhere")
    assert not world.collection.exists()
    assert run("search", "a car", "--all", "-k", "1").stdout.startswith("pictures/")


def test_another_retriever_takes_over(run: Run, world: World, tmp_path: Path) -> None:
    counts(run, world)
    other = fitted_again(world).set_params(name="other")
    other.save(tmp_path / "other")
    result = run("index", world.pictures, "--retriever", tmp_path / "other")
    assert result.exit_code == 0
    assert "changing to the search model other" in result.stderr
    with Collection.open(world.collection) as collection:
        assert collection.status().retriever == "other"
        assert collection.status().fingerprint == other.fingerprint


def fitted_again(world: World) -> Retriever:
    """Return the retriever of a world with another model."""
    other = Retriever.load(world.retriever)
    entries = json.loads(world.captions.read_text())
    images = other.image_features([world.pictures / entry["file"] for entry in entries])
    other.model_ = CCA(n_components=4).fit(images, other.text_features([entry["captions"][0] for entry in entries]))
    return other


def test_points_that_the_retriever_no_longer_makes_are_told_even_if_no_picture_changed(run: Run, world: World) -> None:
    counts(run, world)
    saved = world.retriever.with_name("again")
    fitted_again(world).save(saved)
    with closing(sqlite3.connect(world.collection / "collection.sqlite")) as raw, raw:
        for (name,) in raw.execute("SELECT name FROM model_file").fetchall():
            body = (saved / name).read_bytes()
            kept = (body, hashlib.sha256(body).hexdigest(), name)
            raw.execute("UPDATE model_file SET body = ?, sha256 = ? WHERE name = ?", kept)
    result = run("index", world.pictures)
    assert result.exit_code == 2
    assert "encodes the pictures again" in result.stderr
    assert run("search", "a red car").exit_code == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nowhere"], "does not exist; name the folder"),
        (["empty"], "there is no picture in empty"),
        (["pictures", "--retriever", "defualt"], "did you mean 'default'"),
        (["pictures", "--captions", "nowhere.csv"], "nowhere.csv does not exist"),
        (["pictures", "--collection", "file.txt"], "file.txt is a file"),
    ],
)
def test_a_mistake_costs_one_line(run: Run, world: World, words: list[str], hint: str) -> None:
    Path("empty").mkdir()
    Path("file.txt").touch()
    result = run("index", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr
    assert not world.collection.exists()


def test_an_emptied_folder_does_not_empty_the_collection(run: Run, world: World) -> None:
    counts(run, world)
    for picture in world.pictures.glob("*.png"):
        picture.unlink()
    result = run("index", world.pictures)
    assert result.exit_code == 2
    assert "perhaps because a disk is not there" in result.stderr
    with Collection.open(world.collection) as collection:
        assert len(collection) == 60


def test_captions_of_other_pictures_are_an_error(run: Run, world: World) -> None:
    Path("other.csv").write_text("file,caption\nsomewhere.png,a cat\n")
    result = run("index", world.pictures, "--captions", "other.csv")
    assert result.exit_code == 2
    assert "describes no picture" in result.stderr
    assert "somewhere.png" in result.stderr
