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
from diptych.collection.retriever_names import RetrieverNames

FORMAT = "diptych-collection"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Layout:
    """The paths of a collection, the root its pictures are named from, and the retrievers in force.

    ``pending`` is a retriever whose points are still being made; searches use ``retriever`` until the switch, which
    replaces ``collection.json`` in one step.
    """

    folder: Path
    root: str
    retriever: RetrieverNames
    pending: RetrieverNames | None = None

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
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "diptych": __version__,
            "root": self.root,
            "retriever": asdict(self.retriever),
            "pending": None if self.pending is None else asdict(self.pending),
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
        if document.get("format_version") != FORMAT_VERSION:
            raise CollectionError(
                f"{path} has format version {document.get('format_version')}, this Diptych {__version__} reads "
                f"{FORMAT_VERSION}: install Diptych {document.get('diptych', 'of that time')} or index again"
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
        )

    def with_pending(self, pending: RetrieverNames | None) -> Layout:
        """Return the layout with another retriever on its way, or none."""
        return replace(self, pending=pending)

    def switched(self) -> Layout:
        """Return the layout after the pending retriever has taken over."""
        if self.pending is None:
            raise CollectionError("no retriever is pending; call set_retriever first")
        return replace(self, retriever=self.pending, pending=None)


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
