"""Arrays made from the tables, in sealed folders named by the change they are of: ``derived/columns-17``."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray
from diptych.atomic_files import damage_in_folder, read_json, seal_folder, write_json

NOTE = "note.json"


class DerivedArrays(NamedTuple):
    """Mapped arrays, a note, and the change after which they were made."""

    arrays: dict[str, AnyArray]
    note: dict[str, Any]
    change: int


def newest_arrays(derived: Path, kind: str, last: int) -> DerivedArrays | None:
    """Open the newest arrays of a kind that are not newer than a change; None if there are none, or damaged ones."""
    numbers = sorted((int(path.name.rpartition("-")[2]) for path in derived.glob(f"{kind}-*")), reverse=True)
    for number in numbers:
        if number <= last:
            with suppress(OSError, ValueError, KeyError):
                return _opened(derived / f"{kind}-{number}", number)
    return None


def _opened(folder: Path, change: int) -> DerivedArrays:
    damage = damage_in_folder(folder, all_bytes=False)
    if damage:
        raise ValueError(f"{folder} is damaged ({damage})")
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    return DerivedArrays(arrays, read_json(folder / NOTE), change)


def save_arrays(
    derived: Path, kind: str, change: int, arrays: Mapping[str, AnyArray], note: dict[str, Any]
) -> DerivedArrays:
    """Write arrays, remove the earlier ones, and return them mapped; one writer at a time."""
    folder, draft = derived / f"{kind}-{change}", derived / f".tmp-{kind}-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(draft / f"{name}.npy", array)
    write_json(draft / NOTE, note)
    seal_folder(draft)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    for other in derived.glob(f"{kind}-*"):
        if other != folder:
            # What another process has mapped stays readable.
            shutil.rmtree(other, ignore_errors=True)
    return _opened(folder, change)


class Background:
    """At most one thread that makes arrays; what goes wrong there leaves the earlier ones."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job in the background, unless one is running."""

        def run() -> None:
            with suppress(Exception):
                job()

        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=run, name=self._name, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the job."""
        if self._thread is not None:
            self._thread.join()


@contextmanager
def only_maker(derived: Path, kind: str) -> Iterator[bool]:
    """Yield True to the only process that makes arrays of a kind, False to others."""
    derived.mkdir(parents=True, exist_ok=True)
    with (derived / f".{kind}.lock").open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_only = True
        except BlockingIOError:
            is_only = False
        yield is_only
