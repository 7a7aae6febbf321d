"""The ledger of a store: which version of each table was acknowledged, and the checksum of every file.

The engine writes files and leaves it to the system when they reach the disk. Here they are brought there: a line of the
ledger is written after the files it names are on the disk, and a change is acknowledged after its line is. So a power
cut leaves the tables as they were at the last line, and whatever is newer was acknowledged to nobody.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from diptych.atomic_files import (
    Checksum,
    atomic_write,
    checked_durability,
    damage_of,
    file_checksum,
    read_json,
    sync_to_disk,
    write_json,
)
from diptych.errors import CollectionError

DROPPED = ".dropped"
_LEDGER, _MARKS, _HINT = "ledger.jsonl", "damaged.json", "latest_version_hint.json"
# Files beside the store that are written again and again, with checksums in them, and one that only grows.
_NOTES, _GROWING = ("last_run.json", "saved.json", "changes.jsonl", "index/current.json"), "learning.jsonl"
# Names of versions count down, so that the newest comes first.
_LAST_VERSION = (1 << 64) - 1
_HINTED = re.compile(rb'\{"version":([0-9]+)\}')
_TAIL_BYTES = 1 << 16
_SYNCED_AT_ONCE = 8
# Lines of files that have gone are dropped when the ledger has grown to three times its length, or this.
_LONG = 1 << 20
CLOCK_TOLERANCE_S = 2


def boot_id() -> str:
    """Return the second at which the machine started, empty where the system has no clock for it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return "" if clock is None else str(round(time.time() - time.clock_gettime(clock)))


def _is_same_boot(noted: str) -> bool:
    """Return True if a note is of the present start: clocks that are set differ by a second or two."""
    now = boot_id()
    if noted.isdecimal() and now.isdecimal():
        return abs(int(noted) - int(now)) <= CLOCK_TOLERANCE_S
    return noted == now


