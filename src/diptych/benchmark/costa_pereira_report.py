"""What the study of Costa Pereira et al. (2014) found, as values that print and serialise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from diptych.benchmark.published import Published
from diptych.metrics import ConfusionMatrix
from diptych.space import DIRECTIONS, Direction


@dataclass(frozen=True)
class MapRow:
    """MAP of one method in both directions, beside the printed one; ``detail`` is a distance, or what was chosen."""

    method: str
    image_query: float
    text_query: float
    detail: str = ""
    published: Published | None = None

    @property
    def average(self) -> float:
        """The mean of the two directions."""
        return (self.image_query + self.text_query) / 2


@dataclass(frozen=True, eq=False)
class MethodDetail:
    """What the figures show of one method on the test part.

    ``precision`` is interpolated at recall 0, 0.1, … 1; ``categories`` holds the MAP of each category, ``confusion``
    which class the rankings of each class speak for.
    """

    precision: dict[Direction, tuple[float, ...]]
    categories: dict[Direction, dict[str, float | None]]
    confusion: dict[Direction, ConfusionMatrix]


@dataclass(frozen=True, eq=False)
class CostaPereiraReport:
    """The tables of one data set, and what the figures show of each method.

    ``representations``, ``distances`` (Table IV) and ``correlation`` (Tables V and VI) are measured on the validation
    part, ``test`` (Tables VIII and IX) on the test part after a new fit on all training pairs.
    """

    task: str
    title: str
    n_train: int
    n_validation: int
    n_test: int
    representations: tuple[MapRow, ...]
    distances: tuple[MapRow, ...]
    correlation: tuple[MapRow, ...]
    test: tuple[MapRow, ...]
    details: dict[str, MethodDetail]
    chance: MethodDetail
    seconds: float
    notes: tuple[str, ...] = ()

    def row(self, table: str, method: str, detail: str | None = None) -> MapRow:
        """Return the row of ``method`` in one of the tables."""
        rows: tuple[MapRow, ...] = getattr(self, table)
        return next(row for row in rows if row.method == method and detail in (None, row.detail))

    def gain(self, method: str) -> float:
        """Return by how many percent SCM's average on the test part exceeds that of ``method``, as the paper prints."""
        return 100 * (self.row("test", "SCM").average / self.row("test", method).average - 1)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        tables = {
            table: [{**asdict(row), "average": row.average} for row in getattr(self, table)]
            for table in ("representations", "distances", "correlation", "test")
        }
        figures = {name: _detail_as_json(detail) for name, detail in (*self.details.items(), ("chance", self.chance))}
        plain = ("task", "title", "n_train", "n_validation", "n_test", "seconds")
        return {**{name: getattr(self, name) for name in plain}, **tables, "figures": figures, "notes": [*self.notes]}


def _detail_as_json(detail: MethodDetail) -> dict[str, Any]:
    return {
        "precision": {way: [*detail.precision[way]] for way in DIRECTIONS},
        "categories": detail.categories,
        "confusion": {
            way: {"classes": matrix.classes.tolist(), "counts": matrix.counts.tolist()}
            for way, matrix in detail.confusion.items()
        },
    }
