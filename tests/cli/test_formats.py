"""A folder as people have it, with a file of each kind: everything that can be read is found, everything else named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection import Collection, Query
from diptych.data import picture_files
from tests.cli.command_line import Run, World
from tests.doubles.picture_samples import CODECS, KINDS, PILLOW_KINDS, picture, write_picture, write_video

EXTRA_KINDS = ("heic", "dng", "svg", *CODECS)
SCENES = (KINDS.index("mp4"), 40, 41)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of each kind, one of two that nothing reads, three damaged ones, and what lies beside pictures."""
    folder = tmp_path_factory.mktemp("kinds")
    for number, kind in enumerate(KINDS):
        write_picture(folder / f"{kind}.{kind}", picture(number))
    write_video(folder / "mp4.mp4", [picture(number) for number in SCENES], seconds=3)
    (folder / "a.jxl").write_bytes(b"\xff\x0a" + bytes(40))
    (folder / "b.eps").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n")
    for kind in ("heic", "dng", "mp4"):
        content = (folder / f"{kind}.{kind}").read_bytes()
        (folder / f"damaged.{kind}").write_bytes(content[: 300 if kind == "mp4" else len(content) // 3])
    for name in ("notes.txt", "photo.xmp", "captions.json", "album.html", "Makefile"):
        (folder / name).write_text("words")
    return folder


@pytest.fixture
def folder(files: Path, nothing_indexed: Path) -> Path:
    return Path(shutil.copytree(files, nothing_indexed / "kinds"))


def test_one_file_of_each_of_26_kinds(run: Run, scenery: World, folder: Path) -> None:
    result = run("index", folder, "--retriever", scenery.retriever, "--json")
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout)
    # The video of three scenes has three items.
    assert counts["added"] == counts["pictures"] == len(KINDS) + 2 == 28
    # Every file that cannot be read is named with its reason, and nothing else is.
    reasons = {Path(path).name: reason for path, reason in counts["skipped"].items()}
    assert set(reasons) == {"a.jxl", "b.eps", "damaged.heic", "damaged.dng", "damaged.mp4"}
    assert "JXL" in reasons["a.jxl"]
    assert all("cannot be read" in reason for reason in reasons.values())
    assert counts["unread_kinds"] == {"EPS": 1, "JXL": 1}
    assert "2 files of kinds that cannot be read: EPS, JXL; convert them to JPEG or PNG" in result.stderr
    assert "skipped 3 files that cannot be used:" in result.stderr
    # What it shows finds it, drawn anew, and so does the file itself.
    with Collection.open(folder / ".diptych") as collection:
        for number, kind in enumerate(KINDS):
            for query in (picture(number), folder / f"{kind}.{kind}"):
                assert collection.search(Query.picture(query), k=1)[0].path == folder / f"{kind}.{kind}"
    # A second run reads nothing again.
    again = json.loads(run("index", folder, "--json").stdout)
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, len(KINDS))


def test_a_moment_of_a_video_is_found_with_its_time(run: Run, scenery: World, folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name not in ("mp4.mp4", "jpg.jpg"):
            path.unlink()
    run("index", folder, "--retriever", scenery.retriever)
    picture(SCENES[2]).save(tmp_path / "query.png")
    found = json.loads(run("search", tmp_path / "query.png", "--json", "--all").stdout)["answers"][0]
    assert Path(found["path"]).name == "mp4.mp4"
    assert 6 <= found["seconds"] < 7
    assert "kinds/mp4.mp4 at 0:06" in run("search", tmp_path / "query.png", "--format", "table", "--all").stdout
    # A pipe gets files, each once.
    assert run("search", tmp_path / "query.png", "--all").stdout.splitlines() == ["kinds/mp4.mp4", "kinds/jpg.jpg"]
    assert run("remove", folder / "mp4.mp4", "--yes").stdout.startswith("3 items removed, 1 left")


PACKAGES = ("pillow_heif", "rawpy", "av", "resvg_py")
# As where the packages were never installed: whatever asks for one is told that there is none.
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({PACKAGES!r}))
from diptych.cli import main
sys.exit(main())
"""


def test_without_the_extra_its_name_is_said(scenery: World, folder: Path) -> None:
    # A picture of a phone that only calls itself JPEG.
    (folder / "damaged.heic").rename(folder / "really.jpg")
    for path in folder.glob("damaged.*"):
        path.unlink()
    command = [sys.executable, "-c", WITHOUT, "index", folder, "--retriever", scenery.retriever]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert f"{len(PILLOW_KINDS)} pictures are searchable" in made.stdout
    missing = sorted(kind.upper() for kind in EXTRA_KINDS)
    every = ", ".join(sorted(["EPS", "JXL", *missing]))
    said = " ".join(made.stderr.split())
    assert f"11 files of kinds that cannot be read: {every}; install diptych[formats] for {', '.join(missing)}" in said
    assert "really.jpg: cannot be read as a picture: it is a HEIC picture, which diptych[formats] reads" in said
    listed = (folder / ".diptych" / "skipped.txt").read_text()
    assert "heic.heic: files of the kind HEIC cannot be read; install diptych[formats]" in listed


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    for known in (picture_files.picture_suffixes, picture_files._unread_suffixes):
        known.cache_clear()
    yield
    for known in (picture_files.picture_suffixes, picture_files._unread_suffixes):
        known.cache_clear()


@pytest.mark.usefixtures("without_the_extra")
def test_a_folder_of_nothing_else_says_so(run: Run, indexed: World, folder: Path) -> None:
    for path in folder.iterdir():
        if path.suffix != ".heic":
            path.unlink()
    made = run("index", folder, "--retriever", indexed.retriever)
    assert made.exit_code == 2
    assert "2 files of kinds that cannot be read: HEIC; install diptych[formats]" in " ".join(made.stderr.split())
    asked = run("search", folder / "heic.heic", "--collection", indexed.collection)
    assert "install diptych[formats]" in asked.stderr