class Ledger:
    """Knows the files of a collection: tables, by their folders in the store, and saved retrievers beside it.

    ``heads`` are the acknowledged versions of the tables, 0 for folders of retrievers, whose files never change.
    """

    def __init__(self, folder: Path) -> None:
        self.durability = checked_durability(None)
        self._folder = folder
        self._path = folder / _LEDGER
        self._marks = folder / _MARKS
        self._heads: dict[str, int] = {}
        self._files: dict[str, Checksum] = {}
        self._boot = ""
        self._notes: dict[str, Checksum] = {}
        self._is_torn = False
        self._wrong_lines: list[int] = []
        self._stamp: tuple[int, int, int] | None = None
        self._short_length = 0
        self._unwritten: set[str] = set()
        self._tail: tuple[tuple[int, int, int], dict[str, Any]] | None = None

    def acknowledged(self, unit: str) -> int | None:
        """Return the acknowledged version of a table, None for one that nobody was told of; any reader may ask."""
        return None if (line := self._last_line()) is None else line["heads"].get(unit)

    def check_marks(self, unit: str) -> None:
        """Refuse what a check has found damaged."""
        with suppress(FileNotFoundError):
            os.stat(self._marks)
            named = self.marks().get(unit)
            if named:
                name = os.path.normpath(self._folder / named[0])
                raise CollectionError(f"{name} is damaged; `diptych repair` rebuilds it if it can be rebuilt")

    def known_files(self) -> dict[str, Checksum]:
        """Return the checksums of all files that whole lines name, seen from the store."""
        self._read()
        return dict(self._files)

    def marks(self) -> dict[str, list[str]]:
        """Return the damaged files that a check has found, by what they belong to."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return dict(read_json(self._marks)["damaged"])
        return {}

    def mark(self, damaged: dict[str, list[str]]) -> None:
        """Keep everybody from reading what is damaged."""
        if damaged:
            write_json(self._marks, {"damaged": damaged})
        else:
            self._marks.unlink(missing_ok=True)

    def has_restarted(self) -> bool:
        """Return True if the machine has started again since the last change: what was not acknowledged may be torn."""
        line = self._last_line()
        return line is not None and not _is_same_boot(line["boot"])

    def begin(self, *, mending: bool = False) -> bool:
        """Bring ledger and files together, for the only writer; say whether changes were taken back.

        Versions that no line names come from a writer that was killed, and are taken in; or from before a power cut,
        and are taken back, because parts of them may be missing. A line that was torn had its files on the disk before.
        """
        taken_back = False
        if not self._path.exists():
            self._heads, self._files = {}, {}
            self.write()
            return False
        self._read()
        is_safe = _is_same_boot(self._boot) or self._is_torn
        for unit, newest in self._units().items():
            head = self._heads.get(unit)
            if newest == head:
                continue
            if head is not None and (newest or 0) < head:
                self._lost(f"version {head} of {unit} is missing, the newest is {newest}", mending=mending)
            elif newest is None:
                # A writer was killed while it created the table.
                continue
            elif is_safe or not _is_table(unit):
                self._unwritten.add(unit)
            else:
                taken_back = True
                self._take_back(unit, head)
        for unit in self._heads:
            if not (self._folder / unit).is_dir():
                self._lost(f"{unit} is missing", mending=mending)
        if self._unwritten or not _is_same_boot(self._boot):
            self._write_hints()
        if self._unwritten or self._is_torn or not _is_same_boot(self._boot):
            self.write()
        return taken_back

    def _lost(self, what: str, *, mending: bool) -> None:
        if not mending:
            raise CollectionError(
                f"{self._folder}: {what}; `diptych repair` rebuilds it if it can be, or restore a backup"
            )

    def _take_back(self, unit: str, head: int | None) -> None:
        folder = self._folder / unit
        if head is None:
            folder.rename(folder.with_suffix(DROPPED))
            shutil.rmtree(folder.with_suffix(DROPPED), ignore_errors=True)
            return
        for path in (folder / "_versions").iterdir():
            if (version := version_of(path.name)) is None or version > head:
                path.unlink()
        sync_to_disk(folder / "_versions")

    def note(self, unit: str) -> None:
        """Note that something was written; :meth:`write` acknowledges it."""
        self._unwritten.add(unit)

    def has_new_notes(self) -> bool:
        """Return True if a note has come, or grown, that no line names."""
        return self._notes_now() != self._notes

    def _notes_now(self) -> dict[str, Checksum]:
        """Return the notes with the checksums of what only grows; what is missing stays named until it is back."""
        there = {name: [0, 0] for name in _NOTES if (self._folder.parent / name).exists()}
        growing = self._folder.parent / _GROWING
        if growing.exists() and not self.wrong_notes():
            there[_GROWING] = file_checksum(growing)
        return self._notes | there

    def lacks(self, name: str) -> bool:
        """Return True if a note was there and is not; any reader may ask."""
        line = self._last_line()
        return line is not None and name in line["notes"] and not (self._folder.parent / name).exists()

    def wrong_notes(self) -> dict[str, str]:
        """Return the notes that were there and are not, or do not begin any more as they did."""
        wrong = {}
        for name, (size, code) in self._notes.items():
            try:
                content = (self._folder.parent / name).read_bytes()[:size]
                if (len(content), zlib.crc32(content)) != (size, code):
                    wrong[name] = "has changed"
            except FileNotFoundError:
                wrong[name] = "is missing"
        return wrong

    def write(self) -> None:
        """Bring to the disk what is new, and then the line that names it; afterwards it is acknowledged."""
        if not self._path.exists():
            # Without a ledger everything that is there is new.
            self._unwritten.update(self._units())
        elif self._stamp is None:
            self._read()
        new, new_heads = [], dict(self._heads)
        for unit in sorted(self._unwritten):
            newest = self._newest(unit)
            if newest is None:
                # A writer was killed while it created the table.
                continue
            new += [name for name in self._names(unit) if name not in self._files]
            # A version that was lost stays lost until its table is dropped.
            new_heads[unit] = max(newest, self._heads.get(unit, 0))
        # A retriever comes seldom, and is lost where its files are torn.
        self._sync(new if self.durability == "power" else [name for name in new if _is_in(name, "../retrievers")])
        added = {name: file_checksum(self._folder / name) for name in new}
        self._heads, self._boot, self._notes = new_heads, boot_id(), self._notes_now()
        self._files |= added
        self._append(added)
        self._unwritten = set()

    def size_of(self, unit: str) -> int:
        """Return how many bytes the files of a table have."""
        return sum(known[0] for name, known in self._files.items() if _is_in(name, unit))

    def tidied(self, unit: str) -> None:
        """Note the files of a table that went with its old versions; what was damaged before was named before."""
        there = set(self._names(unit))
        self._files = {name: known for name, known in self._files.items() if not _is_in(name, unit) or name in there}
        self._rewrite()

    def forget(self, unit: str) -> None:
        """Note that a table or a retriever will be removed."""
        self._unwritten.discard(unit)
        if self._heads.pop(unit, None) is not None:
            self._files = {name: known for name, known in self._files.items() if not _is_in(name, unit)}
            self._rewrite()

    def discard(self, names: Iterable[str]) -> None:
        """Remove damaged files that no version needs, and write the ledger anew."""
        for name in names:
            if name != _LEDGER:
                (self._folder / name).unlink(missing_ok=True)
            self._files.pop(name, None)
        self._unwritten.update(self._units())
        self._is_torn = True
        self._write_hints()
        self.write()

    def damaged(self, unit: str | None = None, *, all_bytes: bool = True) -> dict[str, str]:
        """Return what is wrong with the files, by name, of one table or of everything."""
        # Damage does not always change the time of a file.
        self._stamp = None
        self._read()
        wrong = {
            name: what
            for name, known in self._files.items()
            if unit is None or _is_in(name, unit)
            if (what := damage_of(self._folder / name, known, all_bytes=all_bytes)) is not None
        }
        if unit is not None:
            return wrong
        if self._wrong_lines or self._is_torn or not self._path.exists():
            wrong[_LEDGER] = "has changed" if self._path.exists() else "is missing"
        return wrong | self._wrong_hints()

    def _wrong_hints(self) -> dict[str, str]:
        """Return the engine's notes of the newest versions that are wrong; it does without them."""
        wrong = {}
        for unit, head in self._heads.items():
            hint = self._folder / unit / "_versions" / _HINT
            if _is_table(unit) and self._newest(unit) == head:
                # A writer that was killed may have left that of a version before, or none of the first.
                if not hint.exists():
                    what = "is missing" if head > 1 else None
                else:
                    said = _HINTED.fullmatch(hint.read_bytes())
                    what = None if said and 0 < int(said[1]) <= head else "has changed"
                if what is not None:
                    wrong[f"{unit}/_versions/{_HINT}"] = what
        return wrong

    def _write_hints(self) -> None:
        """Let the engine's notes name the newest versions, as a writer that was killed may not have done."""
        for unit, newest in self._units().items():
            hint = self._folder / unit / "_versions" / _HINT
            if newest and _is_table(unit) and not (hint.exists() and hint.read_bytes() == _hint(newest)):
                # Written in its place it would be empty for a moment, and somebody may be killed in it.
                with atomic_write(hint) as draft:
                    draft.write_bytes(_hint(newest))

    def is_needed(self, name: str) -> bool:
        """Return True if the newest version of a table needs a file: it does without protocols and older versions."""
        unit, is_table, inner = name.partition(".lance/")
        if not is_table:
            return name != _LEDGER
        if inner.startswith("_transactions/") or inner == f"_versions/{_HINT}":
            return False
        version = version_of(inner.removeprefix("_versions/"))
        return not (
            inner.startswith("_versions/") and version is not None and version < self._heads.get(f"{unit}.lance", 0)
        )

    def _units(self) -> dict[str, int | None]:
        """Return the tables and retrievers that are there, with the newest versions of the tables."""
        tables = [path.name for path in self._folder.glob("*.lance")]
        saved = [saved_unit(path.name) for path in self._folder.parent.glob("retrievers/[!.]*")]
        return {unit: self._newest(unit) for unit in (*tables, *saved)}

    def _newest(self, unit: str) -> int | None:
        return newest_version(self._folder / unit) if _is_table(unit) else 0

    def _names(self, unit: str) -> Iterator[str]:
        """Yield the files of a table or a retriever but those that are being written, or written again and again."""
        base = os.path.join(self._folder, unit)
        for folder, _, names in os.walk(base):
            inner = os.path.relpath(folder, self._folder).replace(os.sep, "/")
            yield from (f"{inner}/{name}" for name in names if name[0] != "." and "#" not in name and name != _HINT)

    def _sync(self, names: list[str]) -> None:
        known = {os.path.dirname(name) for name in self._files}
        folders = {os.path.dirname(name) for name in names}
        # The names of new folders are in those around them.
        folders |= {around for folder in folders - known for around in _around(folder)}
        paths = [os.path.join(self._folder, name) for name in (*names, *sorted(folders))]
        if len(paths) <= 1:
            for path in paths:
                sync_to_disk(path)
        else:
            # Side by side they share the system's own commits.
            with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
                list(pool.map(sync_to_disk, paths))

    def _read(self) -> None:
        if self._stamp is not None and self._stamp == self._stamp_now():
            return
        self._heads, self._files, self._wrong_lines, self._is_torn = {}, {}, [], False
        content = self._path.read_bytes() if self._path.exists() else b""
        lines = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            said = _said(line)
            if said is not None:
                self._heads, self._boot, self._notes = said["heads"], said["boot"], said["notes"]
                self._files |= said["added"]
            elif number < len(lines) - 1:
                self._wrong_lines.append(number)
            elif line:
                self._is_torn = True
        # A line that lacks its end was not finished.
        self._is_torn |= bool(lines[-1])
        self._stamp = self._stamp_now()

    def _append(self, added: dict[str, Checksum]) -> None:
        if self._is_torn or not self._path.exists():
            self._rewrite()
            return
        with self._path.open("ab", buffering=0) as stream:
            stream.write(self._line(added))
            if self.durability == "power":
                os.fsync(stream.fileno())
            length = stream.tell()
        self._stamp = self._stamp_now()
        if length > max(_LONG, 3 * self._short_length):
            self._rewrite()

    def _rewrite(self) -> None:
        with atomic_write(self._path, durable=self.durability == "power") as draft:
            draft.write_bytes(self._line(self._files))
        self._is_torn, self._wrong_lines = False, []
        self._short_length = self._path.stat().st_size
        self._stamp = self._stamp_now()

    def _line(self, added: dict[str, Checksum]) -> bytes:
        said = {"heads": self._heads, "boot": self._boot, "notes": self._notes, "added": added}
        text = json.dumps(said, separators=(",", ":")).encode()
        return b"%08x %s\n" % (zlib.crc32(text), text)

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _last_line(self) -> dict[str, Any] | None:
        """Return the last whole line; most of the ledger is not read for it."""
        stamp = self._stamp_now()
        if stamp is None:
            return None
        if self._tail is None or self._tail[0] != stamp:
            with self._path.open("rb") as stream:
                for length in (min(_TAIL_BYTES, stamp[1]), stamp[1]):
                    stream.seek(-length, os.SEEK_END)
                    said = next(filter(None, map(_said, reversed(stream.read().split(b"\n")))), None)
                    if said is not None:
                        self._tail = stamp, said
                        break
                else:
                    return None
        return self._tail[1] if self._tail is not None else None


