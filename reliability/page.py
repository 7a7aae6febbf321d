"""Write the tables of ``docs/reliability.md`` from the record of the trials, ``results.jsonl``.

``make reliability`` and ``make fuzz`` run the trials and then this.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from campaign import RECORD, recorded

_PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
_TABLES = {
    "results": ("trials", "acknowledged", "found", "lost", "corrupt", "silent", "recovered", "named as lost"),
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
    rows = [("fault", *(name.replace("_", " ") for name in columns)), ("---", *("--:" for _ in columns))]
    for fault, row in sums.items():
        rows.append((fault, *(f"{round(row[name], 1):,}" if name in row else "" for name in columns)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Put the tables into the page."""
    page, rounds = _PAGE.read_text(encoding="utf-8"), recorded(RECORD)
    for name, columns in _TABLES.items():
        is_hostile = name == "hostile"
        table = table_of([line for line in rounds if ("findings" in line) is is_hostile], columns)
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page = place.sub(lambda found, table=table: f"{found[1]}\n{table}\n{found[2]}", page)
    _PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
