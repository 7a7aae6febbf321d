"""The report of a benchmark in all its forms, with figures drawn from results."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import count, groupby

from diptych.benchmark.papers import CITATIONS
from diptych.benchmark.reporting.charts import (
    MARK_PREFIX,
    MAX_SERIES,
    Line,
    Point,
    bar_chart,
    can_draw,
    heat_map,
    legend,
    line_chart,
    scatter_chart,
)
from diptych.benchmark.reporting.code_observations import check_code_observations
from diptych.benchmark.reporting.leaderboard import as_csv, leaderboard_table, published_beside
from diptych.benchmark.reporting.observations import Observation, check_observations, format_p_value
from diptych.benchmark.reporting.results import (
    CHANCE_METHODS,
    Experiment,
    MethodResults,
    TaskResults,
    find_experiments,
    group_records,
)
from diptych.benchmark.reporting.samples import SampleSheet
from diptych.benchmark.results import Record
from diptych.benchmark.tables import Table, as_latex, as_markdown
from diptych.errors import InvalidInputError, counted
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

_MEGABYTE = 1 << 20
_SHORTEST = 1e-3
_SIGNS = {"confirmed": "✓", "not confirmed": "✗", "not testable": "–"}
_READING = (
    "MAP is the mean over queries of average precision, with all relevant items in the denominator and ties by exact "
    "expectation; “average” is the mean of both directions. Chance is what a ranking that prefers nothing reaches; it "
    "differs between tasks, so compare what is above it.",
    "Groups: two methods are compared on the same queries of the same folds by a randomisation test, which swaps their "
    "values query by query. A picture and its text, in whichever folds they are asked, are swapped together. Holm’s "
    "correction allows for the number of pairs. Methods that share a letter cannot be told apart at level 0.05.",
    "Tests over folds flip the sign of whole folds, so that five folds give p = 1/32 at best; tests over queries speak "
    "for more queries of these classes.",
)


@dataclass(frozen=True)
class ChartGroup:
    """Charts that belong together, what they show, and the legend that they share, as HTML."""

    heading: str
    caption: str
    charts: tuple[str, ...]
    legend: str = ""


def task_figures(task: TaskResults) -> list[ChartGroup]:
    """Return what a task has to show: curves, categories, confusion, cost."""
    drawn = [
        _curves(task, "cmc", "Cumulative match", ("rank k", "queries matched within k"), logarithmic=True),
        _curves(task, "precision_recall", "Precision and recall", ("recall", "interpolated precision")),
        _curves(task, "precision_scope", "Precision by scope", ("items looked at", "precision")),
        _bits(task),
        _categories(task),
        _confusion(task),
        _cost(task),
    ]
    return [group for group in drawn if group is not None]


def seen_and_unseen(experiment: Experiment) -> ChartGroup | None:
    """Return every method's MAP on seen against unseen classes, as it is and above chance."""
    pairs = experiment.method_pairs
    if not pairs:
        return None
    groups = _groups([seen for seen, _ in pairs])
    values = {"MAP": MethodResults.mean, "MAP minus chance": MethodResults.above_chance}
    charts = tuple(
        scatter_chart(
            title,
            [Point(seen.title, value(seen), value(unseen), groups[seen.group]) for seen, unseen in pairs],
            ("seen classes", "unseen classes"),
            diagonal=True,
        )
        for title, value in values.items()
    )
    caption = "The further below the dashed line, the more a method loses on classes it did not learn."
    return ChartGroup(f"{experiment.title}: seen against unseen classes", caption, charts, _group_legend(groups))


def shown_methods(task: TaskResults) -> list[MethodResults]:
    """Choose what curves show: the best of every family of methods, then the next best, six in all."""
    learning = [method for method in task.methods if method.name not in CHANCE_METHODS]
    best = list({method.group: method for method in reversed(learning)}.values())
    rest = [method for method in learning if method not in best]
    chosen = sorted(best, key=lambda method: -method.mean())[:MAX_SERIES]
    chosen += rest[: MAX_SERIES - len(chosen)]
    return sorted(chosen, key=lambda method: -method.mean())


