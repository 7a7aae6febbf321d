"""What a comparison of codes found, as values that print and serialise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych import __version__
from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.code_storage import CodeStorage
from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.errors import InvalidInputError
from diptych.metrics import AP
from diptych.space import DIRECTIONS


@dataclass(frozen=True)
class BitBudgetReport:
    """The results of every method, length and fold on one data set, and what codes of each length cost.

    ``supervised`` names the methods that learn from labels; ``left_out`` says why a method is not here.
    """

    task: HashingTask
    results: tuple[CodeResult, ...]
    storage: tuple[CodeStorage, ...]
    supervised: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they were measured."""
        return tuple(dict.fromkeys(result.method for result in self.results))

    @property
    def bits(self) -> tuple[int, ...]:
        """The lengths of the codes, ascending."""
        return tuple(sorted({result.n_bits for result in self.results}))

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len({result.fold for result in self.results})

    def select(self, setting: str, method: str | None = None, n_bits: int | None = None) -> list[CodeResult]:
        """Return the results of a setting, of one method and length where they are given."""
        return [
            result
            for result in self.results
            if result.setting == setting and method in (None, result.method) and n_bits in (None, result.n_bits)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with means and deviations over the folds."""
        return {
            "task": self.task.name,
            "title": self.task.title,
            "notes": list(self.task.notes),
            "ties": "expected",
            "gallery": "view codes; unified_map has one code of both sides for every item of the gallery",
            "denominator": "all relevant items",
            "folds": self.n_folds,
            "supervised": list(self.supervised),
            "left_out": self.left_out,
            "means": [
                self._mean(setting, method, bits) for setting in self.task.settings for method, bits in self._fits
            ],
            "storage": [
                asdict(cost)
                | {"bytes_per_item": cost.bytes_per_item, "megabytes_per_million": cost.megabytes_per_million}
                for cost in self.storage
            ],
            "results": [result.as_json() for result in self.results],
            "diptych": __version__,
        }

    @property
    def _fits(self) -> list[tuple[str, int]]:
        return [(method, bits) for method in self.methods for bits in self.bits]

    def _mean(self, setting: str, method: str, n_bits: int) -> dict[str, Any]:
        chosen = self.select(setting, method, n_bits)
        values: dict[str, Any] = {"setting": setting, "method": method, "n_bits": n_bits, "folds": len(chosen)}
        for way in DIRECTIONS:
            mean, deviation = spread([result.measures[AP().label][way] for result in chosen])
            chance, _ = spread([result.chance[AP().label][way] for result in chosen])
            values[way] = {"map": mean, "deviation": deviation, "chance": chance}
        return values


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values of folds and their standard deviation, 0 where there is one fold.

    >>> from diptych.benchmark.hashing import spread
    >>> spread([0.25, 0.5, 0.75])
    (0.5, 0.25)
    """
    if not values:
        raise InvalidInputError("nothing was measured there; choose another setting, method or length")
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
