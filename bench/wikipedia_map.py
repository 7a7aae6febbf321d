"""The bars of correlation and semantic matching: tuned and default MAP on Wikipedia, orderings also on Pascal Sentence.

Run ``python -m bench.wikipedia_map`` with the data sets under ``DIPTYCH_DATA``. Parameters are chosen on hold-outs
of the training pairs (5 × 25 %); the test pairs are asked once. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np

from diptych.benchmark import TaskReport, find_task, run_task
from diptych.data import load_dataset
from diptych.metrics import AP
from diptych.models import CCA, SCM, SM, MarginalSCM, MarginalSM, Preprocessed
from diptych.protocols import evaluate_model

TUNED_BARS = {"CCA": 0.235, "SM": 0.257, "marginal SM": 0.270, "SCM": 0.258, "marginal SCM": 0.270}
DEFAULTS = {"CCA": CCA(), "SM": SM(), "marginal SM": MarginalSM(), "SCM": SCM(), "marginal SCM": MarginalSCM()}
DEFAULT_LOSS = 0.01


def check(name: str, value: float, bar: float) -> bool:
    """Print one line and say whether the bar is met."""
    met = value >= bar
    print(f"{name:<44}{value:>8.4f}  bar {bar:.4f}  {'met' if met else 'MISSED'}")
    return met


def default_scores() -> dict[str, float]:
    """Return the mean test MAP of each model with no parameter given, on ℓ2-normalised images."""
    splits = load_dataset("wikipedia")
    scores = {}
    for name, model in DEFAULTS.items():
        fitted = Preprocessed(model=model, images="l2", texts="none").fit(*splits.train.aligned())
        scores[name] = evaluate_model(fitted, splits.test).average(AP())
    return scores


def check_orderings(report: TaskReport) -> bool:
    """Check that abstraction beats correlation beats chance, and that NCc ≥ NC > ℓ1, ℓ2 for SM."""
    average = {row.name: row.average for row in report.rows}
    distance = {row.metric: row.average for row in report.distances if row.method == "SM"}
    met = [
        check(f"{report.task}: better of SM and SCM over CCA", max(average["SM"], average["SCM"]), average["CCA"]),
        check(f"{report.task}: CCA over chance", average["CCA"], report.chance),
        check(f"{report.task}: SM, NCc over NC", distance["pearson"], distance["cosine"]),
        check(f"{report.task}: SM, NC over l1", distance["cosine"], distance["l1"]),
        check(f"{report.task}: SM, NC over l2", distance["cosine"], distance["euclidean"]),
    ]
    return all(met)


def main() -> int:
    """Run both tasks, print every bar and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    met = [
        check(f"wikipedia, defaults: {name}", score, TUNED_BARS[name] - DEFAULT_LOSS)
        for name, score in default_scores().items()
    ]
    reports = {
        name: run_task(find_task(name), methods=TUNED_BARS, n_jobs=options.jobs)
        for name in ("wikipedia", "wikipedia-plain", "pascal")
    }
    for task in ("wikipedia", "wikipedia-plain"):
        met += [check(f"{task}: {name}", reports[task].row(name).average, bar) for name, bar in TUNED_BARS.items()]
    met += [check_orderings(report) for report in reports.values()]
    print("all bars met" if np.all(met) else "some bars were missed")
    return 0 if np.all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
