"""Tables of `diptych bench align`: what to use with how many captions, curves by budget, transfer and cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.papers.alignment import BUDGETS, ELSEWHERE, MAIN, MEASURES, OTHER_BUDGETS, TOWERS
from diptych.benchmark.reporting.observations import format_p_value, format_signed
from diptych.benchmark.reporting.reproduction import StoredResults
from diptych.benchmark.reporting.significance import holm
from diptych.benchmark.results import Record
from diptych.benchmark.runner import measure_key
from diptych.benchmark.tables import NOTHING, Table
from diptych.errors import InvalidInputError
from diptych.metrics import DrawsDifference, draws_difference
from diptych.space import Direction

CHART = "alignment.svg"
"""The file beside the page that has the curves."""
DRAWN_TASK = f"align-flickr8k-{MAIN}-20"
"""A task without which nothing is drawn."""
_MAIN_MEASURE = measure_key(MEASURES[0])
_MEASURES = [measure_key(measure) for measure in MEASURES]
_BASELINE = "cca"
_RIDGES = ("cca-0.1", "cca-1", "cca-10")
_SHOWN_ELSEWHERE = ("cca", "procrustes", "cca-nnn", "wasserstein", "sotalign")
_WAYS: tuple[Direction, ...] = ("text_query", "image_query")
_DRAWN = {
    "cca": "#1b6ca8",
    "cca-0.1": "#9bb7d4",
    "procrustes": "#2e8b57",
    "contrastive": "#b8860b",
    "cca-nnn+": "#7a3e9d",
    "sotalign+": "#c0392b",
    "wasserstein+": "#d35400",
}
_ADDED = ", unpaired rows"
_ASKED: dict[str, Direction] = {"text": "text_query", "image": "image_query"}


@dataclass(frozen=True)
class Row:
    """The records of one method at one budget, a record for each draw."""

    records: Sequence[Record]
    unpaired: bool

    @property
    def title(self) -> str:
        """The name of the method, and whether it had unpaired rows."""
        return self.records[0].method_title + (_ADDED if self.unpaired else "")

    @property
    def development(self) -> float:
        """The mean of the main measure on the development photographs, by which methods are chosen."""
        return float(np.mean([record.validation["mean"] for record in self.records]))

    def values(self, measure: str = _MAIN_MEASURE, way: Direction = "text_query") -> FloatArray:
        """Return a measure for each draw."""
        return np.array([record.measures[measure][way] for record in self.records])

    def mean(self, measure: str = _MAIN_MEASURE, way: Direction = "text_query") -> float:
        """Return the mean over draws."""
        return float(self.values(measure, way).mean())

    def cell(self, measure: str = _MAIN_MEASURE, way: Direction = "text_query") -> str:
        """Return mean and sample deviation over draws, a dash where it was not measured."""
        if measure not in self.records[0].measures:
            return NOTHING
        values = self.values(measure, way)
        digits = 1 if measure == "median rank" else 3
        spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
        return f"{values.mean():.{digits}f}{spread}"

    def by_photograph(self, way: Direction = "text_query") -> FloatArray:
        """Return for each draw the main measure of each photograph: of its captions the mean."""
        values = np.array([record.per_query[_MAIN_MEASURE][way] for record in self.records], dtype=np.float64)
        photographs = len(self.records[0].per_query[_MAIN_MEASURE]["image_query"])
        return np.asarray(values.reshape(len(values), photographs, -1).mean(axis=2))


def rows_of(results: StoredResults, data: str, towers: str, pairs: int) -> dict[str, Row]:
    """Return what was measured at one budget, by the names of methods, with ``+`` where there were unpaired rows."""
    task = f"align-{data}-{towers}-{pairs}"
    return {
        name + "+" * unpaired: Row(records, unpaired)
        for unpaired, suffix in ((False, ""), (True, "-unpaired"))
        for name, records in results.methods(task + suffix).items()
    }


def difference(row: Row, other: Row) -> DrawsDifference:
    """Return how the main measure of text queries differs, over draws and photographs."""
    return draws_difference(row.by_photograph(), other.by_photograph())


def _budgets(results: StoredResults, data: str, towers: str) -> Iterator[tuple[int, dict[str, Row]]]:
    for pairs in sorted({*BUDGETS, 16000}):
        if found := rows_of(results, data, towers, pairs):
            yield pairs, found


def what_to_use(results: StoredResults, towers: str = MAIN) -> Table:
    """Return for each budget the method that does best on the development photographs, beside plain CCA on the test."""
    budgets = list(_budgets(results, "flickr8k", towers))
    chosen = {
        pairs: {
            unpaired: max(options, key=lambda row: row.development)
            for unpaired in (False, True)
            if (options := [row for name, row in found.items() if row.unpaired == unpaired and name not in _RIDGES])
        }
        for pairs, found in budgets
    }
    rows = []
    for pairs, found in budgets:
        baseline = found.get(_BASELINE)
        best = max(chosen[pairs].values(), key=lambda row: row.development)
        alone = chosen[pairs].get(False)
        compared = difference(best, baseline) if baseline and best is not baseline else None
        rows.append(
            (
                f"{pairs:,}",
                best.title,
                best.cell(),
                best.cell(way="image_query"),
                alone.title if alone else NOTHING,
                alone.cell() if alone else NOTHING,
                baseline.cell() if baseline else NOTHING,
                f"{best.mean() / baseline.mean():.2f}" if baseline else NOTHING,
                f"{format_signed(compared.difference)} [{compared.low:+.3f}, {compared.high:+.3f}]"
                if compared
                else NOTHING,
            )
        )
    headings = (
        *("captions", "best of all", "text R@10", "image R@10", "best without unpaired rows", "text R@10"),
        *("CCA, text R@10", "ratio", "difference to CCA, 95 % interval"),
    )
    note = f"{TOWERS[towers][0]}; chance {_chance(budgets[-1][1]):.3f}; methods are chosen on development photographs."
    return Table("What to use with how many captions", headings, tuple(rows), notes=(note,))


def _chance(found: dict[str, Row], measure: str = _MAIN_MEASURE, way: Direction = "text_query") -> float:
    return float(next(iter(found.values())).records[0].chance[measure][way])


def curve(results: StoredResults, data: str, towers: str, measure: str, asked: str = "text") -> Table:
    """Return a measure of every method by the number of pairs, mean and deviation over draws; the best one is bold."""
    measure, way = measure.replace("~", " "), _ASKED[asked]
    budgets = list(_budgets(results, data, towers))
    if not budgets:
        raise InvalidInputError(f"there is no stored result of `diptych bench align` on {data} with {towers}")
    low_is_best = measure in ("median rank", "FOSCTTM")
    names = {name: row.title for _, found in budgets for name, row in found.items()}
    best = {
        pairs: (min if low_is_best else max)(found, key=lambda name: found[name].mean(measure, way))
        for pairs, found in budgets
    }
    rows = []
    for name, title in names.items():
        cells = [found[name].cell(measure, way) if name in found else NOTHING for _, found in budgets]
        marked = zip(cells, (best[pairs] == name for pairs, _ in budgets), strict=True)
        rows.append((title, *(f"**{cell}**" if is_best else cell for cell, is_best in marked)))
    rows.append(("chance", *(f"{_chance(found, measure, way):.3f}" for _, found in budgets)))
    title = f"{measure}, {asked} queries"
    return Table(title, (title, *(f"{pairs:,}" for pairs, _ in budgets)), tuple(rows))


def gains(results: StoredResults, towers: str = MAIN) -> Table:
    """Return every method's difference to CCA in R@10 of text queries, where it is real by both tests."""
    rows = []
    for pairs, found in _budgets(results, "flickr8k", towers):
        baseline = found.get(_BASELINE)
        others = [row for name, row in found.items() if name not in (_BASELINE, *_RIDGES)]
        if baseline is None or not others:
            continue
        compared = [difference(row, baseline) for row in others]
        adjusted = holm([one.p_value for one in compared])
        for row, one, p_value in sorted(
            zip(others, compared, adjusted, strict=True), key=lambda item: -item[1].difference
        ):
            is_real = (one.low > 0 or one.high < 0) and p_value <= 0.05
            verdict = ("better" if one.difference > 0 else "worse") if is_real else "not to be told apart"
            interval = f"[{one.low:+.3f}, {one.high:+.3f}]"
            ratio = f"{row.mean() / baseline.mean():.2f}"
            rows.append(
                (
                    f"{pairs:,}",
                    row.title,
                    ratio,
                    format_signed(one.difference),
                    interval,
                    format_p_value(float(p_value)),
                    verdict,
                )
            )
    headings = ("captions", "method", "ratio", "difference to CCA", "95 % interval", "p, Holm", "verdict")
    return Table("Against CCA", headings, tuple(rows), n_names=2)


