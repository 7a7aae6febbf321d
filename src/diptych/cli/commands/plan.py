"""``diptych plan``: which machines a collection of so many items and searches needs."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import bold, print_json, results, table
from diptych.cli.options import JsonOption
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Plan

_UNITS: dict[str, int] = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}I": 1024**power for power, letter in enumerate("KMGT", start=1)
}
_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]+)?)\s*(?P<unit>(?:[KMGT]I?)?)B?", re.IGNORECASE)


def plan(
    items: Annotated[str, typer.Option(metavar="N", help="How many items there will be; 1e8 is a number, too.")],
    qps: Annotated[float, typer.Option(metavar="N", help="Searches a second, at the busiest time.")],
    dims: Annotated[
        str, typer.Option(metavar="N", help="Numbers kept of each item; the shipped search model has 256.")
    ] = "256",
    captions: Annotated[float, typer.Option(metavar="N", help="Captions of an item, on average.")] = 1,
    bits: Annotated[
        int | None, typer.Option(metavar="N", help="Bits kept of each item, for a hashing method: 64 to 256 are usual.")
    ] = None,
    memory_per_machine: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Such as 64GB or 64GiB; where vectors need more, codes are planned with."),
    ] = None,
    cores: Annotated[int, typer.Option(metavar="N", help="Cores of a replica.")] = 8,
    search_ms: Annotated[
        float | None,
        typer.Option(metavar="MS", help="What a search takes one core on your own data, if you have measured it."),
    ] = None,
    regions: Annotated[
        bool, typer.Option("--regions", help="Thirteen parts of every picture are searched, too (`diptych regions`).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how much memory and disk a collection needs, which index it will have, and how many replicas.

    The numbers come from collections that were measured, of up to four million items; they are taken to form no
    clusters, among which searches are slow.
    """
    from dataclasses import asdict

    from diptych.collection import Plan, plan_collection

    made = plan_collection(
        _whole(items, "--items"),
        qps,
        dims=_whole(dims, "--dims"),
        captions=captions,
        bits=bits,
        memory_per_machine=None if memory_per_machine is None else _bytes(memory_per_machine),
        cores=cores,
        search_seconds=None if search_ms is None else search_ms / 1000,
        regions=regions,
    )
    if as_json:
        derived = [name for name, member in vars(Plan).items() if isinstance(member, property)]
        print_json({**asdict(made), **{name: getattr(made, name) for name in derived}})
        return
    listing = table(bold("what"), "how much", "of that")
    for row in _rows(made):
        listing.add_row(*row)
    results().print(listing)


def _whole(typed: str, option: str) -> int:
    """Read a whole number, also one such as 1e8."""
    try:
        number = float(typed.replace("_", "").replace(",", ""))
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise InvalidInputError(f"{option} takes a whole number such as 1000000 or 1e6, got {typed!r}")
    return int(number)


def _bytes(typed: str) -> float:
    found = _SIZE.fullmatch(typed.strip())
    if found is None:
        raise InvalidInputError(f"--memory-per-machine takes a size such as 64GB, got {typed!r}")
    return float(found["number"]) * _UNITS[found["unit"].upper()]


def _rows(made: Plan) -> list[tuple[str, str, str]]:
    processes = made.cores + (made.cores > 1)
    of_parts = [("index of parts", _index(made.region_index, made.region_lists), f"{made.region_points:,} points")]
    return [
        ("index", _index(made.index, made.lists), _points(made)),
        *(of_parts if made.region_index else []),
        (
            "memory of a machine",
            _size(made.memory),
            f"{_size(made.own_memory)} for {counted(processes, 'process', 'processes')}, "
            f"{_size(made.mapped_memory)} files in use, {_size(made.build_memory)} while search files are made",
        ),
        (
            "disk of a replica",
            _size(made.replica_disk),
            f"twice the tables ({_size(made.store - made.features)}) and search files ({_size(made.search_files)})",
        ),
        ("disk of the writer", _size(made.writer_disk), f"the same and the features ({_size(made.features)})"),
        ("bucket", _size(made.bucket), "and the picture files themselves"),
        (
            "replicas",
            f"{made.replicas:,}",
            f"of {counted(made.cores, 'core')}, each for {made.qps_per_replica:,.0f} searches a second",
        ),
        ("search", f"{1000 * made.search_core_seconds:,.0f} ms of one core", "at least, and without waiting"),
        ("search files", f"{_duration(made.build_core_seconds)} of one core", "to make them from nothing"),
    ]


def _index(kind: str | None, lists: int) -> str:
    kinds = {
        "whole": "none, all points are compared",
        "vectors": f"{lists:,} lists of vectors",
        "packed": f"{lists:,} packed lists",
        "bytes": f"{lists:,} lists of bytes",
        "codes": "none, all codes are compared",
    }
    return kinds[kind or "whole"]


def _points(made: Plan) -> str:
    if made.index == "codes":
        return f"{made.bits_per_point} bits a point; train a hashing method (diptych methods)"
    return f"{made.dims} numbers a point, {made.bits_per_number} bits a number in memory"


def _size(count: float) -> str:
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:,.1f} {unit}"
    return f"{count / 1000:,.1f} TB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"
