"""Write ``docs/performance.md`` and its plots from what the speed scripts measured.

    python scripts/performance_page.py [RECORD]

``make bench FULL=1`` runs the scripts and then this. A curve is a work that was measured at several sizes; its exponent
is the slope of a line through the logarithms of cost and size, fitted to at least four sizes, with its 95 % confidence
interval. Why a ratio is below 1, or an exponent above 1.1, is said in ``bench/speed_reasons.tsv``.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from scipy import stats

from diptych.models import find_model

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "bench" / "results" / "speed-full.json"
REASONS = ROOT / "bench" / "speed_reasons.tsv"
PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
LEAST_SIZES, COLUMNS = 4, 3
# Below this, the start of the program is most of what is measured, and says nothing of growth.
LEAST_LARGEST = {"indexing_speed": 1000}
FIT, MOST_IN_COLUMN = "fit of ", 5
LEAST_RATIO, MOST_EXPONENT, GROWTH = 1.0, 1.1, "growth"
SECTIONS = {
    "Start": ("start_times",),
    "Fitting": ("cca_speed", "correlation_speed", "pairwise_speed", "fit_speed", "click_learning_speed"),
    "Measures": ("map_speed", "measures_speed"),
    "Search": ("search_speed", "rerank_speed", "hamming_speed"),
    "Pictures and texts": ("encoding_speed", "joint_speed", "indexing_speed", "rclip_speed", "photo_facts", "formats"),
    "Service": ("click_log_speed", "page_speed"),
}
Rows = list[dict[str, Any]]
_SCRIPTS = """## Scripts

The quick form leaves out what needs minutes by itself or a browser (`click_learning_speed.py`, `page_speed.py`).
Scripts of quality, memory and endurance (`…_map.py`, recall, kills, a million items) are in neither form, and are run
one by one.

| script | bars |
|---|---|"""


class Curve(NamedTuple):
    """The cost of one work at several sizes, and the exponent of its growth with a confidence interval."""

    script: str
    work: str
    unit: str
    sizes: np.ndarray
    costs: np.ndarray
    exponent: float
    low: float
    high: float


def curves(rows: Rows) -> list[Curve]:
    """Return every work that was measured at enough sizes."""
    measured: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row["size"] is not None and row["ours"] is not None:
            measured[row["script"], row["work"], row["unit"]][row["size"]] = row["ours"]
    return [
        fitted(*key, costs)
        for key, costs in measured.items()
        if len(costs) >= LEAST_SIZES and max(costs) >= LEAST_LARGEST.get(key[0], 0)
    ]


def fitted(script: str, work: str, unit: str, cost_of: dict[int, float]) -> Curve:
    """Fit a power law."""
    sizes, costs = (np.array(side, dtype=float) for side in zip(*sorted(cost_of.items()), strict=True))
    line = stats.linregress(np.log(sizes), np.log(costs))
    reach = float(stats.t.ppf(0.975, len(sizes) - 2)) * line.stderr
    return Curve(script, work, unit, sizes, costs, line.slope, line.slope - reach, line.slope + reach)


def reason(script: str, work: str, beside: str) -> str:
    """Return why a work is below its peer or limit, or above linear growth; empty where nobody has said so.

    The first line of the table counts whose work and peer, which may hold ``*``, are these.
    """
    with REASONS.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if line["script"] == script and all(
                fnmatchcase(said, line[column]) for column, said in (("work", work), ("beside", beside))
            ):
                return line["reason"]
    return ""


def ratio_reason(row: dict[str, Any]) -> str | None:
    """Return why a ratio is below 1; None for one that is not."""
    if row["ratio"] is None or row["ratio"] >= LEAST_RATIO:
        return None
    return reason(row["script"], row["work"], row["peer"] or row["limit"])


def growth_reason(curve: Curve) -> str | None:
    """Return why an exponent is above 1.1; None for one that is not."""
    return reason(curve.script, curve.work, GROWTH) if curve.exponent > MOST_EXPONENT else None


def unexplained(record: dict[str, Any]) -> list[str]:
    """Return what the page shows below 1 or above 1.1 without a reason."""
    found = curves(record["rows"])
    largest = {(curve.script, curve.work): curve.sizes[-1] for curve in found}
    shown = [row for row in record["rows"] if row["size"] in (None, largest.get((row["script"], row["work"])))]
    rows = [f"{row['work']} beside {row['peer'] or row['limit']}" for row in shown if ratio_reason(row) == ""]
    return rows + [f"growth of {curve.work}" for curve in found if growth_reason(curve) == ""]


def page(record: dict[str, Any]) -> str:
    """Return the page."""
    rows, found = record["rows"], curves(record["rows"])
    parts = [introduction(record)]
    for title, scripts in SECTIONS.items():
        compared = [row for row in rows if row["script"] in scripts]
        if compared:
            parts.append(section(title, compared, [curve for curve in found if curve.script in scripts]))
    parts.append(scripts_table(record))
    return "\n\n".join(parts) + "\n"


def introduction(record: dict[str, Any]) -> str:
    """Return what the numbers mean and where they were measured."""
    machine = record["machine"]
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("numpy", "scipy", "scikit-learn", "onnxruntime", "faiss-cpu")
    )
    hours = sum(run["seconds"] for run in record["scripts"].values()) / 3600
    return f"""# Performance

<!-- Made by scripts/performance_page.py from bench/results/speed-full.json. -->

How fast Diptych is beside other libraries for the same result (peers), and beside what cannot be avoided or must not be
exceeded (limits). `make bench FULL=1` measures all of it, here in {hours:.1f} hours, and makes this page. `make bench`
measures smaller sizes in a quarter of an hour.

