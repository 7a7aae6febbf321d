"""Watching a folder: what is new, changed or gone in it comes into a collection by itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.collection.indexing.add_report import AddProgress, AddReport
from diptych.collection.item import Item, Record
from diptych.collection.packages import search_package
from diptych.data.ignore_files import IgnoreFiles
from diptych.data.picture_files import find_pictures, is_video, picture_suffixes, unread_reason
from diptych.data.remote_files import is_remote
from diptych.errors import CollectionBusyError, InvalidInputError

if TYPE_CHECKING:
    from diptych.collection.collection import Collection

# Size and time of a file; None where there is none.
Stamp = tuple[int, int] | None

# Between two batches others may write.
BATCH = 256
# How often files that settle are looked at meanwhile.
LOOKS_TO_SETTLE = 4
# So many changes at once may be more than the system could remember.
MANY_CHANGES = 1000
# What no event has told of is found after this time.
SURVEY_S = 3600.0
# Where no events come: how much of the time may go into surveys.
SURVEY_SHARE = 0.2
# For so long another writer is waited for; after that a request to end is heeded and the changes wait.
WRITE_WAIT_S = 1.0
# The variable of watchfiles, for network drives, whose changes by other machines the system does not report.
POLLING_VARIABLE = "WATCHFILES_FORCE_POLLING"


class SettlingPaths:
    """Paths that changed, each kept until it has been the same for a while: what is being copied changes again.

    What is gone is kept twice as long, so that a file that got another name is recognised under it before.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[Path, tuple[Stamp, float]] = {}
        self._began = 0.0

    def __contains__(self, path: Path) -> bool:
        return path in self._seen

    def note(self, paths: Iterable[Path], now: float) -> None:
        """Begin to wait for paths, or begin again."""
        if not self._seen:
            self._began = now
        self._seen.update({path: (stamp_of(path), now) for path in paths})

    def take(self, now: float) -> tuple[Mapping[Path, Stamp], list[Path]]:
        """Return files that are whole, and then what is gone; nothing during a burst, unless it takes too long."""
        for path, (stamp, since) in self._seen.items():
            if self._has_settled(stamp, now - since) and (found := stamp_of(path)) != stamp:
                self._seen[path] = found, now
        settled = {path: stamp for path, (stamp, since) in self._seen.items() if self._has_settled(stamp, now - since)}
        if len(settled) < len(self._seen) and now - self._began < 3 * self._seconds:
            return {}, []
        there = [(path, stamp) for path, stamp in settled.items() if stamp is not None]
        whole = dict(there[:BATCH])
        gone = [path for path, stamp in settled.items() if stamp is None] if len(whole) == len(there) else []
        for path in (*whole, *gone):
            del self._seen[path]
        self._began = now
        return whole, gone

    def _has_settled(self, stamp: Stamp, age: float) -> bool:
        return age >= (2 * self._seconds if stamp is None else self._seconds)


