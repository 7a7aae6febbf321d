"""The one thread that writes a click log."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from diptych.service.clicks.database import click_log_error, connect
from diptych.service.clicks.errors import ClickLogError
from diptych.service.clicks.records import PendingSearch

Result = TypeVar("Result")
PendingWrite = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]
BATCH_SECONDS = 0.05
RETRY_SECONDS = 1.0


class LogWriter:
    """Writes searches in batches a moment later, and everything else at once, many callers to one transaction.

    No more than ``most_waiting`` searches wait, others are not recorded; the file grows to ``most_bytes`` at most.
    """

    def __init__(self, path: Path, *, most_waiting: int, most_bytes: int | None) -> None:
        self._path = path
        self._most_waiting = most_waiting
        self._connection = connect(path, most_bytes=most_bytes)
        self._changed = threading.Condition()
        self._searches: deque[PendingSearch] = deque()
        self._identities: dict[bytes, tuple[str, str, str, str]] = {}
        self._n_waiting = 0
        self._works: list[PendingWrite] = []
        self._closed = False
        self._pause = BATCH_SECONDS
        self.failure: ClickLogError | None = None
        self._thread = threading.Thread(target=self._write_until_closed, name=f"click log {path.parent}", daemon=True)
        self._thread.start()

    def enqueue(self, search: PendingSearch) -> bool:
        """Have a search written within a moment; return whether there was room for it."""
        with self._changed:
            if self._closed or self._n_waiting >= self._most_waiting:
                return False
            self._searches.append(search)
            self._identities[search.id] = search.identity
            self._n_waiting += 1
            self._changed.notify()
        return True

    def waiting(self, search_id: bytes) -> tuple[str, str, str, str] | None:
        """Return the identity of a search that is not written yet."""
        with self._changed:
            return self._identities.get(search_id)

    def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run ``work``, which refuses before it writes, in the next transaction, and return its result once durable."""
        promise: Future[Result] = Future()
        with self._changed:
            if self._closed:
                raise ClickLogError("the click log is closed; the service is shutting down", cause="busy")
            self._works.append((work, promise))
            self._changed.notify()
        return promise.result()

    def close(self) -> None:
        """Write what waits and close the file."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _write_until_closed(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._works or self._searches)
                # Searches wait for company; a person who clicked does not.
                self._changed.wait_for(lambda: self._closed or self._works, timeout=self._pause)
                is_last = self._closed
                searches, works = list(self._searches), self._works
                self._searches.clear()
                self._works = []
            self._write(searches, works)
            if is_last:
                self._connection.close()
                return

    def _write(self, searches: list[PendingSearch], works: list[PendingWrite]) -> None:
        try:
            outcomes = self._transaction(searches, works)
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            with self._changed:
                self._searches.extendleft(reversed(searches))
                self._pause = RETRY_SECONDS
                self.failure = click_log_error(self._path, error)
            for _, promise in works:
                promise.set_exception(click_log_error(self._path, error))
            return
        with self._changed:
            self._pause = BATCH_SECONDS
            self.failure = None
            self._n_waiting -= len(searches)
            for search in searches:
                self._identities.pop(search.id, None)
        for promise, outcome in outcomes:
            if isinstance(outcome, Exception):
                promise.set_exception(outcome)
            else:
                promise.set_result(outcome)

    def _transaction(self, searches: list[PendingSearch], works: list[PendingWrite]) -> list[tuple[Future[Any], Any]]:
        self._connection.execute("BEGIN IMMEDIATE")
        for search in searches:
            search.write(self._connection)
        outcomes: list[tuple[Future[Any], Any]] = []
        for work, promise in works:
            try:
                outcomes.append((promise, work(self._connection)))
            except sqlite3.Error:
                raise
            except Exception as refusal:
                # It is for whoever asked; the others of the transaction, and this thread, go on.
                outcomes.append((promise, refusal))
        self._connection.execute("COMMIT")
        return outcomes
