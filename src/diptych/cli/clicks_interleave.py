"""``diptych clicks interleave``: two retrievers compared on live traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.terminal import print_json, results, table

if TYPE_CHECKING:
    from diptych.service.clicks.interleaving import Interleaving
    from diptych.service.clicks.interleaving_report import InterleavingReport


def interleave(
    a: Annotated[str | None, typer.Argument(metavar="[A]", help="A stored retriever to start with.")] = None,
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="Another one, to compare it with.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Let the retriever in use answer alone again.")] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Let two retrievers answer searches of `diptych serve` together, and show whose answers are clicked.

    With two names the comparison starts, in a running service as well; without names its numbers are shown.
    """
    from diptych.cli.clicks_file import open_click_log
    from diptych.errors import InvalidInputError

    if (a is None) != (b is None) or (stop and a is not None):
        raise InvalidInputError("name two retrievers to start, --stop to end, or nothing to see the numbers")
    if a is not None and b is not None:
        _start(collection, a, b)
    with open_click_log(collection) as log:
        if stop:
            log.stop_interleaving()
        reports = log.interleavings()
    states = _states(collection, [report.interleaving for report in reports])
    if as_json:
        documents = [_document(report, state) for report, state in zip(reports, states, strict=True)]
        print_json(json.dumps(documents, indent=2))
    else:
        _print(reports, states)


def _start(collection: Path | None, a: str, b: str) -> None:
    from diptych.cli.open_collection import open_collection
    from diptych.errors import InvalidInputError, UnknownNameError
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.opening import click_log_path

    with open_collection(collection) as opened:
        stored = {one.name: one for one in opened.retrievers()}
        folder = opened.folder
    for name in (a, b):
        if name not in stored:
            raise UnknownNameError("retriever", name, list(stored))
        if not stored[name].ready:
            raise InvalidInputError(f"the points of {name!r} are unfinished; add it again, then compare")
    with ClickLog(click_log_path(folder)) as log:
        log.start_interleaving(a=(a, stored[a].fingerprint), b=(b, stored[b].fingerprint))


def _states(collection: Path | None, compared: list[Interleaving]) -> list[str]:
    """Tell what runs from what waits, because one of the two retrievers is no longer there as it was."""
    from diptych.cli.open_collection import open_collection

    if all(one.stopped is not None for one in compared):
        return ["stopped"] * len(compared)
    with open_collection(collection) as opened:
        stored = {(one.name, one.fingerprint) for one in opened.retrievers() if one.ready}
    there = [{(one.a, one.a_fingerprint), (one.b, one.b_fingerprint)} <= stored for one in compared]
    return [
        "stopped" if one.stopped is not None else "running" if is_there else "waiting"
        for one, is_there in zip(compared, there, strict=True)
    ]


def _print(reports: list[InterleavingReport], states: list[str]) -> None:
    shown = table()
    for head in ("a", "b", "since", "until"):
        shown.add_column(head)
    for head in ("searches", "won by a", "won by b", "ties", "clicks a", "clicks b", "p"):
        shown.add_column(head, justify="right")
    for report, state in zip(reports, states, strict=True):
        one = report.interleaving
        counts = (report.searches, report.wins_a, report.wins_b, report.ties, report.clicks_a, report.clicks_b)
        until = state if one.stopped is None else _day(one.stopped)
        shown.add_row(one.a, one.b, _day(one.started), until, *(f"{n:,}" for n in counts), f"{report.p_value:.3g}")
    results().print(shown if reports else "No two retrievers have been compared yet; name two to start.")
    if "waiting" in states:
        results().print("One of the two is no longer there as it was; the retriever in use answers alone.")


def _document(report: InterleavingReport, state: str) -> dict[str, object]:
    from dataclasses import asdict

    plain = asdict(report)
    return {**plain.pop("interleaving"), **plain, "p_value": report.p_value, "state": state}


def _day(moment: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")