def ridges(results: StoredResults, towers: str = MAIN) -> Table:
    """Return CCA with the ridge that it chooses beside fixed ones, R@10 of text queries."""
    rows = []
    for pairs, found in _budgets(results, "flickr8k", towers):
        if all(name in found for name in (_BASELINE, *_RIDGES)):
            fixed = [found[name] for name in _RIDGES]
            gap = found[_BASELINE].mean() - max(row.mean() for row in fixed)
            cells = [row.cell() for row in (found[_BASELINE], *fixed)]
            rows.append((f"{pairs:,}", *cells, format_signed(gap)))
    headings = ("captions", "chosen", *(name.removeprefix("cca-") for name in _RIDGES), "chosen less the best fixed")
    return Table("Ridges", headings, tuple(rows))


def without_pairs(results: StoredResults) -> Table:
    """Return what is found without any pair on every tower pair, against chance."""
    from scipy.stats import t

    rows = []
    for towers, (title, *_) in TOWERS.items():
        for row in rows_of(results, "flickr8k", towers, 0).values():
            cells = []
            for measure, sign in (("FOSCTTM", -1), (_MAIN_MEASURE, 1)):
                values = row.values(measure)
                gains = sign * (values - row.records[0].chance[measure]["text_query"])
                error = gains.std(ddof=1) / np.sqrt(len(gains))
                p_value = float(t.sf(gains.mean() / max(error, 1e-12), len(gains) - 1))
                cells += [row.cell(measure), f"{min(values):.3f} to {max(values):.3f}", format_p_value(p_value)]
            rows.append((title, row.records[0].method_title, *cells))
    headings = ("towers", "method", "FOSCTTM", "draws", "p", "R@10", "draws", "p")
    note = "Text queries; chance 0.5 and 0.010. p: one-sided t test over draws."
    return Table("Without any pair", headings, tuple(rows), n_names=2, notes=(note,))


