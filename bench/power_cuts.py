"""Cut the power of a machine that writes to a collection, again and again, and look for anything lost.

Run ``python -m bench.power_cuts`` (needs the ``search`` extra, Linux and a C compiler). A process writes to a
collection as in ``bench/kill_trials.py`` over a disk that keeps what was synced and nothing else (``unsynced.c``),
and is killed at a random moment. Then the disk is put together as a power cut may leave it: every file as it was last
synced or with later changes, cut short, or full of zeros; every folder with the names that were last synced, and any
of the later ones. What was acknowledged must be there, and everything must be readable. The command exits with 1 when
a trial fails; ``campaign.py`` has its options.

With ``--unsynced`` the process has ``--durability process``, which syncs nothing. Then the last changes may be lost,
and files may be torn: the collection must be whole after `diptych repair --go-back`, which may name retrievers as lost.
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
from functools import partial
from pathlib import Path
from typing import NamedTuple

from diptych.collection.storage import ledger

from bench import kill_trials
from bench.campaign import Outcome, campaign
from diptych.collection import Collection, CollectionError, Record, go_back
from tests.doubles import ToyRetriever, wrong_points

_SOURCE = Path(__file__).with_name("unsynced.c")
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
        shorter = latest[: self._dice.randrange(len(latest) + 1)]
        zeros = synced[: len(latest)] + bytes(max(0, len(latest) - len(synced)))
        # Bytes that were synced stay, if the file has only grown since.
        torn = shorter if len(shorter) >= len(synced) or not latest.startswith(synced) else synced
        return self._dice.choice([synced, latest, torn, zeros]) if latest != synced else synced


class PowerCuts(kill_trials.Trials):
    """Trials in which the machine loses its power with the process."""

    def __init__(self, workplace: Path, seed: int, *, is_synced: bool) -> None:
        self.disk, self.shadow, self.n_cuts, self.is_synced = workplace / "disk", workplace / "shadow", 0, is_synced
        self.preload = {"LD_PRELOAD": str(build_shim(workplace)), "UNSYNCED_SHADOW": str(self.shadow)}
        super().__init__(str(self.disk / "collection"), workplace, seed)

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a child work for some time, cut the power, and return what is wrong with the collection."""
        shutil.rmtree(self.shadow, ignore_errors=True)
        self.shadow.mkdir()
        # Whatever is there when the machine starts is on the disk.
        subprocess.run([sys.executable, "-S", "-c", _SYNC_ALL, self.disk], env=os.environ | self.preload, check=True)
        durability = {} if self.is_synced else {"DIPTYCH_DURABILITY": "process"}
        self.work(number, seconds, **self.preload, **durability)
        after = self.workplace / "after"
        Disk(self.shadow, self.dice).write(key_of(self.disk), self.disk, after)
        shutil.rmtree(self.disk)
        after.rename(self.disk)
        self.n_cuts += 1
        ledger.boot_id = lambda: f"start {self.n_cuts}"
        return self.problems()

    def problems(self) -> list[str]:
        """Return what is wrong; where nothing was synced, what is torn goes back to what is whole before."""
        if self.is_synced:
            return super().problems()
        self.under_way()
        go_back(Path(self.location))
        with Collection.open(self.location, load_retriever=_load_toy) as collection:
            wrong = [problem for problem in collection.repair().problems if "unfinished" not in problem]
            wrong += wrong_points(collection)
            collection.add([Record(captions=["after the cut"], id="after")])
            return wrong + list(collection.verify().problems)


def _load_toy(folder: str | os.PathLike[str]) -> ToyRetriever:
    try:
        return ToyRetriever.load(folder)
    except (OSError, ValueError):
        raise CollectionError(f"the retriever in {folder} cannot be read") from None


def run_trials(trials: int, seed: int = 0, longest: float = 2.0, *, is_synced: bool = True) -> Outcome:
    """Cut the power again and again; return what was counted, and what went wrong.

    All trials have one collection, or one each where nothing is synced. One that cannot be read ends the round.
    """
    counts, wrong = dict.fromkeys(("trials", "acknowledged", "lost", "corrupt", "recovered", "named as lost"), 0), []
    own_boot_id = ledger.boot_id
    with tempfile.TemporaryDirectory(prefix="diptych-power-") as base:
        for number in range(trials):
            if number == 0 or not is_synced:
                workplace = Path(base, str(number))
                workplace.mkdir()
                runner = PowerCuts(workplace, 1000 * seed + number, is_synced=is_synced)
            acknowledged = runner.steps
            try:
                problems = runner.run(number, runner.dice.uniform(0.3, longest))
                outcome = "recovered" if not problems else "lost" if is_synced else "corrupt"
            except Exception as problem:
                # Retrievers are not made again, and a collection of which nothing was synced may be nothing.
                is_named = isinstance(problem, CollectionError) and not is_synced
                outcome = "named as lost" if is_named else "corrupt"
                problems = [] if is_named else [f"{type(problem).__name__}: {problem}"]
            finally:
                ledger.boot_id = own_boot_id
            counts["trials"] += 1
            counts["acknowledged"] += runner.steps - acknowledged
            counts[outcome] += 1
            wrong += [f"trial {number}: {problem}" for problem in problems]
            if is_synced and outcome == "corrupt":
                break
    return counts, wrong


if __name__ == "__main__":
    if "--unsynced" in sys.argv:
        sys.argv.remove("--unsynced")
        run_unsynced = partial(run_trials, is_synced=False)
        sys.exit(campaign(__doc__, "a power cut with nothing synced", run_unsynced, trials=20, at_once=5))
    sys.exit(campaign(__doc__, "a power cut", run_trials, trials=200, at_once=25))