A ratio is how many times better we are: above 1 is in our favour, whether seconds or photos a second are counted. Ours
and theirs are measured in turns, and the ratio is the median over the turns; the spread is half the distance between
its quartiles. *Processor s* are seconds of one core, which other work on the machine changes less; *s* are by the
clock. Where a ratio is below 1, or a cost grows with an exponent above 1.1, the last column says why.

Measured on {machine["date"]} on {machine["cores"]} cores of {machine["processor"]} ({machine["architecture"]}) with
{machine["memory_gib"]:g} GiB: Python {machine["python"]}, {versions},
{machine["blas"]}. {record.get("remark") or ""}""".rstrip()


def section(title: str, rows: Rows, found: list[Curve]) -> str:
    """Return the ratios and curves of one part."""
    parts = [f"## {title}"]
    single = [row for row in rows if row["size"] is None]
    if single:
        head = (
            "| work | ours | peer or limit | theirs | ratio | spread | why below 1 |\n|---|---:|---|---:|---:|---:|---|"
        )
        parts.append("\n".join([head, *map(ratio_line, single)]))
    if found:
        name = f"performance-{title.lower().replace(' ', '-')}.svg"
        draw(found, IMAGES / name)
        parts += [f"![Cost against size: {title.lower()}](images/{name})", exponent_table(rows, found)]
    return "\n\n".join(parts)


def ratio_line(row: dict[str, Any]) -> str:
    """Return one row of a table."""
    other = row["peer"] or (f"limit: {row['limit']}" if row["limit"] else "–")
    theirs = "–" if row["theirs"] is None else quantity(row["theirs"], row["unit"])
    other += f" ({row['note']})" if row["note"] else ""
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.3g}"
    spread = "–" if row["spread"] is None else f"{row['spread']:.0%}"
    why = ratio_reason(row) or ""
    return f"| {row['work']} | {quantity(row['ours'], row['unit'])} | {other} | {theirs} | {ratio} | {spread} | {why} |"


def quantity(value: float | None, unit: str) -> str:
    """Return a number with its unit; short times in milliseconds."""
    if value is None:
        return "–"
    if unit in ("s", "processor s") and value < 0.1:
        return f"{1e3 * value:.3g} {unit.removesuffix('s')}ms"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def exponent_table(rows: Rows, found: list[Curve]) -> str:
    """Return how costs grow, and the ratio at the largest size where there is one."""
    head = (
        "| work | sizes | at the largest | exponent | 95 % interval | ratio there | why above 1.1 |\n"
        "|---|---|---:|---:|---:|---|---|"
    )
    lines = []
    for curve in found:
        largest = [
            f"{row['ratio']:.3g} ({row['peer'] or row['limit']})"
            for row in rows
            if row["work"] == curve.work and row["size"] == curve.sizes[-1] and row["ratio"] is not None
        ]
        sizes = f"{len(curve.sizes)} from {curve.sizes[0]:,.0f} to {curve.sizes[-1]:,.0f}"
        interval = f"{curve.low:.2f} to {curve.high:.2f}"
        cells = curve.work, sizes, quantity(curve.costs[-1], curve.unit), f"{curve.exponent:.2f}", interval
        lines.append(f"| {' | '.join(cells)} | {', '.join(largest) or '–'} | {growth_reason(curve) or ''} |")
    return "\n".join([head, *lines])


def draw(found: list[Curve], path: Path) -> None:
    """Draw costs against sizes on logarithmic axes: a plot for each family, with the names of its lines."""
    # The same numbers give the same file.
    mpl.rcParams.update({"svg.hashsalt": "diptych", "svg.fonttype": "none"})
    from matplotlib.figure import Figure

    families: dict[str, list[Curve]] = defaultdict(list)
    for curve in found:
        families[family(curve.work)].append(curve)
    columns = min(COLUMNS, len(families))
    rows = -(-len(families) // columns)
    figure = Figure(figsize=(4.4 * columns if columns > 1 else 8, 3.4 * rows if rows > 1 else 4), layout="constrained")
    plots = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (title, members) in zip(plots, sorted(families.items()), strict=False):
        for place, curve in enumerate(members):
            # There are ten colours.
            style, name = ("-", "--")[place // 10 % 2], curve.work.removeprefix(FIT)
            axes.loglog(curve.sizes, curve.costs, linestyle=style, marker="o", markersize=3, label=name)
        axes.set_title(title, fontsize="medium")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.tick_params(labelbottom=True, labelleft=True)
        columns_of_names = 1 + (len(members) > MOST_IN_COLUMN)
        axes.legend(fontsize="x-small", ncols=columns_of_names, loc="lower right", framealpha=0.6)
    for axes in plots[len(families) :]:
        axes.set_axis_off()
    figure.supxlabel("items or pairs", fontsize="medium")
    figure.supylabel("seconds", fontsize="medium")
    figure.savefig(path, metadata={"Date": None})


def family(work: str) -> str:
    """Return the group of the method that a work fits; all other works are drawn together, without a title."""
    if not work.startswith(FIT):
        return ""
    return find_model(work.removeprefix(FIT)).__module__.split(".")[2]


def scripts_table(record: dict[str, Any]) -> str:
    """Return which scripts were run, and whether their bars are met."""
    listed = [
        f"| `{name}.py` | {'met' if run['status'] == 0 else 'missed or failed'} |"
        for name, run in record["scripts"].items()
    ]
    return "\n".join([_SCRIPTS, *listed])


def main() -> None:
    """Read the record and write the page."""
    record = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORD
    PAGE.write_text(page(json.loads(record.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is made from {record}")


if __name__ == "__main__":
    main()
