"""The copy of a collection in object storage that a machine keeps, and what it sends there."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from diptych.atomic_files import atomic_write, read_json, write_json
from diptych.collection.remote.bucket import Bucket, ObjectFacts, lost_lease
from diptych.errors import CollectionError, StorageConflictError, StorageError

_LAYOUT, _HEAD, _STATE, _POINTER = "collection.json", "head.json", "mirror.json", "current"
_NOTES = ("last_run.json", "learning.jsonl", "changes.jsonl", "saved.json")
_ATTEMPTS = 5
# Searches need neither; a writer fetches them when it needs them.
_ON_DEMAND = "features_"
# A reader that looks every second has long gone on by then.
_KEPT_FOR = timedelta(minutes=1)


@dataclass
class _State:
    """What the copy is known to agree with: tags of the newest manifests, of the layout and of small files.

    ``head`` is the tag of the object that changes with every commit; it is empty while a writer is at work here.
    """

    head: str = ""
    manifests: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)


class Mirror:
    """A folder that equals a collection in object storage, of the last moment that was looked at.

    Files of tables never change, and a version of a table is the manifest that names them, so a copy follows by
    fetching the files it lacks and then the newest manifests: that of the items last, because items decide what exists.
    Only the holder of the writer's lease changes the copy itself, one commit at a time, and sends each commit on before
    it counts: the manifest goes last, under a name that can be written once.

    A copy with a commit that did not arrive is abandoned for a fresh one, whose files are links to the former's:
    whoever reads the former still finds a whole collection.
    """

    def __init__(self, bucket: Bucket, base: Path) -> None:
        self.bucket = bucket
        self.base = base
        self._pointer = str(base / _POINTER)
        self._pointed: tuple[int, Path] | None = None
        # The names of all objects of tables; known while this process writes.
        self._there: set[str] = set()

    @property
    def folder(self) -> Path:
        """The present copy."""
        stamp = os.stat(self._pointer).st_ino
        if self._pointed is None or self._pointed[0] != stamp:
            self._pointed = stamp, self.base / Path(self._pointer).read_text(encoding="utf-8")
        return self._pointed[1]

    @property
    def exists(self) -> bool:
        """Whether there is a copy."""
        return os.path.exists(self._pointer)

    def start(self, folder: Path) -> None:
        """Make a folder of :meth:`new_folder` the present copy."""
        draft = self.base / f".{_POINTER}-{uuid.uuid4().hex[:8]}"
        draft.write_text(folder.name, encoding="utf-8")
        before = self.folder if self.exists else None
        draft.replace(self._pointer)
        for old in self.base.glob("copy-*"):
            if old not in (before, folder):
                shutil.rmtree(old, ignore_errors=True)

    def new_folder(self) -> Path:
        """Return an empty folder for a copy, with what the service keeps on this machine."""
        folder = self.base / f"copy-{uuid.uuid4().hex[:8]}"
        (folder / "store").mkdir(parents=True)
        (self.base / "service").mkdir(mode=0o700, exist_ok=True)
        (folder / "service").symlink_to("../service", target_is_directory=True)
        return folder

    def pull(self, *, everything: bool = False) -> bool:
        """Bring the copy up to date; say whether anything had changed. The caller holds the lock of the copy."""
        head = self.bucket.get(_HEAD)
        tag = "" if head is None else head[1]
        if not everything and self.exists and tag and tag == self._state().head:
            return False
        for _ in range(_ATTEMPTS):
            # Files that are gone when they are fetched were tidied away: a newer version does without them.
            with suppress(FileNotFoundError):
                if self._pull(tag):
                    return True
        raise StorageError(f"{self.bucket.address} changes faster than it can be copied; try again")

    def _pull(self, head: str) -> bool:
        layout = self.bucket.get(_LAYOUT)
        if layout is None:
            raise CollectionError(
                f"{self.bucket.address} is not a collection: {_LAYOUT} is missing; "
                "make one with Collection.create or `diptych index`"
            )
        newest = _newest(self.bucket.list("store/items.lance/_versions/"))
        listed = self.bucket.list("store/")
        tables = _by_table(listed)
        if newest is None or newest != _newest(tables.get("items", ())):
            # Items were committed meanwhile: rows that the former ones use may have been listed as deleted.
            return False
        folder, state = (self.folder, self._state()) if self.exists else (self.new_folder(), _State())
        if self._has_diverged(folder, state, tables, listed):
            former, folder, state = folder, self.new_folder(), _State()
            _link_tables(former, folder, listed)
        kept = [name for name in tables if not name.startswith(_ON_DEMAND) or _has_table(folder, name)]
        self._fetch_tables(folder, state, kept, tables, listed)
        self._fetch_retrievers(folder, json.loads(layout[0]))
        if not (folder / "index").exists():
            self._fetch_index(folder)
        self._fetch_notes(folder, state)
        if not (folder / _LAYOUT).exists() or (folder / _LAYOUT).read_bytes() != layout[0]:
            with atomic_write(folder / _LAYOUT, durable=True) as draft:
                draft.write_bytes(layout[0])
        self._delete_vanished(folder, tables, listed)
        state.head, state.tables, state.objects[_LAYOUT] = head, sorted(tables), layout[1]
        self._write_state(folder, state)
        if not self.exists or folder != self.folder:
            self.start(folder)
        self._there = set(listed)
        return True

    def _has_diverged(
        self, folder: Path, state: _State, tables: Mapping[str, Iterable[str]], listed: Mapping[str, ObjectFacts]
    ) -> bool:
        """Say whether the copy has a version of a table that never arrived, or another one did under its number."""
        for path in (folder / "store").glob("*.lance"):
            local = _newest(f"store/{path.name}/_versions/{name}" for name in _names_in(path / "_versions"))
            if local is None:
                continue
            arrived, _, tag = state.manifests.get(path.stem, "").partition("=")
            remote = _newest(tables.get(path.stem, ()))
            if arrived == local:
                # A table may have been dropped and made anew under its name.
                is_older = remote is not None and local < remote
                if is_older or (local in listed and listed[local].tag != tag):
                    return True
            elif local not in listed or self._differs(folder, local):
                return True
        return False

    def _differs(self, folder: Path, name: str) -> bool:
        there = self.bucket.get(name)
        return there is None or there[0] != (folder / name).read_bytes()

    def _fetch_tables(
        self,
        folder: Path,
        state: _State,
        names: Iterable[str],
        tables: Mapping[str, list[str]],
        listed: Mapping[str, ObjectFacts],
    ) -> None:
        # Items last: what they name is there then.
        in_order = sorted(names, key=lambda name: name == "items")
        lacking = {
            name: (listed[name].size, folder / name)
            for table in in_order
            for name in tables[table]
            if "/_versions/" not in name and "/_transactions/" not in name
            if _size(folder / name) != listed[name].size
        }
        self.bucket.download(lacking)
        for table in in_order:
            newest = _newest(tables[table])
            if newest is None or state.manifests.get(table) == f"{newest}={listed[newest].tag}":
                continue
            self.bucket.download({newest: (listed[newest].size, folder / newest)})
            # It may name an older version.
            (folder / newest).with_name("latest_version_hint.json").unlink(missing_ok=True)
            state.manifests[table] = f"{newest}={listed[newest].tag}"

    def _fetch_retrievers(self, folder: Path, layout: Mapping[str, Any]) -> None:
        for saved in _saved_in(layout):
            if not (folder / "retrievers" / saved).exists():
                draft = folder / "retrievers" / f".{saved}-{uuid.uuid4().hex[:8]}"
                listed = self.bucket.list(f"retrievers/{saved}/")
                if not listed:
                    # Saved again under another name since the layout was read.
                    raise FileNotFoundError(saved)
                prefix = f"retrievers/{saved}/"
                self.bucket.download(
                    {name: (one.size, draft / name.removeprefix(prefix)) for name, one in listed.items()}
                )
                draft.rename(folder / "retrievers" / saved)

    def _fetch_index(self, folder: Path) -> None:
        """Take over the search files of the writer, which take long to make; without them they are made here."""
        with suppress(FileNotFoundError, KeyError, ValueError):
            current = self.bucket.get("index/current.json")
            if current is not None:
                named = _segments_in(current[0])
                listed = self.bucket.list("index/")
                wanted = {name: one for name, one in listed.items() if name.split("/")[1] in named}
                self.bucket.download({name: (one.size, folder / name) for name, one in wanted.items()})
                (folder / "index" / "current.json").write_bytes(current[0])

    def _fetch_notes(self, folder: Path, state: _State) -> None:
        for name in _NOTES:
            facts = self.bucket.facts(name)
            if facts is not None and state.objects.get(name) != facts.tag:
                self.bucket.download({name: (facts.size, folder / name)})
                state.objects[name] = facts.tag

    def _delete_vanished(
        self, folder: Path, tables: Mapping[str, list[str]], listed: Mapping[str, ObjectFacts]
    ) -> None:
        """Delete files that no version names any more, after those who read older versions have gone on."""
        too_new = (datetime.now(UTC) - _KEPT_FOR).timestamp()
        for path in list((folder / "store").glob("*.lance")):
            if path.stem not in tables:
                _remove_table(path)
            for name in _files_in(path):
                local = f"store/{path.name}/{name}"
                if local not in listed and "latest_version_hint" not in name:
                    with suppress(OSError):
                        if os.stat(folder / local).st_mtime < too_new:
                            os.unlink(folder / local)

    def fetch_table(self, name: str) -> bool:
        """Fetch a table that is not kept here; say whether there is one."""
        if name not in self._state().tables:
            return False
        listed = self.bucket.list(f"store/{name}.lance/")
        tables = _by_table(listed)
        if name not in tables:
            return False
        folder, state = self.folder, self._state()
        self._fetch_tables(folder, state, [name], tables, listed)
        self._write_state(folder, state)
        return True

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        return list(self._state().tables)

    def begin_changes(self) -> None:
        """Note that the copy may get ahead of the storage; after a crash it is compared before it is trusted."""
        state = self._state()
        state.head = ""
        self._write_state(self.folder, state)

    def push_table(self, name: str) -> None:
        """Send what was committed to a table: files first, then manifests, each under a name that is written once."""
        folder, state = self.folder, self._state()
        prefix = f"store/{name}.lance/"
        files = {prefix + file for file in _files_in(folder / prefix)} - self._there
        manifests = sorted((file for file in files if _is_manifest(file)), reverse=True)
        data = {file: folder / file for file in files if "/_versions/" not in file}
        self.bucket.upload(data)
        for manifest in manifests:
            try:
                tag = self.bucket.create(manifest, (folder / manifest).read_bytes())
            except StorageConflictError:
                raise lost_lease(self.bucket.address) from None
            state.manifests[name] = f"{manifest}={tag}"
        self._there |= {*data, *manifests}
        if name not in state.tables:
            state.tables = sorted({*state.tables, name})
        self._write_state(folder, state)

    def push_layout(self) -> None:
        """Send the layout after the retrievers that it names."""
        folder, state = self.folder, self._state()
        document = json.loads((folder / _LAYOUT).read_text(encoding="utf-8"))
        for saved in _saved_in(document):
            there = self.bucket.list(f"retrievers/{saved}/")
            names = [f"retrievers/{saved}/{name}" for name in _files_in(folder / "retrievers" / saved)]
            self.bucket.upload({name: folder / name for name in names if name not in there})
        # Never twice the same bytes, which would have the same tag.
        document["revision"] = uuid.uuid4().hex
        write_json(folder / _LAYOUT, document)
        content, known = (folder / _LAYOUT).read_bytes(), state.objects.get(_LAYOUT)
        try:
            replaced = (
                self.bucket.create(_LAYOUT, content) if known is None else self.bucket.replace(_LAYOUT, content, known)
            )
        except StorageConflictError:
            raise lost_lease(self.bucket.address) from None
        state.objects[_LAYOUT] = replaced
        self._write_state(folder, state)

    def push_head(self) -> str:
        """Tell those who follow that something has changed, and return the tag by which they see it."""
        written = {"written": datetime.now(UTC).isoformat(), "nonce": uuid.uuid4().hex}
        return self.bucket.put(_HEAD, json.dumps(written).encode())

    def end_changes(self) -> None:
        """Send small files and search files, and tell those who follow."""
        folder = self.folder
        for name in _NOTES:
            if (folder / name).exists():
                state = self._state()
                content = (folder / name).read_bytes()
                there = self.bucket.get(name)
                if there is None or there[0] != content:
                    state.objects[name] = self.bucket.put(name, content)
                    self._write_state(folder, state)
        self._publish_index(folder)
        state = self._state()
        state.head = self.push_head()
        self._write_state(folder, state)

    def _publish_index(self, folder: Path) -> None:
        """Send the search files, so that others need not make them."""
        try:
            current = (folder / "index" / "current.json").read_bytes()
            named = _segments_in(current)
            files = {f"index/{name}" for name in _files_in(folder / "index") if name.split("/")[0] in named}
        except (OSError, ValueError, KeyError):
            return
        listed = self.bucket.list("index/")
        # What is fetched at this moment stays until the next time.
        before = self.bucket.get("index/current.json")
        also = (
            set()
            if before is None
            else {name for entry in json.loads(before[0])["segments"] for name in entry.values()}
        )
        with suppress(FileNotFoundError):
            self.bucket.upload({name: folder / name for name in files - set(listed)})
            if before is None or before[0] != current:
                self.bucket.put("index/current.json", current)
            kept = {*named, *also, "current.json"}
            self.bucket.delete(name for name in listed if name.split("/")[1] not in kept)

    def push_dropped(self, name: str) -> None:
        """Delete a table in the storage: its manifests first, without which it is none."""
        listed = self.bucket.list(f"store/{name}.lance/")
        for is_first in (True, False):
            self.bucket.delete(one for one in listed if _is_manifest(one) == is_first)
        self._there -= set(listed)
        state = self._state()
        state.tables = [one for one in state.tables if one != name]
        state.manifests.pop(name, None)
        self._write_state(self.folder, state)

    def push_tidied(self, name: str, kept_for: timedelta) -> None:
        """Delete objects of a table whose files were tidied away here, if they are older than a time."""
        listed = self.bucket.list(f"store/{name}.lance/")
        files = {f"store/{name}.lance/{file}" for file in _files_in(self.folder / "store" / f"{name}.lance")}
        until = datetime.now(UTC) - kept_for
        gone = [one for one, facts in listed.items() if one not in files and facts.modified < until]
        self.bucket.delete(gone)
        self._there -= set(gone)

    def push_retrievers_deleted(self, kept: Iterable[str]) -> None:
        """Delete saved retrievers that are not kept."""
        names = set(kept)
        self.bucket.delete(one for one in self.bucket.list("retrievers/") if one.split("/")[1] not in names)

    def _state(self) -> _State:
        with suppress(OSError, ValueError, TypeError):
            return _State(**read_json(self.folder / _STATE))
        return _State()

    @staticmethod
    def _write_state(folder: Path, state: _State) -> None:
        write_json(folder / _STATE, asdict(state))


def _saved_in(layout: Mapping[str, Any]) -> set[str]:
    """Return the folders of the retrievers that a layout names."""
    entries = [layout["retriever"], layout["pending"], *layout["further"]]
    return {entry["saved"] for entry in entries if entry is not None}


def _segments_in(current: bytes) -> set[str]:
    """Return what a list of valid search files names."""
    return {name for entry in json.loads(current)["segments"] for name in entry.values()}


def _is_manifest(name: str) -> bool:
    return "/_versions/" in name and name.endswith(".manifest")


def _newest(names: Iterable[str]) -> str | None:
    """Return the manifest of the newest version; versions count down in their names."""
    return min(filter(_is_manifest, names), default=None)


def _by_table(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the objects of each table that has a version."""
    tables: dict[str, list[str]] = {}
    for name in names:
        table, found, _ = name.removeprefix("store/").partition(".lance/")
        if found:
            tables.setdefault(table, []).append(name)
    return {table: files for table, files in tables.items() if _newest(files) is not None}


def _has_table(folder: Path, name: str) -> bool:
    return (folder / "store" / f"{name}.lance" / "_versions").is_dir()


def _names_in(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the files of a folder, named from it; drafts that are being written are left out."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(path, name), folder).replace(os.sep, "/")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _link_tables(former: Path, folder: Path, listed: Mapping[str, ObjectFacts]) -> None:
    """Give a new copy the files of a former one that are in the storage, too; they never change."""
    for name in listed:
        if "/_versions/" not in name and _size(former / name) == listed[name].size:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(former / name, folder / name)
            except OSError:
                shutil.copyfile(former / name, folder / name)
    if (former / "retrievers").is_dir():
        shutil.copytree(former / "retrievers", folder / "retrievers")


def _remove_table(path: Path) -> None:
    gone = path.with_name(f"{uuid.uuid4().hex}.dropped")
    path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
