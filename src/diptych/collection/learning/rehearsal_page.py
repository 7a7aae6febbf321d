"""A rehearsal as one page with pictures: what was won and lost, old answers beside new ones."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from diptych.collection.collection import Collection
from diptych.collection.learning.rehearsal_report import RehearsalReport, RehearsedQuestion
from diptych.errors import counted

_SHOWN = 6
_PACKAGE = "diptych.collection.learning"
_TITLES = {"captions": "Captions", "queries": "Logged queries"}


@dataclass(frozen=True)
class _Picture:
    """A small picture for the page: what to say where it cannot be seen, and whether it is a right answer."""

    name: str
    jpeg: bytes | None
    is_right: bool


def rehearsal_html(report: RehearsalReport, collection: Collection) -> str:
    """Return one page that needs no other file and no network; ``collection`` gives its small pictures.

    Right answers are marked. What the collection has forgotten since is shown by its id.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader(_PACKAGE, "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    pages.filters["base64"] = lambda content: b64encode(content).decode("ascii")
    style = (files(_PACKAGE) / "page" / "rehearsal.css").read_text(encoding="utf-8")

    def pictures(question: RehearsedQuestion, ids: Iterable[str]) -> list[_Picture]:
        return [_picture(collection, item_id, item_id in question.right) for item_id in ids]

    return pages.get_template("rehearsal.html.j2").render(
        report=report,
        titles=_TITLES,
        shown=_SHOWN,
        pictures=pictures,
        reencoding=reencoding_words(report),
        unjudged=None if report.overlap is None else unjudged_words(report, report.overlap),
        style=Markup(style),
    )


def _picture(collection: Collection, item_id: str, is_right: bool) -> _Picture:
    if item_id not in collection:
        return _Picture(item_id, None, is_right)
    item = collection[item_id]
    said = item.captions[0] if item.captions else item.path or item_id
    return _Picture(said, collection.thumbnail(item_id), is_right)


def reencoding_words(report: RehearsalReport) -> str:
    """Return what changing the whole collection would take, in words."""
    whole = f"{counted(report.n_pictures, 'picture')} and {counted(report.n_captions, 'caption')}"
    if not report.reads_pictures:
        return f"Changing over reads no picture: the new points of {whole} are made from stored features."
    seconds = report.reencode_seconds
    hours, minutes = seconds / 3600, seconds / 60
    told = f"{hours:.1f} hours" if hours >= 2 else f"{minutes:.0f} minutes" if minutes >= 2 else f"{seconds:.0f} s"
    return f"Encoding {whole} for it would take about {told} on this machine, at the pace of the sample."


def unjudged_words(report: RehearsalReport, overlap: float) -> str:
    """Return what can be said of logged queries without a clicked picture in the sample."""
    verb = "has" if report.n_unjudged == 1 else "have"
    unjudged = counted(report.n_unjudged, "logged query", "logged queries")
    return (
        f"{unjudged} {verb} no clicked picture here, so that nothing "
        f"says which answers are right. Of the first ten, both search models have {overlap:.0%} in common."
    )
