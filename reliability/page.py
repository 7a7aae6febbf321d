"""Write the table of ``docs/reliability.md`` from what the scripts of this folder printed last.

Run ``make reliability``, which runs them all and then this; ``python reliability/page.py RESULTS`` takes a file of
their lines of JSON, of which the last one for each fault counts.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
_TABLE = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
_COLUMNS = ("fault", "trials", "acknowledged", "found", "lost", "corrupt", "silent", "recovered", "named as lost")


def table_of(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as a table, a row for each fault."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS)]
    for result in results.values():
        cells = (result.get(name, "") for name in _COLUMNS)
        rows.append(tuple(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Put the table into the page."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if line.startswith('{"fault"')]
    table = table_of({result["fault"]: result for result in found})
    page = _PAGE.read_text(encoding="utf-8")
    _PAGE.write_text(_TABLE.sub(lambda match: f"{match[1]}\n{table}\n{match[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
