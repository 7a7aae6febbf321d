"""What ``diptych train`` says."""

from __future__ import annotations

import json

from diptych.cli.terminal import print_json, results, table
from diptych.retriever import Comparison


def print_training_report(comparison: Comparison, *, is_taken: bool, is_dry_run: bool, as_json: bool) -> None:
    """Print the held-out quality of the new and the present retriever, and what was decided."""
    if as_json:
        print_json(json.dumps({**comparison.get_params(), "taken": is_taken}, indent=2))
        return
    listing = table()
    listing.add_column("retriever", no_wrap=True)
    listing.add_column("MAP", justify="right", no_wrap=True, style="bold")
    listing.add_row("new", f"{comparison.new:.4f}")
    if comparison.old is not None:
        listing.add_row(f"present ({comparison.baseline})", f"{comparison.old:.4f}")
    listing.add_row("chance", f"{comparison.chance:.4f}")
    console = results()
    console.print(f"MAP on {comparison.n_held_out:,} held-out pictures, mean of both directions", style="bold")
    console.print(listing)
    console.print(f"\n{_verdict(comparison)} {_decision(comparison, is_taken=is_taken, is_dry_run=is_dry_run)}")


def _verdict(comparison: Comparison) -> str:
    if comparison.old is None or comparison.p_value is None:
        return "There is nothing to compare with."
    difference = f"{abs(comparison.new - comparison.old):.4f}"
    if float(difference) == 0:
        return "The new one is the same."
    word = "better" if comparison.is_better else "worse"
    chance = f"p = {comparison.p_value:.3f}" if comparison.p_value >= 0.001 else "p < 0.001"
    luck = "more than luck" if comparison.is_significant() else "may be luck"
    return f"The new one is {word} by {difference} ({chance}, {luck})."


def _decision(comparison: Comparison, *, is_taken: bool, is_dry_run: bool) -> str:
    if is_taken:
        return "The collection uses it now."
    if comparison.replaced or is_dry_run:
        return "Nothing was changed."
    return "The present one stays; --force takes the new one anyway."
