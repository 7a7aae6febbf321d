"""The click log: what was asked, shown and clicked, by visitors without names, and where each collection keeps it."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

from diptych.atomic_files import atomic_write
from diptych.errors import InvalidInputError
from diptych.service.clicks.database import BATCH_SECONDS, LogWriter, click_log_error, connect, delete_searches
from diptych.service.clicks.export import ExportFormat, ExportKind, write_export
from diptych.service.clicks.interleaving import Interleaving, InterleavingReport
from diptych.service.clicks.records import (
    CLICK_KINDS,
    Click,
    ClickKind,
    ClickLogError,
    InterleavedPage,
    PendingSearch,
    UnknownSearchError,
    is_plain,
    normalised_query,
)
from diptych.service.clicks.report import LogCounts, QueryReport, query_report

# Numbers of visitors compare within such a period, counted from 1970, and mean nothing after it.
SALT_DAYS = 30
_VISITOR_BYTES, _SALT_BYTES = 8, 32


def visitor_number(folder: Path, visitor: str, time: float) -> bytes | None:
    """Return a keyed digest of who searched, or None where no key can be kept in the folder.

    The key, the salt, is drawn anew for every period of thirty days and the one before is deleted. Without it a number
    cannot be computed from a session again, nor can numbers of two periods be brought together.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.service.clicks.log import SALT_DAYS, visitor_number
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     now, again, later = (visitor_number(Path(folder), "ann", days * 86_400) for days in (0, 1, SALT_DAYS))
    ...     len(now), now == again, now == later, len(list(Path(folder).iterdir()))
    (8, True, False, 1)
    """
    period = int(time // (SALT_DAYS * 86_400))
    # What is searched is logged all the same where the disk is full.
    with suppress(OSError):
        # Read each time, so that all processes of a service change to a new salt at once.
        return hmac.digest(_salt(folder, period), visitor.encode(errors="backslashreplace"), "sha256")[:_VISITOR_BYTES]
    return None


def _salt(folder: Path, period: int) -> bytes:
    file = folder / f"visitors-{period}.salt"
    with suppress(FileNotFoundError):
        return file.read_bytes()
    # Two processes may begin a period at once; the one that comes second takes the salt of the first.
    with suppress(FileExistsError), atomic_write(file, private=True, replace=False) as draft:
        draft.write_bytes(secrets.token_bytes(_SALT_BYTES))
    forget_salts(folder, before=period)
    return file.read_bytes()


def forget_salts(folder: Path, before: int | None = None) -> None:
    """Delete all salts, or those of periods before one, so that nobody can compute their numbers again."""
    for file in folder.glob("visitors-*.salt"):
        if before is None or int(file.stem.removeprefix("visitors-")) < before:
            file.unlink(missing_ok=True)


_ID_BYTES = 16

_SEARCH_OF_ID = """
SELECT queries.text, target, name, fingerprint FROM searches
JOIN queries ON queries.number = query JOIN retrievers ON retrievers.number = retriever
WHERE id = ?
"""


class ClickLog:
    """Remembers, in one file on this machine, what was asked, shown and clicked.

    A search is written a moment after it was answered, so that answering does not wait; a click is acknowledged when
    it is durable. Several processes may write to one file. Positions are recorded with everything shown, so that
    counts of clicks can be corrected for them. The counts are the (query, image, clicks) triads of Dong et al.,
    "Cross-media similarity evaluation for web image retrieval in the wild", 2018.

    Parameters
    ----------
    path :
        The file; it is made, for its owner alone, where it does not exist.
    most_waiting :
        How many searches may wait to be written, should the disk be slow or full; more are not recorded.
    most_bytes :
        How large the file may grow; by default as large as the disk allows.
    clock :
        Tells the time in seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.service.clicks import ClickLog
    >>> with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "clicks.sqlite") as log:
    ...     search = log.record_search(
    ...         query="a red circle", retriever="default", fingerprint="f1", target="images",
    ...         shown=[("scene-7", 1), ("scene-2", 2)], no_good_match=False, best_probability=0.9,
    ...     )
    ...     log.record_click(search_id=search, item="scene-2", position=2, kind="open")
    1
    """

    def __init__(
        self,
        path: Path,
        *,
        most_waiting: int = 4096,
        most_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._clock = clock
        self._writer = LogWriter(path, most_waiting=most_waiting, most_bytes=most_bytes)
        self._lookup = connect(path)
        self._lookup_lock = threading.Lock()

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
        unknown, a new one begins. ``visitor`` tells people apart, in any words; a number is kept of them, see
        :func:`visitor_number`, and None is nobody known. ``page`` says which
        of two interleaved retrievers each result came from; a search that begins with one has the id that its teams
        were drawn with. Never waits for the disk.
        """
        normalised = normalised_query(query)
        now = self._clock()
        pending = PendingSearch(
            id=secrets.token_bytes(_ID_BYTES),
            time=now,
            query=normalised,
            terms=None if terms is None else json.dumps(list(terms)),
            plain=is_plain(normalised, terms),
            target=target,
            retriever=retriever,
            fingerprint=fingerprint,
            no_good_match=no_good_match,
            best_probability=best_probability,
            shown=tuple(shown),
            visitor=self._visitor_number(visitor, now),
            page=page,
        )
        if continues is not None and self._search_identity(continues) == pending.identity:
            pending = replace(pending, id=bytes.fromhex(continues))
        elif page is not None and self._search_identity(page.draw) in (None, pending.identity):
            pending = replace(pending, id=bytes.fromhex(page.draw))
        return pending.id.hex() if self._writer.enqueue(pending) else None

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
        now = self._clock()
        number = self._visitor_number(visitor, now)
        click = Click(_search_key(search_id), item, position, kind, caption_id, now, number)
        return self._write_with_retry(click.write)

    def may_continue(self, search_id: str, *, query: str, retriever: str, fingerprint: str, target: str) -> bool:
        """Return True if a further page of this can go on with a search of that id: one that asked the same."""
        try:
            _search_key(search_id)
        except UnknownSearchError:
            return False
        # One that is unknown may be on its way to the file from another process.
        return self._search_identity(search_id) in (None, (normalised_query(query), target, retriever, fingerprint))

    def interleaving(self) -> Interleaving | None:
        """Return the interleaving that runs, whichever process started it; None where there is none."""
        # Searching goes on even where the log cannot be read.
        with self._lookup_lock, suppress(sqlite3.Error):
            return Interleaving.running(self._lookup)
        return None

    def start_interleaving(self, *, a: tuple[str, str], b: tuple[str, str]) -> Interleaving:
        """Interleave two retrievers, each given as name and fingerprint, from now on; only one pair at a time."""
        if a[1] == b[1]:
            raise InvalidInputError("a retriever cannot be interleaved with itself; name two different ones")
        return self._writer.run(partial(Interleaving.start, a=a, b=b, time=self._clock()))

    def stop_interleaving(self) -> Interleaving:
        """Answer searches as usual from now on; what was counted stays."""
        return self._writer.run(partial(Interleaving.stop, time=self._clock()))

    def interleavings(self) -> list[InterleavingReport]:
        """Return what came out of each interleaving, the latest first."""
        with self._snapshot() as connection:
            return InterleavingReport.read(connection)

    def report(self, days: int = 30) -> QueryReport:
        """Return what was asked and clicked on each of the last days, which queries are frequent and which fail."""
        with self._snapshot() as connection:
            return query_report(connection, now=self._clock(), days=days)

    def counts(self) -> LogCounts:
        """Return how much the log holds."""
        with self._snapshot() as connection:
            return LogCounts.read(connection)

    def export(self, stream: BinaryIO, what: ExportKind = "triads", format: ExportFormat = "csv") -> int:
        """Write the log as a table to a stream of bytes, in bounded memory, and return the number of rows.

        ``triads`` are (query, item, clicks), of searches for words alone; an item counts once in each search, and
        asking for less of it does not count. ``events`` are all clicks, each with its position and how often that
        position was shown. ``impressions`` are all results shown, clicked or not, counted by query, retriever, item and
        position: what correcting counts for the position needs.
        """
        with self._snapshot() as connection:
            return write_export(connection, stream, what, format)

    def forget(self, before: float | None = None) -> None:
        """Erase everything, or the searches before a time (in seconds since 1970) with their clicks."""
        self.flush()
        with self._translated_errors(), closing(connect(self.path)) as connection:
            delete_searches(connection, before)
        if before is None:
            forget_salts(self.path.parent)

    def flush(self) -> None:
        """Return when every search recorded so far is in the file."""
        self._writer.run(lambda _: None)

    def close(self) -> None:
        """Write what waits and close the file."""
        self._writer.close()
        with self._lookup_lock:
            self._lookup.close()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Give the state of the log at one moment."""
        # Where nothing more can be written, what was written before can still be read.
        with suppress(ClickLogError):
            self.flush()
        with self._translated_errors(), closing(connect(self.path)) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise click_log_error(self.path, error) from error

    def _visitor_number(self, visitor: str | None, time: float) -> bytes | None:
        return None if visitor is None else visitor_number(self.path.parent, visitor, time)

    def _search_identity(self, search_id: str) -> tuple[str, str, str, str] | None:
        """Return what makes a page one of this search, whether the search is written yet or not."""
        try:
            key = _search_key(search_id)
        except UnknownSearchError:
            return None
        if (waiting := self._writer.waiting(key)) is not None:
            return waiting
        with self._lookup_lock, suppress(sqlite3.Error):
            row: tuple[str, str, str, str] | None = self._lookup.execute(_SEARCH_OF_ID, (key,)).fetchone()
            return row
        return None

    def _write_with_retry(self, work: Callable[[sqlite3.Connection], int]) -> int:
        try:
            return self._writer.run(work)
        except UnknownSearchError:
            # The search may be one that could not be written.
            if self._writer.failure is not None:
                raise self._writer.failure from None
        # With several processes, the one that answered the search may be about to write it.
        time.sleep(2 * BATCH_SECONDS)
        return self._writer.run(work)


def _search_key(search_id: str) -> bytes:
    try:
        key = bytes.fromhex(search_id)
    except ValueError:
        key = b""
    if len(key) != _ID_BYTES or key.hex() != search_id:
        raise UnknownSearchError(search_id)
    return key


_log = logging.getLogger("diptych.service")


def click_log_path(collection: Path) -> Path:
    """Return where the click log of a collection is."""
    return collection / "service" / "clicks.sqlite"


def open_click_logs(folders: Mapping[str, Path]) -> dict[str, ClickLog]:
    """Open the log of each collection, given its folder by its name; one on a read-only disk, say, is left out."""
    logs = {}
    for name, folder in folders.items():
        try:
            logs[name] = ClickLog(click_log_path(folder))
        except ClickLogError as error:
            _log.warning("collection %s is served without a click log: %s", name, error)
    return logs
