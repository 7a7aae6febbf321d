"""The folder of a collection, and the one small file that says what is valid in it."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from diptych import __version__
from diptych.collection.collection_error import CollectionError
from diptych.collection.free_name import free_name
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.unknown_retriever_error import UnknownRetrieverError

FORMAT = "diptych-collection"
# A collection with one retriever is still written as version 1, which every Diptych reads.
_ONE_RETRIEVER, _SEVERAL_RETRIEVERS = 1, 2


@dataclass(frozen=True)
class Layout:
    """The paths of a collection, the root its pictures are named from, and the retrievers in force.

    ``pending`` is a retriever whose points are still being made; searches use ``retriever`` until the switch, which
    replaces ``collection.json`` in one step. ``keep_old`` says that the one before stays beside it then. ``further``
    are retrievers whose points are kept too; ``unfinished`` has the fingerprints of those that never got all of them.
    Names and fingerprints are unique among ``retriever`` and ``further``.
    """

    folder: Path
    root: str
    retriever: RetrieverNames
    pending: RetrieverNames | None = None
    further: tuple[RetrieverNames, ...] = ()
    unfinished: frozenset[str] = frozenset()
    keep_old: bool = False

    @property
    def store(self) -> Path:
        """The durable tables."""
        return self.folder / "store"

    @property
    def index(self) -> Path:
        """Search indexes; deleting the folder costs time, nothing else."""
        return self.folder / "index"

    @property
    def retrievers(self) -> Path:
        """Saved retrievers: the one in force, the pending one, and older ones until the next repair."""
        return self.folder / "retrievers"

    @property
    def lock(self) -> Path:
        """The file that the writer holds."""
        return self.folder / "write.lock"

    @property
    def last_run(self) -> Path:
        """What the last run could not read."""
        return self.folder / "last_run.json"

    @property
    def root_folder(self) -> Path:
        """The folder that stored paths are relative to, absolute."""
        return Path(os.path.abspath(self.folder / self.root))

    def saved_retriever(self, names: RetrieverNames) -> Path:
        """The folder a retriever is saved in."""
        return self.retrievers / names.saved

    def write(self) -> None:
        """Replace ``collection.json`` in one step."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "format_version": _ONE_RETRIEVER,
            "diptych": __version__,
            "root": self.root,
            "retriever": asdict(self.retriever),
            "pending": None if self.pending is None else asdict(self.pending),
        }
        if self.further or self.keep_old:
            document |= {
                "format_version": _SEVERAL_RETRIEVERS,
                "further": [asdict(names) for names in self.further],
                "unfinished": sorted(self.unfinished),
                "keep_old": self.keep_old,
            }
        write_json(self.folder / "collection.json", document)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``collection.json``; any defect is one clear error."""
        path = folder / "collection.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CollectionError(
                f"{folder} is not a collection: collection.json is missing; "
                "make one with Collection.create or `diptych index`"
            ) from None
        except (OSError, ValueError) as problem:
            raise CollectionError(f"{path} cannot be read ({problem}); restore it from a backup") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise CollectionError(f"{path} was not written by Diptych: its format is not {FORMAT!r}")
        if document.get("format_version") not in (_ONE_RETRIEVER, _SEVERAL_RETRIEVERS):
            raise CollectionError(
                f"{path} has format version {document.get('format_version')}, this Diptych {__version__} reads "
                f"up to {_SEVERAL_RETRIEVERS}: install Diptych {document.get('diptych', 'of that time')} or index again"
            )
        try:
            return cls._from(folder, document)
        except (KeyError, TypeError) as problem:
            raise CollectionError(f"{path} is incomplete ({problem}); restore it from a backup") from None

    @classmethod
    def _from(cls, folder: Path, document: dict[str, Any]) -> Self:
        pending = document["pending"]
        return cls(
            folder,
            document["root"],
            RetrieverNames(**document["retriever"]),
            None if pending is None else RetrieverNames(**pending),
            tuple(RetrieverNames(**names) for names in document.get("further", ())),
            frozenset(document.get("unfinished", ())),
            bool(document.get("keep_old", False)),
        )

    @property
    def stored(self) -> tuple[RetrieverNames, ...]:
        """Every retriever that searches may use, the active one first."""
        return (self.retriever, *self.further)

    @property
    def in_force(self) -> tuple[RetrieverNames, ...]:
        """Every retriever whose points are kept, the pending one included."""
        return self.stored if self.pending is None else (*self.stored, self.pending)

    def named(self, name: str | None) -> RetrieverNames:
        """Return a stored retriever by name; None is the active one."""
        if name is None:
            return self.retriever
        for names in self.stored:
            if names.name == name:
                return names
        known = ", ".join(repr(names.name) for names in self.stored)
        raise UnknownRetrieverError(f"there is no retriever {name!r} in {self.folder}; stored are {known}")

    def with_fingerprint(self, fingerprint: str) -> RetrieverNames | None:
        """Return the stored retriever that makes these points, or None."""
        return next((names for names in self.stored if names.fingerprint == fingerprint), None)

    def with_pending(self, pending: RetrieverNames | None, *, keep_old: bool = False) -> Layout:
        """Return the layout with another retriever on its way, or none."""
        return replace(self, pending=pending, keep_old=keep_old)

    def switched(self) -> Layout:
        """Return the layout after the pending retriever has taken over."""
        if self.pending is None:
            raise CollectionError("no retriever is pending; call set_retriever first")
        new = self.pending.fingerprint
        others = tuple(names for names in self.further if names.fingerprint != new)
        others = (*others, self.retriever) if self.keep_old else others
        # Another retriever may have been activated or added under that name since the change was begun.
        name = free_name(self.pending.name, [names.name for names in others])
        return replace(
            self,
            retriever=replace(self.pending, name=name),
            pending=None,
            further=others,
            unfinished=self.unfinished - {new},
            keep_old=False,
        )

    def with_further(self, names: RetrieverNames) -> Layout:
        """Return the layout with one more retriever, whose points are yet to be made."""
        return replace(self, further=(*self.further, names), unfinished=self.unfinished | {names.fingerprint})

    def finished(self, names: RetrieverNames) -> Layout:
        """Return the layout after a retriever has got its points."""
        return replace(self, unfinished=self.unfinished - {names.fingerprint})

    def saved_again(self, names: RetrieverNames) -> Layout:
        """Return the layout with another saved form of a stored retriever that makes the same points."""
        if names.fingerprint == self.retriever.fingerprint:
            return replace(self, retriever=names)
        return replace(
            self, further=tuple(names if old.fingerprint == names.fingerprint else old for old in self.further)
        )

    def activated(self, chosen: RetrieverNames) -> Layout:
        """Return the layout with a stored retriever in force; the one before stays beside it."""
        others = tuple(names for names in self.stored if names.fingerprint != chosen.fingerprint)
        layout = replace(self, retriever=chosen, further=others)
        reached = self.pending is not None and self.pending.fingerprint == chosen.fingerprint
        return layout.with_pending(None) if reached else layout

    def without(self, removed: RetrieverNames) -> Layout:
        """Return the layout without one of the further retrievers."""
        others = tuple(names for names in self.further if names.fingerprint != removed.fingerprint)
        return replace(self, further=others, unfinished=self.unfinished - {removed.fingerprint})


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file whole or not at all."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            # Escaped: a file name that is not valid Unicode cannot be written otherwise.
            json.dump(document, stream, indent=2)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
