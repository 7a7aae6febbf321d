"""Going back to what can be read: for a collection that a power cut has torn because nothing was synced."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diptych.atomic_files import damage_of
from diptych.collection.storage.engine import engine_package
from diptych.collection.storage.layout import Layout
from diptych.collection.storage.ledger import Ledger, version_of
from diptych.collection.storage.place import write_lock
from diptych.errors import CollectionError

# Without these there is no collection; everything else is made again, or is a list of earlier states.
_NEEDED = ("items", "captions")
_END_OF_MANIFEST = b"LANC"
# A digit that comes before a name in a manifest is its length.
_DATA_FILE = re.compile(rb"[01]{24}[0-9a-f]{26}\.lance")


def go_back(folder: Path, write_wait: float = 0.0) -> list[str]:
    """Bring every table of a collection back to its newest version that is whole; return what was lost, in words.

    Items and captions go back to versions that belong together. Other tables of which nothing is whole go, and so do
    the files of searches: `diptych repair` makes them again. What is taken out of force is kept in the folder
    ``gone-back``, for whoever wants to look at it.
    """
    layout = Layout.read(folder)
    with write_lock(folder / "write.lock", write_wait):
        return _GoingBack(layout).run()


class _GoingBack:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ledger = Ledger(layout.store)
        self._kept = layout.folder / "gone-back" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        self._database = engine_package().connect(str(layout.store))
        self._lost: list[str] = []

    def run(self) -> list[str]:
        known = self._ledger.known_files()
        tables = sorted(path.stem for path in self._layout.store.glob("*.lance"))
        newest = {name: self._newest_whole(name, known) for name in tables}
        for name in _NEEDED:
            if newest.get(name) is None:
                self._put_back()
                raise CollectionError(f"no version of {name} in {self._layout.store} can be read; restore a backup")
        chosen = {**newest, **self._together(known)}
        for name, version in chosen.items():
            self._take_out(name, version)
        for path in (self._layout.store / "ledger.jsonl", self._layout.store / "damaged.json"):
            self._move(path)
        shutil.rmtree(self._layout.index, ignore_errors=True)
        for name in sorted(name for name, version in chosen.items() if version is not None):
            table = self._database.open_table(name)
            for index in table.list_indices():
                # Torn ones are not noticed by reading the table.
                table.drop_index(index.name)
        return self._lost

    def _newest_whole(self, name: str, known: dict[str, Any]) -> int | None:
        """Return the newest version of a table that can be read; those after it are moved out of the way."""
        return next((version for version, _ in self._whole_versions(name, known, lambda _: True)), None)

    def _whole_versions(
        self, name: str, known: dict[str, Any], read: Callable[[Any], Any]
    ) -> Iterator[tuple[int, Any]]:
        for manifest, version in self._manifests(name):
            if self._is_whole(name, manifest, known):
                try:
                    # The engine opens the newest first, whatever is asked for.
                    table = self._database.open_table(name)
                    table.checkout(version)
                    table.to_arrow()
                    yield version, read(table)
                    continue
                except (ValueError, RuntimeError, OSError):
                    pass
            self._move(manifest)

    def _manifests(self, name: str) -> list[tuple[Path, int]]:
        versions = self._layout.store / f"{name}.lance" / "_versions"
        # The engine's note of the newest version; it does without.
        for hint in versions.glob("*hint*"):
            self._move(hint)
        found = [(path, version_of(path.name)) for path in versions.glob("*.manifest")]
        return sorted(((path, number) for path, number in found if number), key=lambda one: -one[1])

    def _is_whole(self, name: str, manifest: Path, known: dict[str, Any]) -> bool:
        """Compare the files of a version with their checksums, as far as these are known."""
        base, content = self._layout.store / f"{name}.lance", manifest.read_bytes()
        if not content.endswith(_END_OF_MANIFEST):
            # The engine takes one full of zeros for an empty table.
            return False
        files = [manifest, *(base / "data" / file.decode() for file in set(_DATA_FILE.findall(content)))]
        for file in files:
            noted = known.get(file.relative_to(self._layout.store).as_posix())
            if not file.exists() or (noted is not None and damage_of(file, noted) is not None):
                return False
        return True

    def _together(self, known: dict[str, Any]) -> dict[str, int]:
        """Return the newest versions of items and captions in which no item lacks a caption."""
        captions = list(self._whole_versions("captions", known, lambda table: set(_column(table, "id"))))
        for version, needed in self._whole_versions("items", known, _caption_ids):
            for other, there in captions:
                if needed <= there:
                    return {"items": version, "captions": other}
        self._put_back()
        raise CollectionError(f"no items in {self._layout.store} have all of their captions; restore a backup")

    def _take_out(self, name: str, version: int | None) -> None:
        """Let a version be the newest of a table; without one the table goes."""
        base = self._layout.store / f"{name}.lance"
        if version is None:
            self._move(base)
            self._lost.append(f"table {name} could not be read and is made anew, as far as it can be")
            return
        manifests = self._manifests(name)
        newest = max([self._newest_known(name), *(number for _, number in manifests)])
        for manifest, number in manifests:
            if number > version:
                self._move(manifest)
            elif number == version and newest > version:
                when = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
                self._lost.append(
                    f"table {name} is as it was in version {version} of {newest}, on {when:%Y-%m-%d %H:%M:%S} UTC; "
                    "what was changed later is lost"
                )

    def _newest_known(self, name: str) -> int:
        """Return the newest version that was there, as far as that is known."""
        moved = (self._kept / "store" / f"{name}.lance" / "_versions").glob("*.manifest")
        return max([self._ledger.acknowledged(f"{name}.lance") or 0, *(version_of(path.name) or 0 for path in moved)])

    def _move(self, path: Path) -> None:
        if path.is_dir():
            for inner in list(path.iterdir()):
                self._move(inner)
            path.rmdir()
        elif path.exists():
            target = self._kept / path.relative_to(self._layout.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)

    def _put_back(self) -> None:
        """Leave everything as it was found."""
        for moved in sorted(self._kept.rglob("*")):
            if moved.is_file():
                moved.rename(self._layout.folder / moved.relative_to(self._kept))


def _column(table: Any, name: str) -> list[Any]:
    return list(table.search().select([name]).to_arrow()[name].to_pylist())


def _caption_ids(table: Any) -> set[str]:
    return {caption for ids in _column(table, "caption_ids") for caption in ids or ()}
