"""From values to places on the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """Maps values from ``low`` to ``high`` to places from ``start`` to ``end``, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, value = (math.log(one) if self.logarithmic else one for one in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values inside the range, six at most."""
        return self._decades() if self.logarithmic else self._even()

    def _even(self) -> list[float]:
        step = _round_step((self.high - self.low) / (_MOST_TICKS - 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _decades(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)) - 1, math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            ticks = [factor * 10.0**power for power in powers for factor in factors]
            inside = [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]
            if len(inside) <= _MOST_TICKS + 1:
                break
        return inside


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def written(value: float) -> str:
    """Return a value as it stands beside an axis.

    >>> from diptych.benchmark.reporting.charts.scale import written
    >>> written(0.30000000000000004), written(2000.0)
    ('0.3', '2,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