def stamp_of(path: Path) -> Stamp:
    """Return size and time of a file, None if it does not exist; one that merely cannot be reached may come back."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def pictures_in(folder: Path) -> Iterator[Path]:
    """Yield the pictures of a folder; none where it has just vanished."""
    with suppress(InvalidInputError, FileNotFoundError):
        yield from find_pictures(folder)


def _is_wanted(path: Path) -> bool:
    """Return True if a file is a picture, or one of a kind that cannot be read, which is worth a word."""
    return path.suffix.lower() in picture_suffixes() or unread_reason(path) is not None


class FolderWatcher:
    """Brings the changes of a folder into a collection, seconds after they happen.

    It begins with a look at the whole folder. Then the system tells what has changed, and only that is looked at.
    Where the system cannot tell (network file systems, no more watches, a folder that may not be read), the folder is
    looked through every few seconds. A folder that is away, or that has lost all its pictures as a disk that is not
    there has, loses no item.

    Parameters
    ----------
    collection:
        What is kept up to date. While another process writes to it, changes wait.
    folder:
        The folder, by default the root of the collection; as everywhere, hidden files are left out.
    make_records:
        Returns records of new and changed pictures; by default a picture is all that there is.
    keep_missing:
        Keep items whose files are gone.
    skipped:
        Pictures that are known to be unusable, with the reasons, which are then not reported again.
    settle:
        How many seconds a file must stay the same to be taken for whole.
    polling:
        Look through the folder (True), let the system tell (False), or let ``WATCHFILES_FORCE_POLLING`` decide (None).
    """

    def __init__(
        self,
        collection: Collection,
        folder: str | os.PathLike[str] | None = None,
        *,
        make_records: Callable[[Sequence[Path]], Sequence[Record]] | None = None,
        keep_missing: bool = False,
        skipped: Mapping[str, str] | None = None,
        settle: float = 1.0,
        polling: bool | None = None,
    ) -> None:
        collection.check_root()
        if is_remote(collection.root if folder is None else folder):
            raise InvalidInputError(
                f"{collection.root} tells of no changes, so it cannot be watched; index it again instead, for example "
                "every hour by a timer of the system"
            )
        self.collection = collection
        self.folder = Path(os.path.abspath(collection.root if folder is None else folder))
        self.make_records = make_records
        self.keep_missing = keep_missing
        self.skipped = dict(skipped or {})
        self.settle = settle
        self.polling = polling
        self._stop = threading.Event()
        self._note: Callable[[str], None] = lambda text: None
        self._waiting = SettlingPaths(settle)
        # The pictures of the last survey: an item may be removed on purpose while its file stays.
        self._last_survey: dict[Path, Stamp] | None = None
        self._is_busy = False

    def run(
        self,
        stop: threading.Event,
        report: Callable[[AddReport], None],
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Watch until ``stop`` is set.

        ``report`` is told what became of each batch of changes, ``note`` what else a person should know.
        """
        self._stop, self._note = stop, note
        is_away = False
        while not stop.is_set():
            if self._is_there():
                if is_away:
                    note(f"{self.folder} is back")
                is_away = False
                try:
                    self._follow(report)
                except _Stopped:
                    return
            elif not is_away:
                is_away = True
                note(f"{self.folder} is not there or has no pictures; its items are kept until it is back")
            stop.wait(self.settle / LOOKS_TO_SETTLE)

    def _is_there(self) -> bool:
        """Return True if the folder can be looked at, and has a picture unless the collection has none of it either."""
        return self.folder.is_dir() and (next(pictures_in(self.folder), None) is not None or not self._stored())

    def _follow(self, report: Callable[[AddReport], None]) -> None:
        """Bring in changes until the folder is away or another one, or must be listened to anew."""
        identity, next_survey = self._identity(), 0.0
        with closing(self._changes()) as told:
            for changes in told:
                if self._identity() != identity:
                    return
                started = time.monotonic()
                if started >= next_survey or len(changes) >= MANY_CHANGES:
                    is_whole = self._survey()
                    took = time.monotonic() - started
                    pause = max(2 * self.settle, took / SURVEY_SHARE) if self.polling else SURVEY_S
                    next_survey = started + took + pause
                else:
                    is_whole = self._note_changes(changes)
                whole, gone = self._waiting.take(time.monotonic()) if is_whole else ({}, [])
                # Without a picture left, the disk may be gone and not what was on it.
                if not is_whole or (gone and not self._is_there()):
                    return
                if whole or gone:
                    done = self._bring_in(whole, gone)
                    if done.changed or done.removed or done.skipped:
                        report(done)

    def _identity(self) -> tuple[int, int] | None:
        # Network file systems number their folders as they like.
        with suppress(OSError):
            status = os.stat(self.folder)
            return None if self.polling else (status.st_dev, status.st_ino)
        return None

    def _changes(self) -> Generator[set[tuple[Any, str]], None, None]:
        """Yield what the system tells, and nothing several times a second; first as soon as it listens."""
        if self.polling is None and os.environ.get(POLLING_VARIABLE):
            self._poll(f"{POLLING_VARIABLE} is set")
        tick = self.settle / LOOKS_TO_SETTLE
        if not self.polling:
            is_listening = False
            try:
                for changes in search_package("watchfiles").watch(
                    self.folder,
                    # Changes that concern nobody must come too: with them comes the time of what waits.
                    watch_filter=None,
                    step=round(200 * tick),
                    debounce=round(2000 * tick),
                    rust_timeout=round(1000 * tick),
                    yield_on_timeout=True,
                    stop_event=self._stop,
                    # It gives up where a folder may not be read or a name is not valid Unicode; ours does not.
                    force_polling=False,
                ):
                    is_listening = True
                    yield changes
            except (OSError, RuntimeError, UnicodeError) as problem:
                # Later it is such a name, or no room for a new folder: listening anew mends that or fails at once.
                if is_listening or isinstance(problem, FileNotFoundError):
                    return
                self._poll(str(problem))
        while self.polling and not self._stop.wait(tick):
            yield set()

    def _poll(self, reason: str) -> None:
        self.polling = True
        self._note(f"changes of {self.folder} are not told ({reason}), so it is looked through every few seconds")

    def _survey(self) -> bool:
        """Look at the whole folder, and note what differs from the last look, at first from the collection.

        Say whether there was anything to see.
        """
        found = {path: stamp_of(path) for path in pictures_in(self.folder)}
        before = self._stored() if self._last_survey is None else self._last_survey
        if before and not found:
            return False
        different = [path for path, stamp in found.items() if before.get(path) != stamp]
        different += [path for path in before if path not in found and stamp_of(path) is None]
        self._waiting.note([path for path in different if path not in self._waiting], time.monotonic())
        self._last_survey = found
        return True

    def _stored(self) -> dict[Path, Stamp]:
        return {path: (item.size, item.mtime_ns) for path, item in self._files()}

    def _files(self) -> Iterator[tuple[Path, Item]]:
        """Yield the pictures of the folder that the collection has."""
        for item in self.collection:
            path = self.collection.path_of(item)
            if path is not None and path.is_relative_to(self.folder):
                yield path, item

    def _note_changes(self, changes: Iterable[tuple[Any, str]]) -> bool:
        """Note what has changed; say whether everything is still listened to, which new links to folders are not."""
        paths: dict[Path, None] = {}
        for change, name in changes:
            path = self._indexed_path(Path(name))
            if path is None:
                continue
            if not path.is_dir():
                # One that is gone may have been a folder.
                if _is_wanted(path) or stamp_of(path) is None:
                    paths[path] = None
            elif change.name == "added":
                if path.is_symlink():
                    return False
                # Of a folder that was moved here, the system names nothing inside.
                paths.update(dict.fromkeys(filter(None, map(self._indexed_path, pictures_in(path)))))
        self._waiting.note(paths, time.monotonic())
        return True

    def _indexed_path(self, path: Path) -> Path | None:
        """Return the path under which indexing finds a file, None for what it leaves out.

        The system knows one name of each folder, which may be that of a link.
        """
        parent, folder = Path(os.path.realpath(path.parent)), Path(os.path.realpath(self.folder))
        if (parent / path.name).is_relative_to(os.path.realpath(self.collection.folder)):
            return None
        if parent.is_relative_to(folder):
            path = self.folder / parent.relative_to(folder) / path.name
        if path == self.folder or not path.is_relative_to(self.folder):
            return None
        if any(part.startswith(".") for part in path.relative_to(self.folder).parts):
            return None
        # Read anew each time: the file may have changed.
        return None if IgnoreFiles().leaves_out(path, self.folder) else path

    def _bring_in(self, whole: Mapping[Path, Stamp], gone: Sequence[Path]) -> AddReport:
        """Add and remove; what cannot be written now waits again."""
        report, left = AddReport(), [*whole, *gone]
        try:
            with self.collection.waiting_at_most(WRITE_WAIT_S):
                report = self._add(whole)
                left = [*gone]
                report.removed += self._remove(gone)
                left = []
        except CollectionBusyError:
            if not self._is_busy:
                self._note("another process is writing to the collection; changes wait for it")
            self._waiting.note(left, time.monotonic())
        self._is_busy = bool(left)
        if self._last_survey is not None:
            self._last_survey.update(whole)
        report.skipped = {
            path: reason
            for path, reason in report.skipped.items()
            if self.skipped.get(path) != reason and stamp_of(Path(path)) is not None
        }
        self.skipped.update(report.skipped)
        return report

    def _add(self, whole: Iterable[Path]) -> AddReport:
        # A folder that was gone for a moment is no picture.
        pictures = [path for path in whole if path.suffix.lower() in picture_suffixes()]
        unread = {str(path): reason for path in whole if (reason := unread_reason(path))}
        if not pictures:
            return AddReport(skipped=unread)
        records = [Record(path) for path in pictures] if self.make_records is None else self.make_records(pictures)
        report = self.collection.add(records, progress=self._heed_stop)
        report.skipped.update(unread)
        return report

    def _heed_stop(self, step: AddProgress) -> None:
        if self._stop.is_set():
            raise _Stopped

    def _remove(self, gone: Sequence[Path]) -> list[str]:
        """Remove the items of files that are gone, and of those in folders that are gone."""
        if self.keep_missing:
            return []
        found = [(path, self.collection[path]) for path in gone if path in self.collection]
        # A video has further items, for its moments.
        holders = {path for path in gone if is_video(path) or path.suffix.lower() not in picture_suffixes()}
        if holders:
            found += [(path, item) for path, item in self._files() if not holders.isdisjoint((path, *path.parents))]
        missing = list({item.id: item for path, item in found if stamp_of(path) is None}.values())
        if missing:
            self.collection.remove([item.id for item in missing])
        return [str(item.path) for item in missing]


class _Stopped(Exception):
    """The watch was to end in the middle of a batch; what is stored stays."""
