"""The job that learns from clicks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diptych.collection import Collection
from diptych.errors import InvalidInputError
from diptych.service.clicks.opening import click_log_path
from diptych.service.clicks.plain_impressions import plain_impressions
from diptych.service.jobs.reporter import Reporter

if TYPE_CHECKING:
    from diptych.collection.learning import LearningReport


def learn(collection: Collection, parameters: Mapping[str, Any], reporter: Reporter) -> dict[str, Any]:
    """Learn from what people clicked, and use what was learned where it is better on queries that were kept back."""
    from diptych.collection.learning import Impressions, Learning

    reporter.note("reading the clicks")
    log = click_log_path(collection.folder)
    seen = Impressions.from_rows(plain_impressions(log) if log.is_file() else ())
    if not seen.n_clicks:
        raise InvalidInputError("nobody has clicked a picture that was found by words; there is nothing to learn yet")
    settings = {name: parameters[name] for name in ("held_out", "alpha", "seed") if name in parameters}
    report = Learning(collection, **settings).run(
        seen,
        dry_run=bool(parameters.get("dry_run", False)),
        progress=lambda doing, done, total: reporter.advance(done, total, doing),
    )
    return learning_result(report)


def learning_result(report: LearningReport) -> dict[str, Any]:
    """Return what a job tells of learning: everything but queries, since jobs are read without the token."""
    record = {name: value for name, value in report.record.to_json().items() if name not in ("gained", "lost")}
    return {"record": record, "notes": list(report.notes)}
