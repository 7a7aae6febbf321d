"""Write the tables of ``docs/results/reliability.md`` from the record of the trials, ``results.jsonl``.

``make campaigns`` runs the trials and then this.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bench.campaign import RECORD, recorded

_PAGE = Path(__file__).parents[1] / "docs" / "results" / "reliability.md"
_TABLES = {
    "results": (
        "trials",
        "acknowledged",
        "lost",
        "corrupt",
        "found",
        "harmless",
        "silent",
        "recovered",
        "named as lost",
    ),
    "hostile": ("trials", "minutes", "processor_minutes", "findings"),
}


def table_of(rounds: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    """Return the sums of the rounds as a table, a row for each fault."""
    sums: dict[str, dict[str, float]] = {}
    for line in rounds:
        row = sums.setdefault(line["fault"], {})
        for name in columns:
            if name in line:
                row[name] = row.get(name, 0) + line[name]
    rows = [("fault", *(name.replace("_", " ") for name in columns))]
    for fault, row in sums.items():
        rows.append((fault, *(f"{round(row[name], 1):,}" if name in row else "" for name in columns)))
    return _markdown(rows)


def load_table(rounds: list[dict[str, Any]]) -> str:
    """Return a table of crowds on the service, a row for each."""
    rows = [("crowd", "requests", "writes", "refused", "lost", "p50, ms", "p99, ms", "memory an hour", "load")]
    for line in rounds:
        crowd = f"{line['fault']}, {line['clients']} clients, {line['minutes']:g} minutes, {line['date']}"
        counts = (f"{line[name]:,}" for name in ("requests", "writes", "refused", "lost", "p50_ms", "p99_ms"))
        busy = f"{line['load_before']} to {line['load']}"
        rows.append((crowd, *counts, f"{line['memory_an_hour']:+.1%}".replace("%", " %"), busy))
    return _markdown(rows)


def _markdown(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---", *("--:" for _ in head[1:])), *body))


def main() -> None:
    """Put the tables into the page."""
    page, rounds = _PAGE.read_text(encoding="utf-8"), recorded(RECORD)
    crowds = [line for line in rounds if "clients" in line]
    tables = {"load": load_table(crowds)}
    for name, columns in _TABLES.items():
        is_hostile = name == "hostile"
        shown = [line for line in rounds if line not in crowds and ("findings" in line) is is_hostile]
        tables[name] = table_of(shown, columns)
    for name, table in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page = place.sub(lambda found, table=table: f"{found[1]}\n{table}\n{found[2]}", page)
    _PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
