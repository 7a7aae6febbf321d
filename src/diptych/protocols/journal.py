"""What a long run has done so far, on disk, so that the same run goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import Parallel

from diptych.arrays import AnyArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError

T = TypeVar("T")
Progress = Callable[[int, int], None]
_PACKAGE = Path(__file__).parents[1]


@cache
def source_digest(*sources: str) -> str:
    """Return a digest of files and folders of the package, so that a mended method does not show its old numbers."""
    digest = hashlib.sha256()
    for source in sources:
        place = _PACKAGE / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def pairs_digest(pairs: Pairs) -> str:
    """Return a digest of everything in feature pairs: rows, owners, labels."""
    digest = hashlib.sha256()
    parts: Sequence[AnyArray | None] = (
        np.asarray(pairs.images),
        np.asarray(pairs.texts),
        np.asarray(pairs.owners),
        pairs.labels,
    )
    for part in parts:
        if part is None:
            digest.update(b"none")
            continue
        values = np.ascontiguousarray(part)
        if values.dtype.hasobject:
            raise InvalidInputError("a journal needs feature matrices or strings on both sides; encode the pairs first")
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest.hexdigest()


class Journal(Generic[T]):
    """A file with one line for each result, under a digest of everything that shapes a result.

    ``identity`` is what goes into that digest: the data, the declaration, and `source_digest` of the code. ``write``
    makes plain values of a result and ``read`` makes the result of them again. A line that a crash cut off is ignored.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        identity: Iterable[str],
        *,
        read: Callable[[Any], T],
        write: Callable[[T], Any] = lambda result: result,
        prefix: str = "",
    ) -> None:
        digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:32]
        self.path = Path(folder) / f"{prefix}{digest}.jsonl"
        self._write = write
        self._is_cut_off = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read(read)
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, key: str) -> T | None:
        """Return the result that an earlier run noted, or None."""
        return self._done.get(key)

    def add(self, key: str, result: T) -> None:
        """Append a result; it is on disk when the call returns."""
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write("\n" if self._is_cut_off else "")
            stream.write(json.dumps({"key": key, "value": self._write(result)}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._is_cut_off = False
        self._done[key] = result

    def _read(self, read: Callable[[Any], T]) -> dict[str, T]:
        text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        self._is_cut_off = bool(text) and not text.endswith("\n")
        done: dict[str, T] = {}
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                done[str(entry["key"])] = read(entry["value"])
            except (ValueError, KeyError, TypeError):
                continue
        return done


def run_noted(
    calls: Sequence[tuple[str, Any]],
    journal: Journal[T] | None = None,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[T]:
    """Return what each call gives, in their order; those that the journal knows are not made again.

    ``calls`` are pairs of a key for the journal and a call of `joblib.delayed`; each result is noted when it comes, and
    then ``progress(done, total)`` is called.
    """
    results = [None if journal is None else journal.known(key) for key, _ in calls]
    waiting = [number for number, result in enumerate(results) if result is None]
    done = len(calls) - len(waiting)
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(calls[number][1] for number in waiting)
    for number, result in zip(waiting, runs, strict=True):
        results[number] = result
        if journal is not None:
            journal.add(calls[number][0], result)
        done += 1
        if progress is not None:
            progress(done, len(calls))
    return [result for result in results if result is not None]
