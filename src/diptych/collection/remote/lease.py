"""The lease of the one writer of a collection in object storage."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from diptych.collection.remote.bucket import Bucket
from diptych.errors import CollectionBusyError, StorageConflictError, StorageError

LEASE_SECONDS = 8.0
_RENEWED_EVERY = LEASE_SECONDS / 4
_LOOK_SECONDS = 0.25
# A lease that was not renewed for so long has ended whatever the clocks of two machines say.
_SURELY_ENDED = 20 * LEASE_SECONDS
_OBJECT = "writer.json"


@dataclass(frozen=True)
class _Held:
    """What the object says: who writes, since which change of writer, and whether a former one is yet to be cut off."""

    holder: str | None
    term: int
    cuts_off: bool
    tag: str = ""
    age_seconds: float = 0.0

    def document(self) -> bytes:
        # Never twice the same bytes, which would have the same tag.
        said = {"holder": self.holder, "term": self.term, "cuts_off": self.cuts_off}
        return json.dumps({**said, "nonce": uuid.uuid4().hex}).encode()


class WriterLease:
    """An object that names the writer; whoever holds it renews it, and it ends by itself.

    The lease keeps writers from disturbing each other. That a writer which was paused for longer than its lease cannot
    commit when it wakes up is not left to clocks: a writer that takes over from one that did not give its lease back
    writes the next version of every table first, and each version can be written once.
    """

    def __init__(self, bucket: Bucket, holder: str) -> None:
        self._bucket = bucket
        self._holder = holder
        self._lock = threading.Lock()
        self._held = _Held(None, 0, False)
        self._is_lost = False

    @contextmanager
    def held(self, wait: float) -> Iterator[bool]:
        """Be the writer, or raise after ``wait`` seconds; yields whether another one is to be cut off first."""
        self._held, self._is_lost = self._acquired(wait), False
        stopping = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(stopping,), name="writer-lease", daemon=True)
        renewing.start()
        is_away = False
        try:
            yield self._held.cuts_off
        except StorageError:
            # The lease ends by itself; asking for that would only take longer.
            is_away = True
            raise
        finally:
            stopping.set()
            renewing.join()
            if not is_away:
                with suppress(StorageError):
                    self._write(holder=None)

    def has_cut_off(self) -> None:
        """Note that no former writer can commit any more."""
        self._write(cuts_off=False)

    def check(self) -> None:
        """Raise if another writer is known to have taken over."""
        if self._is_lost:
            raise lost_lease(self._bucket.address)

    def _acquired(self, wait: float) -> _Held:
        deadline = time.monotonic() + wait
        seen, seen_at, held = "", 0.0, None
        while True:
            with suppress(StorageConflictError):
                held = self._look()
                if held is None:
                    first = _Held(self._holder, 1, False)
                    return replace(first, tag=self._bucket.create(_OBJECT, first.document()))
                if held.tag != seen:
                    seen, seen_at = held.tag, time.monotonic()
                # What this machine left behind is over: its own lock is held here.
                is_free = held.holder in (None, self._holder)
                has_ended = time.monotonic() - seen_at >= LEASE_SECONDS or held.age_seconds >= _SURELY_ENDED
                if is_free or has_ended:
                    mine = _Held(self._holder, held.term + 1, held.cuts_off or not is_free)
                    return replace(mine, tag=self._bucket.replace(_OBJECT, mine.document(), held.tag))
            if time.monotonic() >= deadline:
                raise CollectionBusyError(
                    f"{self._bucket.address} is being written by {held.holder if held else 'another machine'}; try "
                    f"again when it has finished, or in {LEASE_SECONDS:.0f} seconds if it has gone"
                )
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> _Held | None:
        found, facts = self._bucket.get(_OBJECT), self._bucket.facts(_OBJECT)
        if found is None or facts is None:
            return None
        said = json.loads(found[0])
        age = (datetime.now(UTC) - facts.modified).total_seconds()
        return _Held(said["holder"], said["term"], said["cuts_off"], found[1], age)

    def _renew(self, stopping: threading.Event) -> None:
        while not stopping.wait(_RENEWED_EVERY) and not self._is_lost:
            # Where the storage does not answer, the next commit will say so.
            with suppress(StorageError):
                self._write()

    def _write(self, **changes: Any) -> None:
        with self._lock:
            if self._is_lost:
                return
            wanted = replace(self._held, **changes)
            try:
                tag = self._bucket.replace(_OBJECT, wanted.document(), self._held.tag)
            except StorageConflictError:
                # Perhaps it was written by this writer, which did not get the answer.
                there = self._look()
                self._is_lost = there is None or (there.holder, there.term) != (self._holder, self._held.term)
                if self._is_lost or there is None:
                    raise
                tag = self._bucket.replace(_OBJECT, wanted.document(), there.tag)
            self._held = replace(wanted, tag=tag)


def lost_lease(address: str) -> CollectionBusyError:
    """Return the error of a writer that came too late."""
    return CollectionBusyError(
        f"another writer has taken over {address}, because this one did not answer for {LEASE_SECONDS:.0f} seconds or "
        "more; what was not acknowledged is not stored: do it again"
    )
