"""Cut the power of a machine that writes to a collection, again and again, and look for anything lost.

    python -m bench.power_cuts [--fault unsynced]

Needs the ``search`` extra, Linux and a C compiler. A process writes to a collection in a folder as in
``bench/kill_trials.py`` over a disk that keeps what was synced and nothing else (``unsynced.c``), and is killed at a
random moment. Then the disk is put together as a power cut may leave it: every file with the sectors that were synced
and any of the later ones, or zeros in their place, and every folder with the names that were last synced, and any of
the later ones. What was acknowledged must be there, and everything must be readable. The command exits with 1 when a
trial fails; ``campaign.py`` has its options.

With the fault ``unsynced`` the process has ``DIPTYCH_DURABILITY=process``. Then the last changes may be lost; what is
there must be whole after `diptych repair`.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import kill_trials
from bench.campaign import Outcome, campaign
from diptych.collection import Collection, Record
from tests.doubles import ToyRetriever, wrong_points

_SOURCE = Path(__file__).with_name("unsynced.c")
SECTOR_BYTES = 512
_NO_FOLLOW, _HERE, _NUMBER_AND_BIRTH = 0x100, -100, 0x900
_SYNC_ALL = """
import os, sys
for base, _, names in os.walk(sys.argv[1]):
    for path in (base, *(os.path.join(base, name) for name in names)):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.close(file)
"""


class Entry(NamedTuple):
    """What a name in a folder stands for."""

    key: str
    is_folder: bool


def build_shim(folder: Path) -> Path:
    """Compile what stands for the disk."""
    target = folder / "unsynced.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(target), str(_SOURCE)], check=True)
    return target


def key_of(path: Path) -> str:
    """Return what the shim calls a file: its number and the time of its birth, which tells one from a later one."""
    about = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).statx(_HERE, os.fsencode(path), _NO_FOLLOW, _NUMBER_AND_BIRTH, about):
        raise FileNotFoundError(path)
    (number,), (seconds, part) = struct.unpack_from("=Q", about, 32), struct.unpack_from("=qI", about, 80)
    return f"{number}-{seconds}.{part:09d}"


class Disk:
    """The disk after a power cut: what was synced, and any part of what was not."""

    def __init__(self, shadow: Path, dice: random.Random) -> None:
        self._shadow = shadow
        self._dice = dice

    def write(self, key: str, now: Path | None, target: Path) -> None:
        """Put a folder together as it may be after the cut; ``now`` is where it is, if it is still there."""
        target.mkdir(parents=True)
        synced = self._synced(key)
        current = {} if now is None else {path.name: Entry(key_of(path), path.is_dir()) for path in now.iterdir()}
        for name in sorted(synced.keys() | current.keys()):
            before, after = synced.get(name), current.get(name)
            # A name that was not synced may have reached the disk or not.
            chosen = before if before == after or self._dice.random() < 0.5 else after
            if chosen is None:
                continue
            path = None if now is None or chosen != after else now / name
            if chosen.is_folder:
                self.write(chosen.key, path, target / name)
            else:
                (target / name).write_bytes(self._content(chosen.key, path))

    def _synced(self, key: str) -> dict[str, Entry]:
        kept = self._shadow / key
        lines = [line.split(" ", 2) for line in kept.read_text().splitlines()] if kept.exists() else []
        return {name: Entry(own, kind == "d") for own, kind, name in lines}

    def _content(self, key: str, now: Path | None) -> bytes:
        kept = self._shadow / key
        synced = kept.read_bytes() if kept.exists() else b""
        latest = synced if now is None else now.read_bytes()
        whole = self._dice.random()
        if latest == synced or whole < 0.4:
            return synced if whole < 0.2 else latest
        # Where a file was made shorter and that was not synced, it may be long again; where it has grown, it may have
        # any length between, and room without content.
        length = self._dice.randint(len(synced), len(latest)) if len(latest) >= len(synced) else len(synced)
        share, found = self._dice.random(), bytearray(synced[:length] + bytes(max(0, length - len(synced))))
        for start in range(0, length, SECTOR_BYTES):
            if self._dice.random() < share:
                part = latest[start : min(start + SECTOR_BYTES, length)]
                found[start : start + len(part)] = part
        return bytes(found)


class PowerCuts(kill_trials.Trials):
    """Trials in which the machine loses its power with the process."""

    def __init__(self, workplace: Path, seed: int, *, is_synced: bool) -> None:
        self.disk, self.shadow, self.is_synced = workplace / "disk", workplace / "shadow", is_synced
        self.preload = {"LD_PRELOAD": str(build_shim(workplace)), "UNSYNCED_SHADOW": str(self.shadow)}
        durability = {} if is_synced else {"DIPTYCH_DURABILITY": "process"}
        super().__init__(str(self.disk / "collection"), workplace, seed, self.preload | durability)

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a writer work for some time, cut the power, and return what is wrong with the collection."""
        shutil.rmtree(self.shadow, ignore_errors=True)
        self.shadow.mkdir()
        # Whatever is there when the machine starts is on the disk.
        subprocess.run([sys.executable, "-S", "-c", _SYNC_ALL, self.disk], env=os.environ | self.preload, check=True)
        writer = self.begin(1000 * self.seed + number)
        kill_trials.wait_for_work(writer, seconds)
        self.kill(writer)
        after = self.workplace / "after"
        Disk(self.shadow, self.dice).write(key_of(self.disk), self.disk, after)
        shutil.rmtree(self.disk)
        after.rename(self.disk)
        return self.problems()

    def problems(self) -> list[str]:
        """Return what is wrong; where nothing was synced, the last changes may be lost."""
        if self.is_synced:
            return super().problems()
        self.under_way()
        with Collection.open(self.location, load_retriever=ToyRetriever.load) as collection:
            wrong = [problem for problem in collection.repair().problems if "unfinished" not in problem]
            wrong += wrong_points(collection)
            collection.add([Record(captions=["after the cut"], id="after")])
            return wrong + [problem for problem in collection.verify().problems if "unfinished" not in problem]


def run_trials(trials: int, seed: int = 0, longest: float = 0.8, *, is_synced: bool = True) -> Outcome:
    """Cut the power again and again; return what was counted, and what went wrong.

    All trials have one collection; one that cannot be read ends the round.
    """
    counts, wrong = dict.fromkeys(("trials", "acknowledged", "lost", "corrupt", "recovered"), 0), list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="diptych-power-") as base,
        closing(PowerCuts(Path(base), 1000 * seed, is_synced=is_synced)) as runner,
    ):
        for number in range(trials):
            try:
                problems = runner.run(number, runner.dice.uniform(0.0, longest))
                outcome = "lost" if problems else "recovered"
            except Exception as problem:
                outcome, problems = "corrupt", [f"{type(problem).__name__}: {problem}"]
            counts["trials"] += 1
            counts[outcome] += 1
            counts["acknowledged"] = runner.steps
            wrong += [f"trial {number}: {problem}" for problem in problems]
            if outcome == "corrupt":
                break
    return counts, wrong


if __name__ == "__main__":
    unsynced = {"unsynced": ("a power cut with nothing synced", partial(run_trials, is_synced=False))}
    sys.exit(campaign(__doc__, "a power cut", run_trials, trials=200, at_once=25, others=unsynced))
