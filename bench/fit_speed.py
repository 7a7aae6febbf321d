"""Processor seconds to fit every method that learns from features, from 1,000 to 100,000 pairs.

Run ``python -m bench.fit_speed``; ``--quick`` stops at smaller sizes, ``--method NAME`` measures one. The pairs
are drawn: 128 and 32 numbers of ten classes, float32. All methods have their defaults, of which ``max_pairs`` limits
some to a sample of the pairs; numerical libraries get one thread. The number of pairs doubles as long as a fit is
expected within a cap of seconds. The exponent b of the cost a·nᵇ is that of a line through the logarithms from 1,000
pairs on, or of the four largest sizes where the cap leaves fewer, with its 95 % interval: a wide one says that the cost
is no power of n at these sizes.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import stats

from bench.speed_report import SpeedReport, speed_parser
from diptych.errors import MissingPackageError
from diptych.models import CrossModalModel, model_classes

SIZES = (125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 100_000)
LEAST_PAIRS, LEAST_SIZES = 1_000, 4
WIDTHS, CLASSES = (128, 32), 10
CAPS = {"quick": 0.5, "full": 60.0}

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw_pairs(count: int) -> Pairs:
    """Return pictures, texts and labels: a topic of its own for every pair, around that of its class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, 16))
    maps = [rng.normal(size=(16, width)) for width in WIDTHS]
    labels = rng.integers(CLASSES, size=count)
    topics = centres[labels] + rng.normal(size=(count, 16))
    images, texts = ((topics @ side + rng.normal(size=(count, side.shape[1]))).astype(np.float32) for side in maps)
    return images, texts, labels


def fit_seconds(cls: type[CrossModalModel], pairs: Pairs) -> float:
    """Return the processor seconds of one fit."""
    started = time.process_time()
    cls().fit(*pairs)
    return time.process_time() - started


def measured_costs(cls: type[CrossModalModel], pairs: Pairs, cap: float) -> dict[int, float]:
    """Return the seconds by number of pairs, up to where the next fit is expected to take longer than the cap.

    Nothing for a method of which the least fit does, such as a network in the quick form.
    """
    fit_seconds(cls, tuple(side[: SIZES[0]] for side in pairs))  # Loads what the method needs.
    costs: dict[int, float] = {}
    for size in SIZES:
        spent = [*costs.values()]
        if len(spent) >= LEAST_SIZES and spent[-1] * max(1.0, spent[-1] / spent[-2]) > cap:
            break
        costs[size] = fit_seconds(cls, tuple(side[:size] for side in pairs))
        if costs[SIZES[0]] > cap:
            return {}
    n_large = sum(size >= LEAST_PAIRS for size in costs)
    return dict([*costs.items()][-max(LEAST_SIZES, n_large) :])


def exponent(costs: dict[int, float]) -> tuple[float, float]:
    """Return the exponent of the cost and half the width of its 95 % interval."""
    line = stats.linregress(np.log(list(costs)), np.log(list(costs.values())))
    return float(line.slope), float(stats.t.ppf(0.975, len(costs) - 2) * line.stderr)


def main() -> int:
    """Measure, print the table and return the exit code."""
    methods = {name: cls for name, cls in model_classes().items() if cls.needs}
    parser = speed_parser(__doc__)
    parser.add_argument("--method", choices=methods, metavar="NAME", help="one of the methods of `diptych methods`")
    options = parser.parse_args()
    report = SpeedReport(__file__, options, threads=1)
    pairs = draw_pairs(SIZES[-1])
    lines = []
    for name, cls in methods.items():
        if options.method not in (None, name):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                costs = measured_costs(cls, pairs, CAPS["quick" if options.quick else "full"])
        except MissingPackageError as missing:
            print(f"{name}: left out, {missing}", flush=True)
            continue
        if not costs:
            print(f"{name}: left out, {SIZES[0]} pairs take longer than the cap", flush=True)
            continue
        for size, seconds in costs.items():
            report.cost(f"fit of {name}", [seconds], size=size, unit="processor s")
        slope, reach = exponent(costs)
        largest = max(costs)
        lines.append(f"{name:<28}{largest:>8,}{costs[largest]:>10.2f}{slope:>10.2f} ±{reach:.2f} of {len(costs)} sizes")
    print(f"\n{'method':<28}{'pairs':>8}{'seconds':>10}{'exponent':>10}")
    print("\n".join(lines))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
