"""The report of a benchmark in all its forms."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import groupby

from diptych.benchmark.reporting.exports import as_csv, as_latex, as_markdown
from diptych.benchmark.reporting.leaderboard import CITATIONS, Table, leaderboard, published_beside
from diptych.benchmark.reporting.observations import Observation, check_observations, written_p
from diptych.benchmark.reporting.report_figures import WAYS, ChartGroup, seen_and_unseen, task_figures
from diptych.benchmark.reporting.samples import Sample, SampleSheet, Shown
from diptych.benchmark.reporting.task_results import Experiment, TaskResults, find_experiments, group_records
from diptych.benchmark.results import Record
from diptych.errors import InvalidInputError
from diptych.space import Direction

_SIGNS = {"confirmed": "✓", "not confirmed": "✗", "not testable": "–"}


def html_table(table: Table) -> str:
    """Return a table that scrolls inside itself where it is wider than the screen.

    >>> from diptych.benchmark.reporting import Table
    >>> from diptych.benchmark.reporting.benchmark_report import html_table
    >>> "<td>0.24</td>" in html_table(Table("A < B", ("method", "MAP"), (("CCA", "0.24"),)))
    True
    """
    head = "".join(
        f'<th scope="col"{_kind(table, column)}>{escape(heading)}</th>' for column, heading in enumerate(table.headings)
    )
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(table, column)}>{escape(cell)}</td>" for column, cell in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    notes = f'<p class="notes">{escape(" ".join(table.notes))}</p>' if table.notes else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f'<table class="sortable"><caption>{escape(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
    )


def html_claim(claim: Observation) -> str:
    """Return a claim with its verdict, its evidence, and the details behind a fold."""
    details = ""
    if claim.rows:
        table = html_table(Table(f"{claim.where}: details", claim.headings, claim.rows, 1))
        details = f"<details><summary>Details</summary>{table}</details>"
    more = claim.outcome.removeprefix(claim.verdict)
    return (
        f'<article class="claim {claim.verdict.replace(" ", "-")}"><h4>{escape(claim.where)}</h4>'
        f'<p><span class="verdict">{_SIGNS[claim.verdict]} {claim.verdict}</span>{escape(more)}</p>'
        f"<p>{escape(claim.evidence)}</p>{details}</article>"
    )


def html_figure(group: ChartGroup) -> str:
    """Return charts side by side, with their legend and what they show."""
    charts = "".join(f"<div>{chart}</div>" for chart in group.charts)
    return (
        f"<h3>{escape(group.heading)}</h3><figure>{group.legend}"
        f'<div class="figures">{charts}</div><figcaption>{escape(group.caption)}</figcaption></figure>'
    )


def html_samples(sheet: SampleSheet) -> str:
    """Return queries with their first answers; right ones have a full frame and a tick, wrong ones a dashed frame."""
    shown = "".join(map(_sample, sheet.samples))
    return f'<p class="soft">{escape(sheet.note)}</p>{shown}'


def _sample(sample: Sample) -> str:
    answers = "".join(
        f"<p>{escape(method)}</p><ol class='answers'>{''.join(_answer(shown, right) for shown, right in found)}</ol>"
        for method, found in sample.answers.items()
    )
    asked = f"<strong>{WAYS[sample.direction].capitalize()}</strong>, class {escape(sample.query.label)}"
    return f'<section class="sample"><div class="asked"><p>{asked}</p>{_item(sample.query)}</div>{answers}</section>'


def _answer(shown: Shown, right: bool) -> str:
    kind, sign = ("right", "✓") if right else ("wrong", "✗")
    told = f'<span role="img" aria-label="{kind}">{sign}</span> {escape(shown.label)}'
    return f'<li class="{kind}">{told}{_item(shown)}</li>'


def _item(shown: Shown) -> str:
    if shown.picture is None:
        return f"<p>{escape(shown.text)}</p>"
    source = b64encode(shown.picture).decode("ascii")
    return f'<img src="data:image/jpeg;base64,{source}" alt="{escape(shown.text)}">'


def _kind(table: Table, column: int) -> str:
    return ' class="text"' if column < table.n_names else ""


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
        """Return one page that needs no other file and no network."""
        sections = {"observations": ("Observations", self._html_observations())}
        for task, board in zip(self.tasks, self.leaderboards, strict=True):
            content = f'<p class="soft">{escape(_facts(task))}</p>{html_table(board)}'
            sections[task.name] = (task.title, content + "".join(map(html_figure, task_figures(task))))
        drawn = [group for group in map(seen_and_unseen, self.experiments) if group is not None]
        if drawn:
            sections["seen-unseen"] = ("Seen against unseen classes", "".join(map(html_figure, drawn)))
        for sheet in self.samples:
            sections[f"samples-{sheet.task}"] = (f"Sample answers: {sheet.task}", html_samples(sheet))
        sections["reading"] = ("How to read this", self._html_reading())
        return _html_page(self.title, self._summary, sections)

    def as_markdown(self) -> str:
        """Return the tables and observations as Markdown."""
        parts = [f"# {self.title}", self._summary, "## Observations"]
        for claim, group in groupby(self.observations, key=lambda one: one.claim):
            parts.append(f"### {claim}")
            parts.append("\n".join(f"- **{one.where}: {one.outcome}.** {one.evidence}" for one in group))
        for task, board in zip(self.tasks, self.leaderboards, strict=True):
            parts += [f"## {task.title}", _facts(task), as_markdown(board)]
        parts += ["## How to read this", *_READING, *(f"- {citation}." for citation in self._citations)]
        return "\n\n".join(parts) + "\n"

    def as_latex(self) -> str:
        """Return the leaderboards and observations as LaTeX tables for booktabs, to be included in a document."""
        return "\n\n".join([*map(as_latex, self.leaderboards), *map(as_latex, self._claims())]) + "\n"

    def as_csv(self) -> str:
        """Return every measure of every method with all digits, one line for each direction."""
        return as_csv(self.tasks)

    def _claims(self) -> Iterable[Table]:
        for claim, group in groupby(self.observations, key=lambda one: one.claim):
            rows = tuple((one.where, one.verdict, written_p(one.p_value)) for one in group)
            yield Table(claim, ("data", "verdict", "p"), rows, 2)

    def _html_observations(self) -> str:
        if not self.observations:
            return "<p>There is no task with seen or unseen classes among these results.</p>"
        parts = [
            "<p>What Liu et al. observed under their extendable protocol, tested on these results. A claim is "
            "confirmed when it holds with p ≤ 0.05.</p>"
        ]
        for claim, group in groupby(self.observations, key=lambda one: one.claim):
            cards = "".join(map(html_claim, group))
            parts.append(f'<h3>{escape(claim)}</h3><div class="claims">{cards}</div>')
        return "".join(parts)

    def _html_reading(self) -> str:
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in _READING)
        cited = "".join(f"<li>{escape(citation)}.</li>" for citation in self._citations)
        return f"{told}<h3>Papers</h3><ul>{cited}</ul><p class='soft'>{escape(self._made_by)}</p>"

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
        return f"{_counted(len(self.tasks), 'task')}, {_counted(len(methods), 'method')}, {len(self._records)} results."

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
    folds = f", {_counted(len(task.folds), 'fold')}" if len(task.folds) > 1 else ""
    where = "; first fold" if len(task.folds) > 1 else ""
    return (
        f"{task.name}: features {task.features}{folds}{where}: {record.n_train:,} training pairs, "
        f"{_both(record.n_queries, 'pictures', 'texts')} asked, "
        f"{_both(record.n_gallery, 'texts', 'pictures')} searched."
    )


def _both(counts: Mapping[Direction, int], of_image_query: str, of_text_query: str) -> str:
    return f"{counts.get('image_query', 0):,} {of_image_query} and {counts.get('text_query', 0):,} {of_text_query}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _html_page(title: str, summary: str, sections: dict[str, tuple[str, str]]) -> str:
    folder = files("diptych.benchmark.reporting") / "page"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    contents = "".join(f'<li><a href="#{escape(name)}">{escape(head)}</a></li>' for name, (head, _) in sections.items())
    body = "".join(
        f'<section id="{escape(name)}"><h2>{escape(head)}</h2>{content}</section>'
        for name, (head, content) in sections.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p class="soft">{escape(summary)}</p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
        f"<main>{body}</main><script>\n{script}</script></body></html>\n"
    )
