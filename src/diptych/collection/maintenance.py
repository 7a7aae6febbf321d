"""How a collection is: counts, sizes, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from diptych.addresses import without_password
from diptych.collection.item import iso_time
from diptych.collection.retriever_protocol import SIDES, Side
from diptych.collection.state import CollectionState
from diptych.collection.store import models
from diptych.collection.store.items import unread_files
from diptych.collection.store.points import count_missing_points, point_table
from diptych.collection.upkeep.checks import Damage, verify
from diptych.errors import CollectionError, counted

# Without these, items are gone: nothing else has what they say.
LOST = frozenset({"item", "caption", "model_file", "database"})


@dataclass(frozen=True)
class CheckReport:
    """Whether a collection is whole.

    ``problems`` are damaged rows and items that lack what they need, a sentence each; ``damaged`` has the rows by
    table and key, with what is wrong. ``warnings`` name settings of a server that hide damage.
    """

    problems: tuple[str, ...] = ()
    damaged: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything is as it was written, and every item has what it needs."""
        return not self.problems


@dataclass(frozen=True)
class Status:
    """Counts, sizes and the retriever of a collection.

    ``stale`` is true while a new retriever is pending: searches still use the old one, and ``reencode`` finishes the
    change. ``unsearchable`` counts pictures without points, which could not be read. ``updated`` is when an item was
    last added or changed, ISO 8601 in UTC. ``failures`` are the paths that the last addition skipped, with reasons.
    ``point_bytes`` is what one point takes, 0 before there are any; ``is_codes`` says that points are binary codes;
    ``memory_bytes`` is what all points take when they are searched. ``recall`` is the share of the ten nearest that the
    vector index finds, measured when it was built; None where everything is compared. ``texts_read`` counts the
    pictures whose text has been read, ``with_regions`` those whose regions are searched. ``warnings`` name
    settings of a server that hide damage.
    """

    folder: str
    root: str
    items: int
    pictures: int
    captions: int
    retriever: str
    fingerprint: str
    stale: bool
    pending: str | None
    pending_done: int
    unsearchable: int
    store_bytes: int
    index_bytes: int
    updated: str | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    point_bytes: int = 0
    is_codes: bool = False
    memory_bytes: int = 0
    recall: float | None = None
    texts_read: int = 0
    with_regions: int = 0
    warnings: tuple[str, ...] = ()


def status(state: CollectionState) -> Status:
    """Return counts, sizes, and whether a change of retriever is unfinished."""
    with state.store.reading() as db:
        active, pending = models.active_model(db), models.pending_model(db)

        def count(sql: str) -> int:
            return int(db.value(sql) or 0)

        def pointed(model: models.Model, kind: str) -> int:
            sql = f"SELECT count(DISTINCT content) FROM {point_table(model.id, kind)}"  # type: ignore[arg-type]
            return count(sql) if model.width else 0

        indexes = state.searched(active).indexes if active.width else {}
        recalls = [index.status(db).recall for index in indexes.values()]
        n_points = sum(count(f"SELECT count(*) FROM {point_table(active.id, kind)}") for kind in indexes)
        point_bytes = active.width * 2 if active.form == "f16" else active.width
        latest = db.value("SELECT max(updated_ns) FROM item")
        return Status(
            folder=without_password(state.place),
            root=str(state.root.folder),
            items=count("SELECT count(*) FROM item"),
            pictures=count("SELECT count(*) FROM item WHERE path IS NOT NULL"),
            captions=count("SELECT count(*) FROM caption"),
            retriever=active.name,
            fingerprint=active.fingerprint,
            stale=pending is not None,
            pending=None if pending is None else pending.name,
            pending_done=0 if pending is None else pointed(pending, "image"),
            unsearchable=count_missing_points(db, active.id, "image"),
            store_bytes=state.store.size(),
            index_bytes=sum(path.stat().st_size for path in state.store.derived.rglob("*") if path.is_file()),
            updated=None if latest is None else iso_time(latest),
            failures=unread_files(db),
            point_bytes=point_bytes,
            is_codes=active.form == "bits",
            memory_bytes=n_points * point_bytes,
            recall=min((recall for recall in recalls if recall < 1), default=None),
            texts_read=count("SELECT count(*) FROM picture_text"),
            with_regions=pointed(active, "region"),
            warnings=state.store.warnings(),
        )


def check(state: CollectionState) -> CheckReport:
    """Compare every row with its checksum, the tables with each other, and items with points."""
    damages = verify(state.store)
    problems = [f"{damage}; {_remedy(damage)}" for damage in damages]
    with suppress(CollectionError), state.store.reading() as db:
        stored = models.models(db)
        for model in stored:
            of = f"of the retriever {model.name!r} " if len(stored) > 1 else ""
            if model.state == "unfinished":
                problems.append(f"the points {of}are unfinished; add it again, or remove it")
            elif model.state != "resting":
                lacking = ((side, count_missing_points(db, model.id, side)) for side in SIDES)
                problems += [_lack_of_points(side, number, of) for side, number in lacking if number]
    damaged = {f"{one.table} {', '.join(map(str, one.key))}": one.problem for one in damages}
    return CheckReport(tuple(problems), damaged, state.store.warnings())


def _remedy(damage: Damage) -> str:
    if damage.table in LOST:
        return "restore the collection from a backup"
    return "`diptych repair` makes it again"


def _lack_of_points(side: Side, number: int, of: str) -> str:
    has, is_not, it = ("has", "is", "it") if number == 1 else ("have", "are", "them")
    what = counted(number, "picture" if side == "image" else "caption")
    return f"{what} {has} no points {of}and {is_not} not found; add or refresh {it}"
