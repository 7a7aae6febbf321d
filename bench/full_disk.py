"""Fill the disk of a collection at random moments, and look for anything lost, half-stored or unclear.

Run ``python -m bench.full_disk`` as root, who may mount a small disk in memory (needs the ``search`` extra). Each
trial fills the disk to a random last part and adds items until there is no room: the error must say how many bytes are
missing, everything acknowledged must be there and nothing else, ``remove`` and ``repair`` must work, and after room was
made everything goes on. The command exits with 1 when a trial fails; ``campaign.py`` has its options.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.campaign import Outcome, campaign, failures
from diptych.collection import AddProgress, Collection, Record
from diptych.errors import NoRoomError
from tests.doubles import ToyRetriever, wrong_points

_DISK_BYTES = 24 << 20
_MOST_ADDITIONS = 400


@contextmanager
def small_disk(n_bytes: int = _DISK_BYTES) -> Iterator[Path]:
    """Mount a disk of so many bytes; whoever may not gets a ``PermissionError``."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", folder], capture_output=True, check=False
        )
        if mounted.returncode:
            raise PermissionError("this user may not mount a disk")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(path: Path, left: int) -> None:
    """Take up the room of a disk but so many bytes."""
    with path.open("wb") as stream:
        free = os.statvfs(path.parent)
        with suppress(OSError):
            os.posix_fallocate(stream.fileno(), 0, max(1, free.f_bavail * free.f_frsize - left))


def trial(folder: Path, dice: random.Random, name: str) -> list[str]:
    """Fill a disk, run into it, make room, and return what is wrong with that."""
    problems = []
    acknowledged: dict[str, str] = {}
    ballast = folder / "ballast"
    with Collection.open(folder / "collection", load_retriever=ToyRetriever.load) as collection:
        before = {item.id: item.captions[0] for item in collection}
        fill(ballast, dice.randrange(3 << 20))
        try:
            for number in range(_MOST_ADDITIONS):
                texts = {f"{name}-{number}-{row}": f"{name} text {number} {row}" for row in range(dice.randint(1, 200))}
                records = [Record(captions=[text], id=key) for key, text in texts.items()]

                def done(step: AddProgress, texts: dict[str, str] = texts) -> None:
                    acknowledged.update({key: texts[key] for key in step.stored})

                collection.add(records, progress=done)
            problems.append("the disk was never full")
        except NoRoomError as error:
            if error.missing <= 0:
                problems.append(f"{error.missing} bytes are missing")
        except Exception as error:
            problems.append(f"{type(error).__name__} instead of a clear error: {error}")
        problems += _unlike(collection, before | acknowledged, "on a full disk")
        # Others take what is left, too.
        fill(folder / "more", 0)
        known = sorted(item.id for item in collection)
        gone = dice.sample(known, min(len(known), 5))
        try:
            collection.remove(gone)
            collection.repair()
        except Exception as error:
            problems.append(f"removing on a full disk: {type(error).__name__}: {error}")
        left = {key: text for key, text in (before | acknowledged).items() if key not in gone}
        problems += _unlike(collection, left, "after removing")
        for path in (ballast, folder / "more"):
            path.unlink()
        collection.add([Record(captions=["room again"], id=f"{name}-again")])
        problems += _unlike(collection, left | {f"{name}-again": "room again"}, "with room")
        problems += collection.verify().problems
        problems += wrong_points(collection)
        collection.remove([item.id for item in collection])
        collection.repair()
    return problems


def _unlike(collection: Collection, expected: dict[str, str], when: str) -> list[str]:
    found = {item.id: item.captions[0] for item in collection}
    return [] if found == expected else [f"{when}, {sorted(found.keys() ^ expected.keys())[:5]} are there or not"]


def run_trials(trials: int, seed: int = 0) -> Outcome:
    """Fill a disk again and again; return what was counted, and what went wrong."""
    dice = random.Random(seed)
    with small_disk() as folder:
        Collection.create(folder / "collection", ToyRetriever(), load_retriever=ToyRetriever.load).close()
        failed, wrong = failures(trials, lambda number: trial(folder, dice, f"{seed}-{number}"))
    return {"trials": trials, "lost": failed, "corrupt": 0, "recovered": trials - failed}, wrong


if __name__ == "__main__":
    try:
        sys.exit(campaign(__doc__, "a full disk", run_trials, trials=50, at_once=5))
    except PermissionError as problem:
        sys.exit(str(problem))
