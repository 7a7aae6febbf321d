"""The folder of results."""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from diptych.benchmark.results.record import Record
from diptych.errors import InvalidInputError

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PACKED_SUFFIX = ".jsonl.gz"


class ResultFolder:
    """Records on disk: ``<task>/<method>/<fold>.json``, and packed ones in ``<task>.jsonl.gz``.

    A file appears whole or not at all, so that a run can be stopped at any moment and go on later. Where a unit is
    both packed and a file of its own, the file counts.

    >>> import tempfile
    >>> from diptych.benchmark.results import Record, ResultFolder
    >>> record = Record(task="t", dataset="d", setting="seen", features="f", method="cca", method_title="CCA", fold=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = ResultFolder(folder)
    ...     _ = results.write(record)
    ...     results.has("t", "cca", 0), results.has("t", "cca", 1), len(list(results.records()))
    (True, False, 1)
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._packed: dict[tuple[str, str, int], Record] | None = None

    def write(self, record: Record) -> Path:
        """Write a record in place of the one its unit had, and return the file."""
        path = self.file(*record.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(record.as_json(), stream, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
                stream.write("\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return path

    def file(self, task: str, method: str, fold: int) -> Path:
        """Return where the file of a unit is, or would be."""
        for name in (task, method):
            if not _SAFE.fullmatch(name):
                raise InvalidInputError(f"{name!r} cannot name a file: use letters, digits, dots and hyphens")
        return self.path / task / method / f"{fold}.json"

    def has(self, task: str, method: str, fold: int) -> bool:
        """Whether there is a record of this unit."""
        return self.file(task, method, fold).exists() or (task, method, fold) in self._packed_records()

    def find(self, task: str, method: str, fold: int) -> Record | None:
        """Return the record of a unit, or None."""
        path = self.file(task, method, fold)
        return _read(path) if path.exists() else self._packed_records().get((task, method, fold))

    def records(self) -> Iterator[Record]:
        """Yield every record by task, method and fold."""
        if not self.path.is_dir():
            raise InvalidInputError(f"{self.path} is not a folder of results; `diptych bench run` makes one")
        files = {
            (path.parent.parent.name, path.parent.name, int(path.stem)): path
            for path in self.path.glob("*/*/*.json")
            if path.stem.isdigit()
        }
        packed = self._packed_records()
        for key in sorted({*files, *packed}):
            yield _read(files[key]) if key in files else packed[key]

    def _packed_records(self) -> dict[tuple[str, str, int], Record]:
        if self._packed is None:
            found = (record for path in sorted(self.path.glob(f"*{PACKED_SUFFIX}")) for record in _unpacked(path))
            self._packed = {record.key: record for record in found}
        return self._packed


def _read(path: Path) -> Record:
    return Record.from_text(path.read_text(encoding="utf-8"), str(path))


def _unpacked(path: Path) -> Iterator[Record]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                yield Record.from_text(line, f"line {number} of {path}")
    except (OSError, EOFError) as problem:
        raise InvalidInputError(f"{path} cannot be read ({problem}); pack the results again") from None
