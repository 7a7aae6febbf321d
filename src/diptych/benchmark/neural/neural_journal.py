"""What a comparison has measured so far, on disk."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from diptych.benchmark.neural.neural_data import NeuralData, Reads
from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.benchmark.neural.neural_result import NeuralResult
from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.errors import InvalidInputError
from diptych.protocols.code_digest import code_digest
from diptych.protocols.tuning_journal import pairs_digest

# Everything that a number of the journal depends on, besides the features.
_SOURCES = ("arrays.py", "space.py", "metrics", "models", "protocols", "benchmark/neural")


class NeuralJournal:
    """A file with one line for each fit, so that the same comparison goes on where it was stopped.

    The name of the file is a digest of the data and of the code that measures them; a line that was cut off by a crash
    is ignored.
    """

    def __init__(self, folder: str | os.PathLike[str], task: NeuralTask, data: NeuralData) -> None:
        digest = hashlib.sha256("\0".join((code_digest(*_SOURCES), task.name, task.images, task.texts)).encode())
        reads: Reads = "features" if data.lacks("words") else "words"
        for part in (*data.parts("features"), *data.parts(reads)):
            digest.update(pairs_digest(part).encode())
        self.path = Path(folder) / f"{task.name}-{digest.hexdigest()[:32]}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read()
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, method: NeuralMethod, seed: int, epochs: int | None) -> NeuralResult | None:
        """Return the result of a fit that was measured before, or None."""
        return self._done.get(_key(method, seed, epochs))

    def add(self, method: NeuralMethod, seed: int, epochs: int | None, result: NeuralResult) -> None:
        """Append a fit; it is on disk when the call returns."""
        key = _key(method, seed, epochs)
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write(f"\n{json.dumps({'fit': key, 'result': result.as_json()})}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._done[key] = result

    def _read(self) -> dict[str, NeuralResult]:
        done: dict[str, NeuralResult] = {}
        if not self.path.exists():
            return done
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry: dict[str, Any] = json.loads(line)
                done[str(entry["fit"])] = NeuralResult(**entry["result"])
            except (ValueError, KeyError, TypeError):
                continue
        return done


def _key(method: NeuralMethod, seed: int, epochs: int | None) -> str:
    parameters = {name: repr(value) for name, value in method.model.get_params().items() if name != "seed"}
    return json.dumps([method.key, type(method.model).__name__, parameters, seed, epochs], sort_keys=True)
