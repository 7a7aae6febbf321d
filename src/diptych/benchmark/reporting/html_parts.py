"""Pieces of the page: tables, claims, figures, samples."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from diptych.benchmark.reporting.figures import WAYS, ChartGroup
from diptych.benchmark.reporting.observation import Observation
from diptych.benchmark.reporting.sample import Sample, SampleSheet, Shown
from diptych.benchmark.reporting.table import Table

_SIGNS = {"confirmed": "✓", "not confirmed": "✗", "not testable": "–"}


def html_table(table: Table) -> str:
    """Return a table that scrolls inside itself where it is wider than the screen.

    >>> from diptych.benchmark.reporting import Table
    >>> from diptych.benchmark.reporting.html_parts import html_table
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
