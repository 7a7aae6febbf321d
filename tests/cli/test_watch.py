"""``diptych index --watch`` as people run it: a process that follows real files until it is interrupted."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diptych.cli.commands.index import print_changes
from diptych.cli.console.progress import Stages
from diptych.collection import AddReport, Collection
from tests.cli.command_line import World


class Watching:
    """The running program, and what it has said so far."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self._out, self._err = folder / "out", folder / "err"
        command = [sys.executable, "-m", "diptych", "index", *map(str, words), "--watch"]
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)

    @property
    def results(self) -> list[str]:
        return self._out.read_text().splitlines()

    @property
    def notes(self) -> str:
        # However its lines are broken.
        return " ".join(self._err.read_text().split())

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.notes
            assert time.monotonic() < deadline, (self.results, self.notes)
            time.sleep(0.02)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(*words: str | Path) -> Watching:
        started.append(Watching(tmp_path, *words))
        started[-1].wait_until(lambda: "watching " in started[-1].notes)
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_a_folder_is_followed_until_ctrl_c(
    watching: Callable[..., Watching], scenery: World, nothing_indexed: Path
) -> None:
    world = scenery.copied(nothing_indexed / "pictures")
    first, second, third, *_ = sorted(world.pictures.glob("*.png"))
    first.with_suffix(".txt").write_text("a picture of the land")
    (world.pictures / "broken.png").write_text("no picture")
    program = watching(world.pictures, "--retriever", world.retriever, "--label-folders", "--captions", "sidecar")
    assert program.results == ["60 pictures and 1 caption are searchable: 60 added, 1 skipped."]
    (world.pictures / "holiday").mkdir()
    shutil.copyfile(first, world.pictures / "holiday" / "new.png")
    (world.pictures / "holiday" / "new.txt").write_text("a picture of the sea")
    second.rename(world.pictures / "renamed.png")
    third.unlink()
    # On one line, unless this process was held up in between.
    program.wait_until(
        lambda: sorted(", ".join(program.results[1:]).split(", ")) == ["1 added", "1 removed", "1 renamed"]
    )
    there = {path.relative_to(world.pictures).as_posix() for path in world.pictures.rglob("*.png")}
    with Collection.open(world.collection) as collection:
        assert {item.path for item in collection} == there - {"broken.png"}
        # New pictures get their labels and captions as those that were there.
        new = collection["holiday/new.png"]
        assert (new.labels, new.captions) == (("holiday",), ("a picture of the sea",))
        assert {answer.id for answer in collection.search("a picture", k=60)} >= {new.id}
    program.process.send_signal(signal.SIGINT)
    assert program.process.wait(60) == 0
    assert program.notes.endswith("stopped watching; 60 pictures are searchable")
    # What could not be read was said once.
    assert program.notes.count("broken.png:") == 1


def test_changes_are_one_line_of_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    report = AddReport(added=2, skipped={str(Path.cwd() / "a.png"): "it is no picture"}, removed=["b.png"])
    print_changes(report, Stages(), as_json=True)
    said = capsys.readouterr()
    assert said.err == "a.png: it is no picture\n"
    assert said.out.count("\n") == 1
    told = json.loads(said.out)
    assert (told["added"], told["removed"], list(told["skipped"])) == (2, ["b.png"], [str(Path.cwd() / "a.png")])
