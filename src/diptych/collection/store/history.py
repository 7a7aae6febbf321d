"""The states that items were in: listed, found by number, day or time, shown to queries, and forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from diptych.arrays import IntArray
from diptych.collection.item import iso_time
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import CAPTION_COLUMNS, COLUMNS, FORMER_SAID_COLUMNS, next_time
from diptych.collection.store.kept import put_setting, setting
from diptych.collection.store.points import prune_contents, unnamed_contents
from diptych.collection.store.store import Store
from diptych.collection.store.values import prune_values, unused_values
from diptych.collection.store.words import FORMER_WORDS
from diptych.errors import InvalidInputError

KEPT_DAYS = 30.0
"""For so long what was changed or removed can be searched as it was."""
CHANGE_DAYS = 7
PRUNED_AT_ONCE = 2000
MAX_KEPT_DAYS = 36_500
_DAY_NS = 86_400 * 10**9
# Forgetting costs a write; it waits until a tenth more than is kept has come together.
_OVERDUE = 1.1
_FORMER_TABLES = ("former_item", "former_caption", "former_value", "former_said")

AsOf = int | str | datetime


@dataclass(frozen=True)
class Version:
    """The items after a change: its number and time, how many there were, and what the change did.

    One whole run of `index`, `add` or `remove` is one change. The first one says what was there when noting began.
    """

    number: int
    time_ns: int
    items: int
    added: int = 0
    changed: int = 0
    removed: int = 0

    @property
    def time(self) -> str:
        """When it was, ISO 8601 in UTC."""
        return iso_time(self.time_ns)


def versions(db: Connection) -> list[Version]:
    """Return every version that is kept, oldest first."""
    rows = db.rows("SELECT id, time_ns, items, added, changed, removed FROM version ORDER BY id")
    return [Version(*row) for row in rows]


def moment(db: Connection, as_of: AsOf) -> tuple[int, Version]:
    """Return the time that a version number or a date means, and the version that held then."""
    kept = versions(db)
    if not kept:
        raise InvalidInputError("no earlier state is known yet: changes are noted from the next one on")
    first, last = kept[0], kept[-1]
    if re.fullmatch(r"\d{1,6}", str(as_of)):
        version = next((one for one in kept if one.number == int(str(as_of))), None)
        if version is None:
            known = f"{first.number} ({first.time}) to {last.number} ({last.time})"
            raise InvalidInputError(f"there is no version {as_of}; kept are {known}")
        return version.time_ns, version
    asked = _nanoseconds(as_of)
    held = [one for one in kept if one.time_ns <= asked]
    if not held:
        raise InvalidInputError(
            f"the earliest state that is kept is that of {first.time}, version {first.number}; ask for a later one"
        )
    # What is changed after the call is no part of the moment that it found.
    return min(asked, last.time_ns), held[-1]


def past_view(db: Connection, moment_ns: int) -> None:
    """Let every query of this transaction see ``item``, ``caption``, ``item_value`` and ``said`` as they were.

    The views end with the transaction. Rows of ``said`` keep their ids; the word index of SQLite lacks those of former
    items, which are in ``said_before`` as well.
    """
    when = int(moment_ns)
    # In SQLite a view hides the table of its own name; in PostgreSQL it does not exist yet when names are looked up.
    main = "main." if db.engine == "sqlite" else ""
    former = f"FROM {main}former_item f WHERE f.until_ns > {when} AND f.updated_ns <= {when}"
    for table, columns in (
        ("caption", ("id", *CAPTION_COLUMNS, "crc")),
        ("item_value", ("value", "item")),
        ("said", FORMER_SAID_COLUMNS),
    ):
        names = ", ".join(columns)
        before = ", ".join(f"h.{column}" for column in columns)
        if table == "said" and db.engine != "sqlite":
            names, before = f"{names}, words", f"{before}, {FORMER_WORDS}"
        name = "former_value" if table == "item_value" else f"former_{table}"
        replaced = (
            f"SELECT {before} FROM {main}{name} h "
            f"JOIN {main}former_item f ON f.id = h.item AND f.until_ns = h.until_ns "
            f"WHERE f.until_ns > {when} AND f.updated_ns <= {when}"
        )
        if table == "said" and db.engine == "sqlite":
            db.run(f"CREATE TEMP VIEW said_before AS {replaced}")
        db.run(
            f"CREATE TEMP VIEW {table} AS SELECT {names} FROM {main}{table} "
            # For each row, so that who asks for a few rows does not wait for all items.
            f"WHERE EXISTS (SELECT 1 FROM {main}item i WHERE i.id = {table}.item AND i.updated_ns <= {when}) "
            f"UNION ALL {replaced}"
        )
    names = ", ".join(("id", *COLUMNS, "crc"))
    db.run(
        f"CREATE TEMP VIEW item AS SELECT {names} FROM {main}item WHERE updated_ns <= {when} "
        f"UNION ALL SELECT {names} {former}"
    )


def history_days(db: Connection) -> float:
    """Return for how many days items that were changed or removed are kept as they were."""
    return float(setting(db, "history_days", str(KEPT_DAYS)))


def keep_history(db: Connection, days: float) -> None:
    """Choose for how many days changed and removed items are kept; what is older goes at once."""
    if not 0 <= days <= MAX_KEPT_DAYS:
        raise InvalidInputError(f"days must be between 0 and {MAX_KEPT_DAYS:,}, got {days}")
    put_setting(db, "history_days", str(float(days)))
    forget_past(db, overdue_days=days)


def forget_past(db: Connection, *, overdue_days: float | None = None) -> None:
    """Forget states that are older than is kept, if some are overdue; the state at that moment stays.

    Called with each change: without anything overdue, it costs two lookups.
    """
    days, now_ns = history_days(db), next_time(db)
    overdue = days * _OVERDUE if overdue_days is None else overdue_days
    second = db.value("SELECT time_ns FROM version ORDER BY id LIMIT 1 OFFSET 1")
    if second is None or second > now_ns - overdue * _DAY_NS:
        return
    first = max(one.number for one in versions(db) if one.time_ns <= now_ns - days * _DAY_NS)
    _forget_before(db, first)


def forget_all(db: Connection) -> None:
    """End the past here: nothing before the latest change can be asked for."""
    if (last := db.value("SELECT max(id) FROM version")) is not None:
        _forget_before(db, int(last))


def _forget_before(db: Connection, number: int) -> None:
    until = db.value("SELECT time_ns FROM version WHERE id = ?", (number,))
    db.run("DELETE FROM version WHERE id < ?", (number,))
    for table in _FORMER_TABLES:
        db.run(f"DELETE FROM {table} WHERE until_ns <= ?", (until,))


def prune(store: Store) -> int:
    """Forget old states, old changes, and contents and values that nothing names; return how many contents went.

    Jobs are short. The newest change stays, so that readers see the same number as before.
    """

    def forget(db: Connection) -> None:
        forget_past(db, overdue_days=history_days(db))
        before = next_time(db) - CHANGE_DAYS * _DAY_NS
        db.run("DELETE FROM change WHERE time_ns < ? AND id < (SELECT max(id) FROM change)", (before,))

    store.write(forget, freeing=True)
    with store.reading() as db:
        values, contents = unused_values(db), unnamed_contents(db)
    _prune_parts(store, prune_values, values)
    return _prune_parts(store, prune_contents, contents)


def _prune_parts(store: Store, job: Callable[[Connection, IntArray], int], ids: IntArray) -> int:
    parts = (ids[start : start + PRUNED_AT_ONCE] for start in range(0, len(ids), PRUNED_AT_ONCE))
    return sum(store.write(lambda db, part=part: job(db, part), freeing=True) for part in parts)  # type: ignore[misc]


def prune_daily(store: Store) -> None:
    """Prune once a day."""
    with store.reading() as db:
        oldest = db.value("SELECT time_ns FROM change ORDER BY id LIMIT 1")
        is_due = oldest is not None and oldest < next_time(db) - (CHANGE_DAYS + 1) * _DAY_NS
    if is_due:
        prune(store)


def _nanoseconds(as_of: AsOf) -> int:
    """Return the end of a day, or a moment, in nanoseconds; without a zone it is in UTC."""
    if isinstance(as_of, datetime):
        moment = as_of
    else:
        text = str(as_of).strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            forms = "12, 2026-11-01 or 2026-11-01T18:30"
            raise InvalidInputError(
                f"as_of is a version number, a day or a time in UTC, such as {forms}; got {as_of!r}"
            ) from None
        if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text):
            moment += timedelta(days=1, microseconds=-1)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    whole = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 10**9 + whole.microseconds * 1000 + 999
