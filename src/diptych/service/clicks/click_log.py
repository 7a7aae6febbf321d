"""The click log: what was asked, shown and clicked, in the tables of a collection."""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Result, Store
from diptych.errors import CollectionBusyError, CollectionError, InvalidInputError
from diptych.service.clicks import exports, interleavings, reports
from diptych.service.clicks.exports import ExportFormat, ExportKind
from diptych.service.clicks.interleavings import Interleaving, InterleavingReport
from diptych.service.clicks.records import (
    CLICK_KINDS,
    ClickKind,
    InterleavedPage,
    UnknownSearchError,
    is_plain,
    normalised_query,
)
from diptych.service.clicks.reports import LogCounts, QueryReport
from diptych.service.clicks.searches import Click, PendingSearch, search_identity, write_searches

if TYPE_CHECKING:
    from diptych.collection import StoredRetriever

BATCH_SECONDS = 0.1
RETRY_SECONDS = 1.0
WRITE_WAIT_S = 10.0
_ID_BYTES = 16
_ID = re.compile(rf"[0-9a-f]{{{2 * _ID_BYTES}}}")
_DELETE_AT_ONCE = 2_000
_log = logging.getLogger("diptych.service")


class ClickLog:
    """Remembers, in the tables of a collection, what was asked, shown and clicked.

    Searches are written together up to a tenth of a second after they were answered, by one thread; a process that is
    killed loses those. A click is acknowledged when it is durable. Several processes may write to one store. Positions
    are recorded with everything shown, so that counts of clicks can be corrected for them. The counts are the (query,
    image, clicks) triads of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018.

    Parameters
    ----------
    store :
        The store of the collection; it stays open when the log is closed.
    most_waiting :
        How many searches may wait to be written, should the disk be slow or full; more are not recorded.
    clock :
        Tells the time in seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.collection.store.sqlite import SqliteStore
    >>> from diptych.service.clicks import ClickLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore.create(Path(folder))
    ...     with ClickLog(store) as log:
    ...         search = log.record_search(
    ...             query="a red circle", retriever="default", fingerprint="f1", target="images",
    ...             shown=[("scene-7", 1), ("scene-2", 2)], no_good_match=False, best_probability=0.9,
    ...         )
    ...         log.record_click(search_id=search, item="scene-2", position=2, kind="open")
    ...     store.close()
    1
    """

    def __init__(self, store: Store, *, most_waiting: int = 4096, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._most_waiting = most_waiting
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[PendingSearch, None] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._write_until_closed, name="diptych-clicks", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def record_search(
        self,
        *,
        query: str,
        retriever: str,
        fingerprint: str,
        target: str,
        shown: Sequence[tuple[str, int]],
        no_good_match: bool,
        best_probability: float | None,
        continues: str | None = None,
        terms: Sequence[Mapping[str, Any]] | None = None,
        visitor: str | None = None,
        page: InterleavedPage | None = None,
    ) -> str | None:
        """Record what was asked and the results that one page showed, as pairs of item and position from 1.

        Returns the id of the search, under which its clicks are recorded; None where nothing more can be kept waiting
        to be written. ``continues`` names the search whose next page this is; if that asked something else, or is
        unknown, a new one begins. ``visitor`` tells people apart, in any words; only a number is kept of them, see
        :func:`~diptych.service.clicks.searches.visitor_number`, and None for an unknown one. ``page`` says which
        of two interleaved retrievers each result came from; a search that begins with one has the id that its teams
        were drawn with. Never waits for the disk.
        """
        normalised = normalised_query(query)
        pending = PendingSearch(
            id=secrets.token_hex(_ID_BYTES),
            time=self._clock(),
            query=normalised,
            terms=None if terms is None else json.dumps(list(terms)),
            plain=is_plain(normalised, terms),
            target=target,
            retriever=retriever,
            fingerprint=fingerprint,
            no_good_match=no_good_match,
            best_probability=best_probability,
            shown=tuple(shown),
            visitor=visitor,
            page=page,
        )
        if continues is not None and self._search_identity(continues) == pending.identity:
            pending = replace(pending, id=continues)
        elif page is not None and self._search_identity(page.draw) in (None, pending.identity):
            pending = replace(pending, id=page.draw)
        with self._changed:
            if self._closed or len(self._waiting) >= self._most_waiting:
                return None
            self._waiting[pending] = None
            self._changed.notify()
        return pending.id

    def record_click(
        self,
        *,
        search_id: str,
        item: str,
        position: int,
        kind: ClickKind,
        caption_id: str | None = None,
        visitor: str | None = None,
    ) -> int:
        """Record a click on an item at the position where the search showed it; return its number once durable.

        ``visitor`` is told to a search that was recorded without one.
        """
        if kind not in CLICK_KINDS:
            raise InvalidInputError(f"unknown kind of click {kind!r}; use one of {', '.join(CLICK_KINDS)}")
        if not _ID.fullmatch(search_id):
            raise UnknownSearchError(search_id)
        if self._closed:
            raise CollectionBusyError("the click log is closed; the service is shutting down")
        click = Click(search_id, item, position, kind, caption_id, self._clock(), visitor)
        try:
            return self._write(click.write, [search for search in self._pending() if search.id == search_id])
        except UnknownSearchError:
            # With several processes, the one that answered the search may be about to write it.
            time.sleep(2 * BATCH_SECONDS)
        return self._write(click.write, [])

    def may_continue(self, search_id: str, *, query: str, retriever: str, fingerprint: str, target: str) -> bool:
        """Return True if a further page of this can go on with a search of that id: one that asked the same."""
        asked = (normalised_query(query), target, retriever, fingerprint)
        # One that is unknown may be on its way to the database from another process.
        return bool(_ID.fullmatch(search_id)) and self._search_identity(search_id) in (None, asked)

    def interleaving(self) -> Interleaving | None:
        """Return the interleaving that runs, whichever process started it; None where there is none."""
        # Searching goes on even where the log cannot be read.
        with suppress(CollectionError), self.store.reading() as db:
            return interleavings.running(db)
        return None

    def start_interleaving(self, *, a: tuple[str, str], b: tuple[str, str]) -> Interleaving:
        """Interleave two retrievers, each given as name and fingerprint, from now on; only one pair at a time."""
        if a[1] == b[1]:
            raise InvalidInputError("a retriever cannot be interleaved with itself; name two different ones")
        return self._write(lambda db: interleavings.start(db, a, b, self._clock()), [])

    def stop_interleaving(self) -> Interleaving:
        """Answer searches as usual from now on; what was counted stays."""
        return self._write(lambda db: interleavings.stop(db, self._clock()), [])

    def interleavings(self, stored: Iterable[StoredRetriever] = ()) -> list[InterleavingReport]:
        """Return what came out of each interleaving, the latest first; one runs while ``stored`` has both."""
        self._flush_if_possible()
        with self.store.reading() as db:
            return interleavings.interleaving_reports(db, stored)

    def report(self, days: int = 30) -> QueryReport:
        """Return what was asked and clicked on each of the last days, which queries are frequent and which fail."""
        self._flush_if_possible()
        with self.store.reading() as db:
            return reports.query_report(db, now=self._clock(), days=days)

    def counts(self) -> LogCounts:
        """Return how much the log holds."""
        self._flush_if_possible()
        with self.store.reading() as db:
            return LogCounts.read(db)

    def export(self, stream: BinaryIO, what: ExportKind = "triads", format: ExportFormat = "csv") -> int:
        """Write the log as a table to a stream of bytes, in bounded memory, and return the number of rows.

        ``triads`` are (query, item, clicks), of searches for words alone; an item counts once in each search, and
        asking for less of it does not count. ``events`` are all clicks, each with its position and how often that
        position was shown. ``impressions`` are all results shown, clicked or not, counted by query, retriever, item and
        position: what correcting counts for the position needs.
        """
        self._flush_if_possible()
        return exports.write_export(self.store, stream, what, format)

    def forget(self, before: float | None = None) -> None:
        """Erase everything, or the searches before a time (in seconds since 1970) with their clicks; and rehearsals."""
        self.flush()
        with self.store.reading() as db:
            latest = int(db.value("SELECT max(id) FROM search") or 0)
        until = float("inf") if before is None else before
        old = f"SELECT id FROM search WHERE id <= ? AND time < ? LIMIT {_DELETE_AT_ONCE}"
        # Other processes write between two pieces.
        while self.store.write(lambda db: db.run(f"DELETE FROM search WHERE id IN ({old})", (latest, until))):
            pass

        def delete_the_rest(db: Connection) -> None:
            db.run("DELETE FROM query WHERE NOT EXISTS (SELECT 1 FROM search WHERE search.query = query.id)")
            db.run("DELETE FROM rehearsal")
            # One that runs goes on, and begins to count anew.
            db.run(
                "DELETE FROM interleaving WHERE stopped IS NOT NULL"
                " AND NOT EXISTS (SELECT 1 FROM draft WHERE draft.interleaving = interleaving.id)"
            )
            if before is None:
                db.run("DELETE FROM visitor_salt")

        self.store.erase(delete_the_rest)

    def flush(self) -> None:
        """Return when every search recorded so far is durable."""
        if waiting := self._pending():
            self._write(lambda _: None, waiting)

    def close(self) -> None:
        """Write what waits, and take nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _pending(self) -> list[PendingSearch]:
        with self._changed:
            return list(self._waiting)

    def _write(self, job: Callable[[Connection], Result], searches: Sequence[PendingSearch]) -> Result:
        """Write searches that wait, and run a job after them in the same transaction."""

        def write(db: Connection) -> Result:
            write_searches(db, searches)
            return job(db)

        result = self.store.write(write, wait=WRITE_WAIT_S)
        # Two threads may write the same search at once: the second time changes nothing.
        with self._changed:
            for search in searches:
                self._waiting.pop(search, None)
            if not self._waiting:
                # A dictionary keeps the room of the most it ever held.
                self._waiting = {}
        return result

    def _flush_if_possible(self) -> None:
        # Where nothing more can be written, what was written before can still be read.
        with suppress(CollectionError):
            self.flush()

    def _write_until_closed(self) -> None:
        pause, failure = BATCH_SECONDS, ""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                # Searches wait for company.
                self._changed.wait_for(lambda: self._closed, timeout=pause)
                is_last = self._closed
            try:
                # Held by no name here: the last batch would stay in memory until the next one.
                self._write(_lose_at_power_cuts, self._pending())
                pause, failure = BATCH_SECONDS, ""
            except Exception as error:
                pause = RETRY_SECONDS
                if str(error) != failure:
                    failure = str(error)
                    _log.warning("searches cannot be logged now; trying again: %s", error)
            if is_last:
                return

    def _search_identity(self, search_id: str) -> tuple[str, str, str, str] | None:
        """Return what makes a page one of this search, whether the search is written yet or not."""
        for search in self._pending():
            if search.id == search_id:
                return search.identity
        with suppress(CollectionError), self.store.reading() as db:
            return search_identity(db, search_id) if _ID.fullmatch(search_id) else None
        return None


def _lose_at_power_cuts(db: Connection) -> None:
    """Let PostgreSQL commit searches without waiting for its disk."""
    if db.engine == "postgres":
        db.run("SET LOCAL synchronous_commit TO off")
