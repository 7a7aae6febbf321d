"""The outcome of one method on one fold of one task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from diptych.errors import InvalidInputError
from diptych.space import Direction

FORMAT = 1
"""The version of the files; another number means another meaning."""

ByDirection = dict[Direction, Any]


@dataclass(frozen=True)
class Record:
    """Everything measured when one method was chosen, fitted and asked on one fold.

    ``measures`` and ``chance`` hold, for each measure's representation such as ``AP()``, a number per direction;
    ``per_query`` one per query, rounded to six digits, None for a query without a relevant item. ``query_classes``
    gives for each query the position of its class in ``classes``, the first of several. ``parameters`` are those
    chosen on the hold-outs, whose score is in ``validation``. ``peak_memory_bytes`` is by how much the resident memory
    of the process rose above its level at the start of the unit, None where the system does not tell.
    ``fingerprint`` is a digest of the declaration (data, features, protocol, method and grid), so that results of
    another declaration are not taken for this one's.

    >>> from diptych.benchmark.results import Record
    >>> record = Record(task="t", dataset="d", setting="seen", features="f", method="cca", method_title="CCA", fold=0)
    >>> Record.from_json(record.as_json()) == record
    True
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
        document = self.as_json()
        return {name: document[name] for name in _NUMBERS}

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


_NUMBERS = (
    "task",
    "method",
    "fold",
    "seed",
    "train_classes",
    "test_classes",
    "n_train",
    "n_queries",
    "n_gallery",
    "measures",
    "chance",
    "curves",
    "per_query",
    "query_classes",
    "classes",
    "confusion",
    "parameters",
    "model",
    "validation",
    "code_statistics",
    "space",
    "fingerprint",
)
