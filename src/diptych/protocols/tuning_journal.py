"""What a search for parameters has done so far, on disk, under a digest of the data and the source code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import Measure
from diptych.models import CrossModalModel
from diptych.protocols.hold_outs import HoldOuts

_PACKAGE = Path(__file__).parents[1]


@cache
def source_digest(*sources: str) -> str:
    """Return a digest of files and folders of the package, so that a mended method does not show its old numbers.

    >>> from diptych.protocols.tuning_journal import source_digest
    >>> source_digest("space.py") == source_digest("space.py", "metrics")
    False
    """
    digest = hashlib.sha256()
    for source in sources:
        place = _PACKAGE / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


# Everything that a score depends on.
_SOURCES = ("arrays.py", "space.py", "data", "metrics", "models", "protocols")


class TuningJournal:
    """A file with one line for each fit of a search, so that the same search goes on where it was stopped.

    The name of the file is a digest of everything that shapes a score: the pairs, the model and its parameters, the
    protocol, the measure and the code of Diptych that computes it. A line that was cut off by a crash is ignored.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        pairs: Pairs,
        model: CrossModalModel,
        protocol: HoldOuts,
        measure: Measure,
    ) -> None:
        shape = (source_digest(*_SOURCES), _described(model), repr(protocol), repr(measure), pairs_digest(pairs))
        name = hashlib.sha256("\0".join(shape).encode()).hexdigest()[:32]
        self.path = Path(folder) / f"{name}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read()
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, setting: Mapping[str, Any], split: int) -> tuple[float, float] | None:
        """Return the score and the seconds of a fit that was done before, or None."""
        return self._done.get((_setting_key(setting), split))

    def add(self, setting: Mapping[str, Any], split: int, score: float, seconds: float) -> None:
        """Append a fit; it is on disk when the call returns."""
        line = json.dumps({"setting": _setting_key(setting), "split": split, "score": score, "seconds": seconds})
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write(f"\n{line}\n" if self._is_cut_off() else f"{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._done[_setting_key(setting), split] = score, seconds

    def _read(self) -> dict[tuple[str, int], tuple[float, float]]:
        if not self.path.exists():
            return {}
        done = {}
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                done[str(entry["setting"]), int(entry["split"])] = float(entry["score"]), float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return done

    def _is_cut_off(self) -> bool:
        if not self.path.exists() or self.path.stat().st_size == 0:
            return False
        with self.path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"


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


def _described(model: CrossModalModel) -> str:
    return f"{type(model).__name__} " + " ".join(
        f"{name}={value!r}" for name, value in sorted(model.get_params().items())
    )


def _setting_key(setting: Mapping[str, Any]) -> str:
    return json.dumps({name: repr(value) for name, value in setting.items()}, sort_keys=True)
