"""What ``evaluate`` finds out about the codes of a hashing method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from diptych.benchmark.hashing import codes_of, look_up
from diptych.cli.terminal import table
from diptych.codes import CodeStatistics, code_statistics
from diptych.data import Pairs
from diptych.metrics import HammingLookup
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols import Relevant, Retrieval
from diptych.space import DIRECTIONS, Direction

_RADIUS = 2


@dataclass(frozen=True)
class CodeFacts:
    """Statistics of the codes of both sides of the test part, and what lies within each radius of a query."""

    images: CodeStatistics
    texts: CodeStatistics
    lookups: Mapping[Direction, HammingLookup]

    @property
    def radius(self) -> int:
        """2, as in most of the literature, or all bits where there are fewer."""
        return min(_RADIUS, self.images.n_bits)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "statistics": {"images": asdict(self.images), "texts": asdict(self.texts)},
            "lookup": {way: self._lookup(way) for way in DIRECTIONS},
        }

    def _lookup(self, way: Direction) -> dict[str, Any]:
        lookup = self.lookups[way]
        micro, mean = lookup.micro_curve(), lookup.mean_curve()
        return {
            "radius": self.radius,
            "precision, nothing found is zero": lookup.precision(self.radius),
            "queries that find nothing": lookup.unanswered(self.radius),
            "all queries together": {"recall": micro.x.tolist(), "precision": micro.y.tolist()},
            "mean of queries": {"recall": mean.x.tolist(), "precision": mean.y.tolist()},
        }


def code_facts(model: CrossModalModel, test: Pairs, relevant: Relevant) -> CodeFacts | None:
    """Return the facts about the codes of a hashing method, behind its scaling or not; None for other methods."""
    method = model.model if isinstance(model, Preprocessed) else model
    if not isinstance(method, HashingModel):
        return None
    codes = codes_of(model, test)
    return CodeFacts(
        code_statistics(codes["image_query"], method.n_bits),
        code_statistics(codes["text_query"], method.n_bits),
        look_up(codes, codes, Retrieval(test, test), method.n_bits, relevant),
    )


def print_codes(facts: CodeFacts, console: Console) -> None:
    """Print whether the codes use their bits, and what opening the buckets near a query finds."""
    listing = table(f"Codes of the test part, {facts.images.n_bits} bits")
    listing.add_column("side", no_wrap=True, style="bold")
    headings = (
        "items",
        "distinct codes",
        "mean share of ones",
        "constant bits",
        "mean |correlation|",
        "bytes per item",
    )
    for heading in headings:
        listing.add_column(heading, justify="right", no_wrap=True)
    for side, statistics in (("images", facts.images), ("texts", facts.texts)):
        listing.add_row(
            side,
            f"{statistics.n_items:,}",
            f"{statistics.distinct:,}",
            f"{statistics.bit_balance:.3f}",
            str(statistics.constant_bits),
            f"{statistics.mean_abs_correlation:.3f}",
            str(statistics.bytes_per_item),
        )
    console.print(listing)
    within = [
        f"{way.replace('_', ' ')} {facts.lookups[way].precision(facts.radius):.4f} "
        f"({facts.lookups[way].unanswered(facts.radius):.1%} find nothing)"
        for way in DIRECTIONS
    ]
    console.print(
        f"\nPrecision within Hamming radius {facts.radius}, nothing found counts as zero: {', '.join(within)}."
    )