def elsewhere(results: StoredResults, towers: str = MAIN) -> Table:
    """Return what models of Flickr8k reach on other data, of the methods that ran at every budget shown."""
    columns = [(f"{_MAIN_MEASURE}, {name}" if name != "class names" else f"AP(), {name}", name) for name in ELSEWHERE]
    rows: list[tuple[str, ...]] = []
    for pairs, found in _budgets(results, "flickr8k", towers):
        shown = [name for name in found if name.rstrip("+") in _SHOWN_ELSEWHERE]
        rows += [(f"{pairs:,}", found[name].title, *(found[name].cell(key) for key, _ in columns)) for name in shown]
        known = next(iter(found.values())).records[0].chance
        chances = (f"{_chance(found, key):.3f}" if key in known else NOTHING for key, _ in columns)
        rows.append((f"{pairs:,}", "chance", *chances))
    headings = ("captions", "method", *(f"{name}, {'MAP' if 'AP()' in key else 'R@10'}" for key, name in columns))
    return Table("Asked elsewhere", headings, tuple(rows), n_names=2)


def costs(results: StoredResults, towers: str = MAIN) -> Table:
    """Return processor seconds of a fit by budget, the seconds to encode the test part, and the peak of memory."""
    budgets = list(_budgets(results, "flickr8k", towers))
    names = {name: row.title for _, found in budgets for name, row in found.items()}
    rows = []
    for name, title in names.items():
        records = {pairs: found[name].records for pairs, found in budgets if name in found}
        seconds = [
            f"{np.mean([one.seconds['fit'] for one in records[pairs]]):.1f}" if pairs in records else NOTHING
            for pairs, _ in budgets
        ]
        everything = [one for some in records.values() for one in some]
        memory = max(one.peak_memory_bytes or 0 for one in everything) / 1e6
        encode = np.mean([one.seconds["encode"] for one in everything])
        rows.append((title, *seconds, f"{encode:.2f}", f"{memory:.0f}"))
    headings = ("seconds to fit", *(f"{pairs:,}" for pairs, _ in budgets), "encode", "peak MB")
    return Table("Cost", headings, tuple(rows))