def _curves(
    task: TaskResults, name: str, heading: str, labels: tuple[str, str], *, logarithmic: bool = False
) -> ChartGroup | None:
    kept = [method for method in shown_methods(task) if all(method.curve(name, way) for way in DIRECTIONS)]
    if not kept:
        return None
    random = next((method for method in task.methods if method.name in CHANCE_METHODS), None)
    charts, with_chance = [], False
    for way in DIRECTIONS:
        lines = [_line(method, name, way) for method in kept]
        level = random.curve(name, way) if random is not None else None
        if level is not None:
            lines.append(Line("chance", level[0].tolist(), level[1].tolist(), is_chance=True))
            with_chance = True
        charts.append(line_chart(DIRECTION_NAMES[way], lines, labels, logarithmic=logarithmic))
    caption = "The best method of each family, and the next best; mean over folds."
    return ChartGroup(heading, caption, tuple(charts), legend([method.title for method in kept], with_chance))


def _line(method: MethodResults, name: str, way: Direction) -> Line:
    found = method.curve(name, way)
    return Line(method.title, *(axis.tolist() for axis in found)) if found else Line(method.title, (), ())


def _bits(task: TaskResults) -> ChartGroup | None:
    families: dict[str, list[MethodResults]] = {}
    for method in task.methods:
        if method.n_bits is not None:
            families.setdefault(method.family_title, []).append(method)
    families = {title: sorted(found, key=lambda method: method.n_bits or 0) for title, found in families.items()}
    several = {title: found for title, found in families.items() if len(found) > 1}
    if not several:
        return None
    lengths = sorted({method.n_bits or 0 for found in several.values() for method in found})
    charts = []
    parts = [list(several.items())[start : start + MAX_SERIES] for start in range(0, len(several), MAX_SERIES)]
    for part in parts:
        lines = [
            Line(title, [float(method.n_bits or 0) for method in found], [method.mean() for method in found])
            for title, found in part
        ]
        lines.append(Line("chance", [lengths[0], lengths[-1]], [task.chance, task.chance], is_chance=True))
        chart = line_chart(
            "MAP, mean of both directions", lines, ("bits", "MAP"), logarithmic=True, from_zero=False, ticks=lengths
        )
        charts.append(chart + legend([title for title, _ in part], chance=True))
    return ChartGroup("Length of codes", "MAP of hashing methods against the number of bits.", tuple(charts))


def _categories(task: TaskResults) -> ChartGroup | None:
    charts = []
    for method in _best_and_baseline(task):
        bars = {DIRECTION_NAMES[way]: method.category_means(way) for way in DIRECTIONS}
        if any(bars.values()):
            charts.append(bar_chart(f"{method.title}: MAP by category", bars))
    if not charts:
        return None
    return ChartGroup(
        "Categories",
        "Mean average precision over the queries of each category, all folds together.",
        tuple(charts),
        legend([DIRECTION_NAMES[way] for way in DIRECTIONS]),
    )


def _confusion(task: TaskResults) -> ChartGroup | None:
    method = next((method for method in task.methods if method.confusion("image_query")), None)
    if method is None:
        return None
    charts = [
        heat_map(f"{method.title}, {DIRECTION_NAMES[way]}", *found)
        for way in DIRECTIONS
        if (found := method.confusion(way)) is not None
    ]
    caption = (
        "Rows are the true classes of queries, columns the classes their rankings speak for; per cent of the row, "
        "all folds together."
    )
    return ChartGroup("Confusion", caption, tuple(charts))


