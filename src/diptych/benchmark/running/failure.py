"""A unit that gave no result."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.benchmark.running.unit import Unit


@dataclass(frozen=True)
class Failure:
    """What went wrong, in one line; ``missing`` where nothing is wrong but a package or data set is not here."""

    unit: Unit
    message: str
    missing: bool = False

    @classmethod
    def of(cls, unit: Unit, error: BaseException, *, missing: bool = False) -> Failure:
        """Describe an error in one line."""
        text = " ".join(str(error).split()) or "no message"
        return cls(unit, text if missing else f"{type(error).__name__}: {text}", missing)