def saved_unit(saved: str) -> str:
    """Return what the ledger calls a saved retriever."""
    return f"../retrievers/{saved}"


def _hint(version: int) -> bytes:
    return f'{{"version":{version}}}'.encode()


def _is_table(unit: str) -> bool:
    return unit.endswith(".lance")


def _said(line: bytes) -> dict[str, Any] | None:
    """Return what a line says, None if it is not whole."""
    with suppress(ValueError):
        if line[:9] == b"%08x " % zlib.crc32(line[9:]):
            return dict(json.loads(line[9:]))
    return None


def version_of(name: str) -> int | None:
    """Return the version of a table that a file describes, None where it is another file."""
    number = name.removesuffix(".manifest")
    return _LAST_VERSION - int(number) if name != number and number.isdigit() else None


def newest_version(table: Path) -> int | None:
    """Return the newest version in the folder of a table, None where there is none."""
    with suppress(FileNotFoundError):
        return max(filter(None, map(version_of, os.listdir(table / "_versions"))), default=None)
    return None


def _is_in(name: str, unit: str) -> bool:
    return name.startswith(f"{unit}/")


def _around(folder: str) -> list[str]:
    """Return the folders around a folder up to that of the store.

    >>> _around("items.lance/data"), _around("../retrievers/first")
    (['items.lance', ''], ['../retrievers', '..', ''])
    """
    parts = folder.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)]
