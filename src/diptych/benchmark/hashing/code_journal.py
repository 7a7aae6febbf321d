"""What a comparison of codes has measured so far, on disk."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.data import DatasetSplits
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.protocols.code_digest import code_digest
from diptych.protocols.tuning_journal import pairs_digest

# Everything that a number of the journal depends on.
_SOURCES = ("arrays.py", "space.py", "codes", "data", "metrics", "models", "protocols", "benchmark/hashing")


class CodeJournal:
    """A file with one line for each fit, so that the same comparison goes on where it was stopped.

    The name of the file is a digest of the features and of the code that measures them; a line that was cut off by a
    crash is ignored.
    """

    def __init__(self, folder: str | os.PathLike[str], task: HashingTask, splits: DatasetSplits) -> None:
        shape = (
            code_digest(*_SOURCES),
            task.name,
            task.images,
            task.texts,
            pairs_digest(splits.train),
            pairs_digest(splits.test),
        )
        name = hashlib.sha256("\0".join(shape).encode()).hexdigest()[:32]
        self.path = Path(folder) / f"{task.name}-{name}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read()
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, method: CrossModalModel, n_bits: int, fold: int) -> list[CodeResult] | None:
        """Return the results of a fit that was measured before, or None."""
        return self._done.get(_key(method, n_bits, fold))

    def add(self, method: CrossModalModel, n_bits: int, fold: int, results: list[CodeResult]) -> None:
        """Append a fit; it is on disk when the call returns."""
        key = _key(method, n_bits, fold)
        line = json.dumps({"fit": key, "results": [result.as_json() for result in results]})
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write(f"\n{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._done[key] = results

    def _read(self) -> dict[str, list[CodeResult]]:
        done: dict[str, list[CodeResult]] = {}
        if not self.path.exists():
            return done
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry: dict[str, Any] = json.loads(line)
                done[str(entry["fit"])] = [CodeResult(**values) for values in entry["results"]]
            except (ValueError, KeyError, TypeError):
                continue
        return done


def _key(method: CrossModalModel, n_bits: int, fold: int) -> str:
    parameters = {name: repr(value) for name, value in method.get_params().items() if name not in ("n_bits", "seed")}
    return json.dumps([type(method).__name__, parameters, n_bits, fold], sort_keys=True)
