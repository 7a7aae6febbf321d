"""The report of a benchmark in all its forms."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import count, groupby

from diptych.benchmark.reporting.charts import MARK_PREFIX, can_draw
from diptych.benchmark.reporting.exports import as_csv, as_latex, as_markdown
from diptych.benchmark.reporting.leaderboard import CITATIONS, Table, leaderboard, published_beside
from diptych.benchmark.reporting.observations import Observation, check_observations, format_p_value
from diptych.benchmark.reporting.report_figures import seen_and_unseen, task_figures
from diptych.benchmark.reporting.samples import SampleSheet
from diptych.benchmark.reporting.task_results import Experiment, TaskResults, find_experiments, group_records
from diptych.benchmark.results import Record
from diptych.errors import InvalidInputError, counted
from diptych.space import DIRECTION_NAMES, Direction

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
        """The three observations of Liu et al., tested wherever the results allow it."""
        return check_observations(self.tasks)

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """The pairs of seen and unseen tasks."""
        return find_experiments(self.tasks)

    @cached_property
    def leaderboards(self) -> tuple[Table, ...]:
        """One table for each task."""
        return tuple(map(leaderboard, self.tasks))

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
