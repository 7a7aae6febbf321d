"""What a run leaves on disk: a record for each task, method and fold, in folders or packed; what two runs differ in."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.atomic_files import atomic_write
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test
from diptych.space import DIRECTIONS, Direction

FORMAT = 1
"""The version of the files; another number means another meaning."""

ByDirection = dict[Direction, Any]

# Titles, places, times and versions are no numbers of retrieval.
_CIRCUMSTANCES = (
    *("format", "dataset", "setting", "features", "method_title", "group", "n_bits"),
    *("seconds", "peak_memory_bytes", "versions", "machine", "started"),
)
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PACKED_SUFFIX = ".jsonl.gz"
STUDIES = "studies"
_STUDY_SUFFIXES = (".json", ".json.gz")
_TRIALS = 10_000
_MEASURE = "AP()"


@dataclass(frozen=True)
class Record:
    """Everything measured when one method was chosen, fitted and asked on one fold.

    ``measures`` and ``chance`` hold, for each measure's representation such as ``AP()``, a number per direction;
    ``per_query`` one per query, rounded to six digits, None for a query without a relevant item. ``query_classes``
    gives for each query the position of its class in ``classes``, the first of several. ``parameters`` are those
    chosen on the hold-outs, whose score is in ``validation``. ``train_class_counts`` are the training pictures of each
    class, empty without single labels. ``peak_memory_bytes`` is by how much the resident memory
    of the process rose above its level at the start of the unit, None where the system does not tell.
    ``fingerprint`` is a digest of the declaration (data, features, protocol, method and grid), so that results of
    another declaration are not taken for this one's.
    """

    task: str
    dataset: str
    setting: str
    features: str
    method: str
    method_title: str
    fold: int
    group: str = ""
    n_bits: int | None = None
    seed: int = 0
    train_classes: list[str] = field(default_factory=list)
    test_classes: list[str] = field(default_factory=list)
    n_train: int = 0
    train_class_counts: dict[str, int] = field(default_factory=dict)
    n_queries: ByDirection = field(default_factory=dict)
    n_gallery: ByDirection = field(default_factory=dict)
    measures: dict[str, ByDirection] = field(default_factory=dict)
    chance: dict[str, ByDirection] = field(default_factory=dict)
    curves: dict[str, ByDirection] = field(default_factory=dict)
    per_query: dict[str, ByDirection] = field(default_factory=dict)
    query_classes: ByDirection = field(default_factory=dict)
    classes: list[str] = field(default_factory=list)
    confusion: dict[str, Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    validation: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    code_statistics: dict[str, Any] | None = None
    space: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    started: str = ""
    fingerprint: str = ""
    format: int = FORMAT

    @property
    def key(self) -> tuple[str, str, int]:
        """The unit of work: task, method and fold."""
        return self.task, self.method, self.fold

    def average(self, measure: str = "AP()") -> float:
        """Return the mean of both directions."""
        values = self.measures[measure].values()
        return float(sum(values) / len(values))

    def numbers(self) -> dict[str, Any]:
        """Return what was measured about retrieval, without times, memory, versions and places."""
        return {name: value for name, value in self.as_json().items() if name not in _CIRCUMSTANCES}

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for ``json.dumps``."""
        names = sorted((one.name for one in fields(self)), key=lambda name: name != "format")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], source: str = "this document") -> Record:
        """Make a record of plain values; what is no record is an error that names ``source``."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, Mapping) else None
            raise InvalidInputError(
                f"{source} is no result of format {FORMAT} (found {found!r}); run the benchmark again"
            )
        known = {one.name for one in fields(cls)}
        try:
            return cls(**{name: value for name, value in document.items() if name in known})
        except TypeError as problem:
            raise InvalidInputError(f"{source} is not complete ({problem}); delete it and run again") from None

    @classmethod
    def from_text(cls, text: str, source: str = "this text") -> Record:
        """Read a record from the text of a file or of a line."""
        try:
            document = json.loads(text)
        except ValueError:
            raise InvalidInputError(f"{source} is not JSON; delete it and run again") from None
        return cls.from_json(document, source)


class ResultFolder:
    """Records on disk: ``<task>/<method>/<fold>.json``, and packed ones in ``<task>.jsonl.gz``.

    Beside them, ``studies/<name>.json`` is what a study such as ``diptych bench clicks`` wrote with
    ``--output``, packed ``studies/<name>.json.gz``.

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
        with atomic_write(path, durable=True, private=True) as draft:
            draft.write_text(_line(record), encoding="utf-8")
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

    def studies(self) -> dict[str, Any]:
        """Return the documents of studies by name; the file counts where one is packed, too."""
        found: dict[str, Any] = {}
        for suffix in reversed(_STUDY_SUFFIXES):
            for path in sorted((self.path / STUDIES).glob(f"*{suffix}")):
                found[path.name.removesuffix(suffix)] = _study(path)
        return dict(sorted(found.items()))

    def _packed_records(self) -> dict[tuple[str, str, int], Record]:
        if self._packed is None:
            found = (record for path in sorted(self.path.glob(f"*{PACKED_SUFFIX}")) for record in _unpacked(path))
            self._packed = {record.key: record for record in found}
        return self._packed


