"""Run the speed campaigns, record their rows and write docs/results/performance.md.

    python -m bench.run [--remark TEXT] [CAMPAIGN ...]

Named campaigns replace their own rows in ``results/speed.json``. A campaign that misses a bar or fails is named at the
end, and the command exits with 1; the rows of the others are recorded all the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import performance_page
from bench.performance_page import RECORD

CAMPAIGNS = ("start", "models", "measures", "search", "indexing", "service", "million_items", "click_learning")


def run_campaign(name: str) -> tuple[dict[str, Any] | None, int]:
    """Return what a campaign wrote, if it did, and its exit status."""
    print(f"\n== {name} ==", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        command = [sys.executable, "-m", f"bench.{name}", "--json", str(written)]
        status = subprocess.run(command, check=False).returncode
        return json.loads(written.read_text(encoding="utf-8")) if written.exists() else None, status


def main() -> int:
    """Run, record, name what went wrong, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help="by default all")
    parser.add_argument("--remark", help="a sentence on the run for the page, such as what else the machine did")
    options = parser.parse_args()
    if unknown := set(options.campaigns) - set(CAMPAIGNS):
        parser.error(f"no campaign is called {', '.join(sorted(unknown))}; there are {', '.join(CAMPAIGNS)}")
    record, wrong = json.loads(RECORD.read_text(encoding="utf-8")), []
    for name in options.campaigns or CAMPAIGNS:
        written, status = run_campaign(name)
        if written is not None:
            others = [row for row in record["rows"] if row["script"] != name]
            record |= {"machine": written["machine"], "rows": others + written["rows"]}
        record["remark"] = options.remark or record.get("remark")
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if status != 0:
            wrong.append(f"{name} ({'missed a bar' if written else 'failed'})")
    performance_page.main()
    print(f"rows in {RECORD}; " + (f"wrong: {', '.join(wrong)}" if wrong else "every bar met"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