def _cost(task: TaskResults) -> ChartGroup | None:
    learning = [method for method in task.methods if method.name not in CHANCE_METHODS]
    timed = [method for method in learning if method.seconds("fit") > 0]
    if len(timed) < 2:
        return None
    groups = _groups(timed)
    times = {method.name: max(_SHORTEST, method.seconds("fit")) for method in timed}
    charts = [_frontier("MAP against time", timed, times, groups, "seconds to fit")]
    measured = {method.name: method.peak_memory / _MEGABYTE for method in timed if method.peak_memory}
    if len(measured) > 1:
        kept = [method for method in timed if method.name in measured]
        charts.append(_frontier("MAP against memory", kept, measured, groups, "peak memory above start, MiB"))
    caption = "Nothing lies above and to the left of the dotted stairs: methods on them are the best for the price."
    return ChartGroup("Cost and quality", caption, tuple(charts), _group_legend(groups))


def _frontier(
    title: str, methods: Sequence[MethodResults], cost: dict[str, float], groups: dict[str, int], label: str
) -> str:
    steps: list[tuple[float, float]] = []
    for method in sorted(methods, key=lambda method: (cost[method.name], -method.mean())):
        if not steps or method.mean() > steps[-1][1]:
            steps.append((cost[method.name], method.mean()))
    points = [Point(method.title, cost[method.name], method.mean(), groups[method.group]) for method in methods]
    on_stairs = set(steps)
    ordered = sorted(points, key=lambda point: (point.x, point.y) not in on_stairs)
    return scatter_chart(title, ordered, (label, "MAP"), logarithmic=True, steps=steps)


def _groups(methods: Sequence[MethodResults]) -> dict[str, int]:
    """Number the families of methods; beyond six, the smaller ones share the last number."""
    names = list(dict.fromkeys(method.group for method in methods))
    return {name: min(number, MAX_SERIES - 1) for number, name in enumerate(names)}


def _group_legend(groups: dict[str, int]) -> str:
    numbers = sorted(set(groups.values()))
    return legend([", ".join(name for name, number in groups.items() if number == one) for one in numbers])


