"""The tables that ``evaluate`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from diptych.cli.code_facts import print_codes
from diptych.cli.experiment import Outcome
from diptych.cli.measures import in_words, is_rank
from diptych.cli.model_building import readable_parameters
from diptych.cli.terminal import table
from diptych.metrics import Measure
from diptych.models import method_name
from diptych.space import DIRECTIONS

_RELEVANT = {"label": "what shares a label with the query", "instance": "what belongs to the query's own picture"}


def print_report(outcome: Outcome, console: Console) -> None:
    """Print what was done, what came out, and codes and categories if there are any."""
    _print_header(outcome, console)
    console.print()
    _print_measures(outcome, console)
    if outcome.codes is not None:
        console.print()
        print_codes(outcome.codes, console)
    if outcome.categories:
        console.print()
        _print_categories(outcome, console)


def _print_header(outcome: Outcome, console: Console) -> None:
    model, splits = outcome.scaled, outcome.splits
    facts = {
        "data set": splits.name + _in_brackets(splits.options),
        "train": splits.train.describe(),
        "test": splits.test.describe(),
        **{f"{side} by": encoder.identity for side, encoder in outcome.encoders.items()},
        "method": method_name(type(model.model)) + _in_brackets(readable_parameters(model.model)),
        "scaling": f"images {model.images}, texts {model.texts}",
        "relevant": _RELEVANT[outcome.relevant],
        "ties": outcome.experiment.ties,
    }
    if outcome.tuning is not None:
        best = outcome.tuning.best
        facts["chosen"] = (
            f"best of {len(outcome.tuning.trials)} settings, MAP {best.mean:.4f} ± {best.deviation:.4f} on 5 hold-outs"
        )
    listing = table()
    listing.show_header = False
    listing.add_column(no_wrap=True)
    listing.add_column(overflow="fold")
    for fact, value in facts.items():
        listing.add_row(fact, value)
    console.print(listing)


def _in_brackets(options: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" ({listed})" if listed else ""


def _print_measures(outcome: Outcome, console: Console) -> None:
    evaluation = outcome.evaluation
    listing = table("Measures")
    listing.add_column("measure", no_wrap=True, style="bold")
    for heading in ("image query", "text query", "average", "chance"):
        listing.add_column(heading, justify="right", no_wrap=True)
    listing.add_column("in words")
    for measure in outcome.measures:
        numbers = [*(evaluation[way].mean[measure] for way in DIRECTIONS)]
        numbers += [evaluation.average(measure), evaluation.chance(measure)]
        listing.add_row(measure.label, *(_number(measure, value) for value in numbers), in_words(measure))
    console.print(listing)
    bounds = [f"{interval.low:.4f}–{interval.high:.4f}" for interval in (outcome.intervals[way] for way in DIRECTIONS)]
    console.print(f"\n95 % bootstrap interval of MAP: images {bounds[0]}, texts {bounds[1]}")
    skipped = sum(evaluation[way].n_without_relevant for way in DIRECTIONS)
    if skipped:
        console.print(f"{skipped:,} queries without a relevant item are left out.")


def _number(measure: Measure, value: float) -> str:
    return f"{value:,.1f}" if is_rank(measure) else f"{value:.4f}"


def _print_categories(outcome: Outcome, console: Console) -> None:
    listing = table("MAP by category of the query")
    listing.add_column("category", no_wrap=True, style="bold")
    for heading in ("images", "texts", "image query", "text query", "average", "chance"):
        listing.add_column(heading, justify="right", no_wrap=True)
    for category in outcome.categories:
        values = [category.value[way] for way in DIRECTIONS]
        chances = [category.chance[way] for way in DIRECTIONS]
        listing.add_row(
            category.name,
            f"{category.n_images:,}",
            f"{category.n_texts:,}",
            *(_maybe(value) for value in (*values, _middle(values), _middle(chances))),
        )
    console.print(listing)


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _maybe(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
