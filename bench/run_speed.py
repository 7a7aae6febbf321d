"""Run the speed scripts and put their rows into one file: one for each form, the full and the quick one.

    python -m bench.run_speed [--full] [--output FILE] [SCRIPT ...]

``make bench`` runs it in the quick form, with which later runs are compared, ``make bench FULL=1`` in the full one,
from which ``docs/performance.md`` is made. Named scripts replace their own rows in a file and leave the others alone. A
script that misses a bar or fails is named at the end, and the command exits with 1; the rows of the others are written
all the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDS = {"quick": HERE / "results" / "speed.json", "full": HERE / "results" / "speed-full.json"}
QUICK = (
    "start_times",
    "cca_speed",
    "correlation_speed",
    "pairwise_speed",
    "measures_speed",
    "hamming_speed",
    "search_speed",
    "joint_speed",
    "indexing_speed",
    "rclip_speed",
    "formats",
)
# Besides these, the full form has what needs minutes by itself, or a browser.
FULL_ONLY = ("click_learning_speed", "page_speed")


def run_script(name: str, is_full: bool) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return what a script wrote, if it did, and how its run went."""
    print(f"\n== {name} ==", flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        words = [*([] if is_full else ["--quick"]), "--json", str(written)]
        status = subprocess.run([sys.executable, "-m", f"bench.{name}", *words], check=False).returncode
        found = json.loads(written.read_text(encoding="utf-8")) if written.exists() else None
    return found, {"seconds": round(time.perf_counter() - started, 1), "status": status}


def merged(
    before: dict[str, Any], form: str, name: str, found: dict[str, Any] | None, run: dict[str, Any]
) -> dict[str, Any]:
    """Return a record with the rows of one script replaced; another form or machine starts anew."""
    is_same = before.get("form") == form and (found is None or _is_same_machine(before["machine"], found["machine"]))
    rows = [row for row in before["rows"] if row["script"] != name] if is_same else []
    return {
        "form": form,
        "machine": before.get("machine") if found is None else found["machine"],
        "scripts": {**(before["scripts"] if is_same else {}), name: run},
        "rows": rows + ([] if found is None else found["rows"]),
    }


def _is_same_machine(one: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    return one is None or all(one[fact] == other[fact] for fact in ("processor", "cores", "architecture"))


def main() -> int:
    """Run, merge, name what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="by default all of the form")
    parser.add_argument("--full", action="store_true", help="the sizes of the documentation, and scripts of minutes")
    parser.add_argument("--remark", help="a sentence on the run for the page, such as what else the machine did")
    parser.add_argument("--output", type=Path, metavar="FILE", help="by default the record of the form")
    options = parser.parse_args()
    if unknown := set(options.scripts) - {*QUICK, *FULL_ONLY}:
        known = ", ".join(QUICK + FULL_ONLY)
        parser.error(f"no speed script is called {', '.join(sorted(unknown))}; there are {known}")
    form = "full" if options.full else "quick"
    output = options.output or RECORDS[form]
    record = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {"rows": []}
    wrong = []
    for name in options.scripts or (*QUICK, *(FULL_ONLY if options.full else ())):
        found, run = run_script(name, options.full)
        record = merged(record, form, name, found, run) | {"remark": options.remark or record.get("remark")}
        output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if run["status"] != 0:
            wrong.append(f"{name} ({'missed a bar' if found else 'failed'})")
    print(f"\nrows in {output}; " + (f"wrong: {', '.join(wrong)}" if wrong else "every bar met"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