def _best_and_baseline(task: TaskResults) -> list[MethodResults]:
    best = next((method for method in task.methods if method.name not in CHANCE_METHODS), None)
    return [method for method in dict.fromkeys((best, task.method("cca"))) if method is not None]


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that can be said about a folder of results: as HTML, Markdown, LaTeX and CSV.

    ``samples`` are queries with their answers (see `sample_sheets`). Use `build_report` to make one.
    """

    tasks: tuple[TaskResults, ...]
    samples: tuple[SampleSheet, ...] = ()
    title: str = "Diptych benchmark"

    @cached_property
    def observations(self) -> tuple[Observation, ...]:
        """The observations of Liu et al., also those on codes, tested wherever the results allow it."""
        return (*check_observations(self.tasks), *check_code_observations(self.tasks))

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """The pairs of seen and unseen tasks."""
        return find_experiments(self.tasks)

    @cached_property
    def leaderboards(self) -> tuple[Table, ...]:
        """One table for each task."""
        return tuple(map(leaderboard_table, self.tasks))

    def as_html(self) -> str:
        """Return one page that needs no other file and no network; without matplotlib it has no figures."""
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup

        pages = Environment(
            loader=PackageLoader("diptych.benchmark.reporting", "page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        pages.filters["base64"] = lambda content: b64encode(content).decode("ascii")
        numbers = count()
        pages.filters["numbered"] = lambda chart: Markup(chart.replace(MARK_PREFIX, f"mark{next(numbers)}-"))
        folder = files("diptych.benchmark.reporting") / "page"
        style, script = (Markup((folder / name).read_text(encoding="utf-8")) for name in ("report.css", "report.js"))
        drawn = map(seen_and_unseen, self.experiments) if can_draw() else ()
        return pages.get_template("report.html.j2").render(
            report=self,
            summary=self._summary,
            claims=self._claims,
            tasks=[
                (task, _facts(task), board, task_figures(task) if can_draw() else ())
                for task, board in zip(self.tasks, self.leaderboards, strict=True)
            ],
            seen_unseen=[group for group in drawn if group is not None],
            reading=_READING,
            citations=self._citations,
            made_by=self._made_by,
            can_draw=can_draw(),
            signs=_SIGNS,
            ways=DIRECTION_NAMES,
            style=style,
            script=script,
        )

    def as_markdown(self) -> str:
        """Return the tables and observations as Markdown."""
        parts = [f"# {self.title}", self._summary, "## Observations"]
        for claim, group in self._claims:
            parts.append(f"### {claim}")
            parts.append("\n".join(f"- **{one.where}: {one.outcome}.** {one.evidence}" for one in group))
        for task, board in zip(self.tasks, self.leaderboards, strict=True):
            parts += [f"## {task.title}", _facts(task), as_markdown(board)]
        parts += ["## How to read this", *_READING, *(f"- {citation}." for citation in self._citations)]
        return "\n\n".join(parts) + "\n"

    def as_latex(self) -> str:
        """Return the leaderboards and observations as LaTeX tables for booktabs, to be included in a document."""
        claims = [
            Table(
                claim,
                ("data", "verdict", "p"),
                tuple((one.where, one.verdict, format_p_value(one.p_value)) for one in group),
                2,
            )
            for claim, group in self._claims
        ]
        return "\n\n".join(map(as_latex, (*self.leaderboards, *claims))) + "\n"

    def as_csv(self) -> str:
        """Return every measure of every method with all digits, one line for each direction."""
        return as_csv(self.tasks)

    @property
    def _claims(self) -> list[tuple[str, list[Observation]]]:
        return [(claim, list(group)) for claim, group in groupby(self.observations, key=lambda one: one.claim)]

    @property
    def _citations(self) -> list[str]:
        printed = (published_beside(task, method) for task in self.tasks for method in task.methods)
        papers = {found.paper for found in printed if found is not None} | ({"000"} if self.observations else set())
        return [CITATIONS[paper] for paper in sorted(papers)]

    @property
    def _records(self) -> list[Record]:
        return [record for task in self.tasks for method in task.methods for record in method.records]

    @property
    def _summary(self) -> str:
        methods = {method.name for task in self.tasks for method in task.methods}
        return f"{counted(len(self.tasks), 'task')}, {counted(len(methods), 'method')}, {len(self._records)} results."

    @property
    def _made_by(self) -> str:
        versions = sorted({f"{name} {number}" for record in self._records for name, number in record.versions.items()})
        machines = sorted({record.machine for record in self._records if record.machine})
        return f"Measured with {', '.join(versions) or 'unknown versions'} on {'; '.join(machines) or 'one machine'}."


def build_report(records: Iterable[Record], samples: Sequence[SampleSheet] = ()) -> Report:
    """Return the report of these records, as `ResultFolder.records` gives them.

    >>> from diptych.benchmark.results import Record
    >>> from diptych.benchmark.reporting import build_report
    >>> values = {"AP()": {"image_query": 0.3, "text_query": 0.2}}
    >>> record = Record(
    ...     task="wikipedia", dataset="wikipedia", setting="standard", features="given", method="cca",
    ...     method_title="CCA", fold=0, measures=values, chance=values,
    ... )
    >>> print(build_report([record]).as_markdown().splitlines()[2])
    1 task, 1 method, 1 results.
    """
    tasks = group_records(records)
    if not tasks:
        raise InvalidInputError("there are no results to report; `diptych bench run` makes some")
    return Report(tasks, tuple(samples))


def _facts(task: TaskResults) -> str:
    record = task.methods[0].records[0]
    folds = f", {counted(len(task.folds), 'fold')}" if len(task.folds) > 1 else ""
    where = "; first fold" if len(task.folds) > 1 else ""
    return (
        f"{task.name}: features {task.features}{folds}{where}: {record.n_train:,} training pairs, "
        f"{_both(record.n_queries, 'pictures', 'texts')} asked, "
        f"{_both(record.n_gallery, 'texts', 'pictures')} searched."
    )


def _both(counts: Mapping[Direction, int], of_image_query: str, of_text_query: str) -> str:
    return f"{counts.get('image_query', 0):,} {of_image_query} and {counts.get('text_query', 0):,} {of_text_query}"
