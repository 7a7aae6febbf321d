"""What changed when: a line for each change of the items, by which people name an earlier state.

Each line ends with a checksum of what is before it.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from diptych.atomic_files import atomic_write, sync_to_disk
from diptych.collection.storage.item import iso_time
from diptych.errors import CollectionError, InvalidInputError

JOURNAL = "changes.jsonl"
_SEALED = re.compile(rb'(\{.*), "checksum": "([0-9a-f]{8})"\}')
_MARK, _BEHIND_MARK = b'"checksum', b'": "00000000"}'
_DAY_NS = 86_400 * 10**9
# Forgetting is a commit; it waits until a tenth more than is kept has come together.
_OVERDUE = 1.1
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


class _Changed(Protocol):
    changes: Counter[str]

    def count_items(self) -> int: ...

    def forget_past(self, until_ns: int) -> None: ...


class ChangeJournal:
    """The changes of a collection that can be gone back before, oldest first, a line each."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL

    def versions(self) -> list[Version]:
        """Return every version that is kept, oldest first; a damaged list is refused."""
        versions, is_damaged = self._read()
        if is_damaged:
            raise CollectionError(f"{self.path} has changed; `diptych repair` drops the earlier states that it lost")
        return versions

    def damage(self) -> str | None:
        """Return what is wrong with the list, None if nothing is."""
        return "has changed" if self._read()[1] else None

    def mend(self) -> None:
        """Drop the lines that are damaged; the caller is the only writer."""
        versions, is_damaged = self._read()
        if is_damaged:
            self._rewrite(versions)

    def _read(self) -> tuple[list[Version], bool]:
        """Return the versions of the whole lines, and whether there are damaged ones."""
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        found = [_version(line) for line in lines[:-1]]
        return [one for one in found if one is not None], None in found or not _is_torn(lines[-1])

    @contextmanager
    def noting(self, store: _Changed, next_ns: Callable[[], int], kept_days: float) -> Iterator[None]:
        """Note what is changed in the block, and forget what is older than is kept; the caller is the only writer."""
        if not self.path.exists():
            self._append(Version(1, next_ns() - 1, store.count_items()))
        store.changes.clear()
        yield
        if store.changes.total():
            versions = self._read()[0]
            last = versions[-1] if versions else Version(0, 0, 0)
            items, counts = store.count_items(), store.changes
            # What a killed writer has left is part of the next change.
            unnoted = items - (last.items + counts["added"] - counts["removed"])
            added, removed = counts["added"] + max(0, unnoted), counts["removed"] + max(0, -unnoted)
            self._append(Version(last.number + 1, next_ns() - 1, items, added, counts["changed"], removed))
            self.forget(store, next_ns(), kept_days * _OVERDUE, kept_days)

    def forget(self, store: _Changed, now_ns: int, overdue_days: float, kept_days: float) -> None:
        """Forget what is older than is kept, if some of it is overdue; the state at that moment stays."""
        versions, is_damaged = self._read()
        # A list without its damaged lines would look whole.
        if is_damaged or len(versions) < 2 or versions[1].time_ns > now_ns - overdue_days * _DAY_NS:
            return
        kept = [one for one in versions if one.time_ns > now_ns - kept_days * _DAY_NS]
        first = versions[len(versions) - len(kept) - 1]
        # The list first: who is killed in between has rows that nobody asks for.
        self._rewrite([first, *kept])
        store.forget_past(first.time_ns)

    def forget_all(self, store: _Changed, now_ns: int) -> None:
        """End the past here: nothing before the change that is being made can be asked for."""
        versions = self._read()[0]
        self._rewrite([Version(versions[-1].number + 1 if versions else 1, now_ns, store.count_items())])
        store.forget_past(now_ns)

    def moment(self, as_of: AsOf) -> tuple[int, Version]:
        """Return the time that a version number or a date means, and the version that held then."""
        versions = self.versions()
        if not versions:
            raise InvalidInputError("no earlier state is known yet: changes are noted from the next one on")
        first, last = versions[0], versions[-1]
        if re.fullmatch(r"\d{1,6}", str(as_of)):
            known = {str(one.number): one for one in versions}
            if (version := known.get(str(as_of))) is None:
                kept = f"{first.number} ({first.time}) to {last.number} ({last.time})"
                raise InvalidInputError(f"there is no version {as_of}; kept are {kept}")
            return version.time_ns, version
        asked = _nanoseconds(as_of)
        held = [one for one in versions if one.time_ns <= asked]
        if not held:
            raise InvalidInputError(
                f"the earliest state that is kept is that of {first.time}, version {first.number}; ask for a later one"
            )
        return asked, held[-1]

    def _rewrite(self, versions: list[Version]) -> None:
        with atomic_write(self.path, durable=True) as draft:
            draft.write_bytes(b"".join(map(_line, versions)))

    def _append(self, version: Version) -> None:
        is_new = not self.path.exists()
        with self.path.open("ab") as stream:
            # A line that a killed writer left unfinished must not swallow this one.
            last = b"" if is_new else self.path.read_bytes().rpartition(b"\n")[2]
            if _is_torn(last):
                stream.truncate(stream.tell() - len(last))
            else:
                stream.write(b"\n")
            stream.write(_line(version))
            stream.flush()
            os.fsync(stream.fileno())
        if is_new:
            sync_to_disk(self.path.parent)


def _line(version: Version) -> bytes:
    text = json.dumps(asdict(version)).removesuffix("}").encode()
    return b'%s, "checksum": "%08x"}\n' % (text, zlib.crc32(text))


def _version(line: bytes) -> Version | None:
    """Return what a line says, None if it is not whole."""
    sealed = _SEALED.fullmatch(line)
    if sealed is None or int(sealed[2], 16) != zlib.crc32(sealed[1]):
        return None
    try:
        return Version(**json.loads(sealed[1] + b"}"))
    except (ValueError, TypeError):
        return None


def _is_torn(end: bytes) -> bool:
    """Return True if what follows the last whole line is the beginning of one, as a killed writer leaves it, or none.

    >>> _is_torn(b'{"number": 3, "ti'), _is_torn(b'{"number": 3, "checksum": "00c0ffee"}?')
    (True, False)
    """
    return _BEHIND_MARK.startswith(re.sub(rb"[0-9a-f]", b"0", end.partition(_MARK)[2]))


def _nanoseconds(as_of: AsOf) -> int:
    """Return the end of a day, or a moment, in nanoseconds; without a zone it is in UTC."""
    if isinstance(as_of, datetime):
        moment = as_of
    else:
        try:
            moment = datetime.fromisoformat(str(as_of).strip())
        except ValueError:
            forms = "12, 2026-11-01 or 2026-11-01T18:30"
            raise InvalidInputError(
                f"as_of is a version number, a day or a time in UTC, such as {forms}; got {as_of!r}"
            ) from None
        if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", str(as_of).strip()):
            moment += timedelta(days=1, microseconds=-1)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    whole = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 10**9 + whole.microseconds * 1000 + 999