def towers_compared(results: StoredResults, *names: str) -> Table:
    """Return R@10 of both directions of a few methods on every tower pair."""
    rows = []
    for towers, (title, *_) in TOWERS.items():
        budgets = list(_budgets(results, "flickr8k", towers))
        for name in names:
            shown = [found.get(name) for pairs, found in budgets if pairs in OTHER_BUDGETS]
            cells = [
                NOTHING if row is None else " / ".join(f"{row.mean(way=way):.3f}" for way in _WAYS) for row in shown
            ]
            if any(cell != NOTHING for cell in cells):
                known = next(found[name] for _, found in budgets if name in found)
                rows.append((title, known.title, *cells))
    headings = ("towers", "method", *(f"{pairs:,}" for pairs in OTHER_BUDGETS))
    return Table("R@10 of text / image queries", headings, tuple(rows), n_names=2)


def curve_chart(results: StoredResults, data: str = "flickr8k", towers: str = MAIN) -> str:
    """Return R@10 of text queries by the number of captions as a drawing in SVG, on a logarithmic axis."""
    budgets = [(pairs, found) for pairs, found in _budgets(results, data, towers) if pairs]
    low, high = (math.log(budgets[end][0]) for end in (0, -1))
    top = max(row.mean() for _, found in budgets for row in found.values())
    width, height, left, bottom = 640, 360, 48, 40

    def place(pairs: int, value: float) -> tuple[float, float]:
        across = (math.log(pairs) - low) / ((high - low) or 1.0)
        return left + across * (width - left - 12), (height - bottom) - value / top * (height - bottom - 16)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for pairs, _ in budgets:
        x, y = place(pairs, 0)
        parts.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle">{pairs:,}</text>')
    for step in range(int(top * 10) + 1):
        x, y = place(budgets[0][0], step / 10)
        line = f'<line x1="{x:.0f}" y1="{y:.1f}" x2="{width - 12}" y2="{y:.1f}" stroke="#ddd"/>'
        parts.append(f'{line}<text x="{x - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{step / 10:.1f}</text>')
    parts.append(f'<text x="{width // 2}" y="{height - 6}" text-anchor="middle">captions (R@10 of text queries)</text>')
    for number, (name, colour) in enumerate(_DRAWN.items()):
        points = [(place(pairs, found[name].mean()), found[name].title) for pairs, found in budgets if name in found]
        if not points:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for (x, y), _ in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for (x, y), _ in points]
        y = 24 + 16 * number
        parts.append(f'<text x="{left + 12}" y="{y}" fill="{colour}">{escape(points[0][1])}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


MAKERS: Mapping[str, Callable[..., Table]] = {
    "align-use": what_to_use,
    "align-curve": curve,
    "align-gains": gains,
    "align-ridges": ridges,
    "align-zero": without_pairs,
    "align-elsewhere": elsewhere,
    "align-costs": costs,
    "align-towers": towers_compared,
}
"""What makes a table of this study, by the name that pages call it."""