def _line(record: Record) -> str:
    return json.dumps(record.as_json(), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _read(path: Path) -> Record:
    return Record.from_text(path.read_text(encoding="utf-8"), str(path))


def _unpacked(path: Path) -> Iterator[Record]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                yield Record.from_text(line, f"line {number} of {path}")
    except (OSError, EOFError) as problem:
        raise InvalidInputError(f"{path} cannot be read ({problem}); pack the results again") from None


def _study(path: Path) -> Any:
    try:
        content = path.read_bytes()
        return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, ValueError) as problem:
        raise InvalidInputError(f"{path} cannot be read ({problem}); run the study again") from None


def pack_results(source: str | PathLike[str], target: str | PathLike[str]) -> list[Path]:
    """Write ``<task>.jsonl.gz`` into ``target`` for every task of ``source``, one record a line, and return the files.

    Documents of studies become ``studies/<name>.json.gz``. The same records always give the same bytes.
    """
    results, folder = ResultFolder(source), Path(target)
    files = [
        _pack(folder / f"{task}{PACKED_SUFFIX}", map(_line, records))
        for task, records in groupby(results.records(), key=lambda record: record.task)
    ]
    for name, document in results.studies().items():
        lines = [json.dumps(document, separators=(",", ":")) + "\n"]
        files.append(_pack(folder / STUDIES / f"{name}{_STUDY_SUFFIXES[1]}", lines))
    return files


def _pack(path: Path, lines: Iterable[str]) -> Path:
    buffer = io.BytesIO()
    # Without a time in the header, packing twice gives one file.
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as stream:
        for line in lines:
            stream.write(line.encode())
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as draft:
        draft.write_bytes(buffer.getvalue())
    return path


@dataclass(frozen=True)
class UnitDifference:
    """The largest difference between two records of one unit, over all measures and directions."""

    task: str
    method: str
    fold: int
    largest: float
    where: str


@dataclass(frozen=True)
class MethodDifference:
    """How the two runs of one method differ on the queries of all folds: second minus first, and its significance.

    ``p_value`` is that of a paired randomisation test over all queries of both directions, None where the two runs did
    not ask the same number of queries.
    """

    task: str
    method: str
    first: float
    second: float
    p_value: float | None

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first


@dataclass(frozen=True)
class ResultsDifference:
    """Two folders compared: units that differ, methods that do, and what only one of them has."""

    compared: int
    units: tuple[UnitDifference, ...]
    methods: tuple[MethodDifference, ...]
    only_first: tuple[tuple[str, str, int], ...]
    only_second: tuple[tuple[str, str, int], ...]

    @property
    def largest(self) -> float:
        """The largest difference of any number."""
        return max((unit.largest for unit in self.units), default=0.0)


def compare_results(first: ResultFolder, second: ResultFolder, *, tolerance: float = 1e-6) -> ResultsDifference:
    """Compare the numbers of every unit that both folders have; differences up to ``tolerance`` do not count."""
    if tolerance < 0:
        raise InvalidInputError(f"tolerance must be 0 or more, got {tolerance}")
    left, right = ({record.key: record for record in folder.records()} for folder in (first, second))
    common = sorted(left.keys() & right.keys())
    units = [_unit_difference(left[key], right[key]) for key in common]
    differing = [unit for unit in units if not unit.largest <= tolerance]
    names = {(unit.task, unit.method) for unit in differing}
    pairs = [(left[key], right[key]) for key in common if key[:2] in names]
    grouped = groupby(pairs, key=lambda pair: (pair[0].task, pair[0].method))
    return ResultsDifference(
        len(common),
        tuple(sorted(differing, key=lambda unit: -unit.largest)),
        tuple(_method_difference(task, method, list(group)) for (task, method), group in grouped),
        tuple(sorted(left.keys() - right.keys())),
        tuple(sorted(right.keys() - left.keys())),
    )


def _unit_difference(first: Record, second: Record) -> UnitDifference:
    largest, where = 0.0, ""
    for measure in {**first.measures, **second.measures}:
        for way in DIRECTIONS:
            values = [record.measures.get(measure, {}).get(way, np.nan) for record in (first, second)]
            gap = abs(values[0] - values[1])
            # A number that one side lacks is as far away as can be.
            gap = float("inf") if np.isnan(gap) else float(gap)
            if gap > largest:
                largest, where = gap, f"{measure} {way}"
    return UnitDifference(*first.key, largest, where)


def _method_difference(task: str, method: str, pairs: list[tuple[Record, Record]]) -> MethodDifference:
    first, second = (float(np.mean([_main(pair[side]) for pair in pairs])) for side in (0, 1))
    values = [_queries(pair[side] for pair in pairs) for side in (0, 1)]
    comparable = len(values[0]) == len(values[1]) > 0
    p_value = randomisation_test(*values, trials=_TRIALS).p_value if comparable else None
    return MethodDifference(task, method, first, second, p_value)


def _main(record: Record) -> float:
    return record.average(next(iter(record.measures)))


def _queries(records: Iterable[Record]) -> list[Any]:
    """Return the values of all queries, NaN where there is none."""
    values = [record.per_query.get(_MEASURE, {}).get(way, []) for record in records for way in DIRECTIONS]
    return [np.nan if value is None else value for part in values for value in part]
