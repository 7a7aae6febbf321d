"""Defaults that were changed because of their units, beside the former ones, on hold-outs of training pairs alone.

Run ``python -m bench.defaults`` with Wikipedia under ``DIPTYCH_DATA``. Each setting is fitted on 75 % of the
training pairs and asked on the rest, on the data set's features and on their counts; the test pairs are not looked at.
MAP over both directions, and its deviation over hold-outs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.data import Pairs, load_dataset
from diptych.models import PLS, BipartiteCrossProduct, LogisticCrossProduct
from diptych.protocols import HoldOut, tune

# The default first.
TRIALS: tuple[tuple[Any, Mapping[str, list[Any]]], ...] = (
    (PLS(), {"text_points": ["projection", "least_squares"]}),
    (LogisticCrossProduct(), {"C": [None, 1.0]}),
    (BipartiteCrossProduct(), {"C": [None, 1.0]}),
)


def units(pairs: Pairs) -> dict[str, Pairs]:
    """Return the pairs with features as they come, and as numbers a thousand times as large."""
    images, texts, labels = pairs.aligned()
    counts = np.rint(1000 * np.asarray(images)), np.rint(1000 * np.asarray(texts))
    return {"as they come": pairs, "counts": Pairs(*counts, labels=labels)}


def main() -> int:
    """Print one line for each method, features and setting; 1 when a default is beaten by more than a deviation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    beaten = False
    for name, pairs in units(load_dataset("wikipedia").train).items():
        for model, grid in TRIALS:
            trials = tune(model, pairs, grid, HoldOut(repeats=options.repeats)).trials
            for trial in trials:
                setting = ", ".join(f"{key}={value}" for key, value in trial.parameters.items())
                print(
                    f"{type(model).__name__:<24}{name:<16}{setting:<28}{trial.mean:.4f} ± {trial.deviation:.4f}",
                    flush=True,
                )
            default, *others = trials
            beaten |= any(other.mean - default.mean > max(other.deviation, default.deviation) for other in others)
    return int(beaten)


if __name__ == "__main__":
    sys.exit(main())
