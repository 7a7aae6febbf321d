"""Built indexes kept beside the store."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from diptych.collection.approximate_index import ApproximateIndex
from diptych.collection.contract import SIDES, Side
from diptych.collection.layout import write_json
from diptych.collection.packages import search_package


class IndexCache:
    """A folder of built indexes, one per side and retriever; anything missing or damaged counts as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(
        self, side: Side, fingerprint: str, index: ApproximateIndex, keys: Sequence[str], hashes: Sequence[str]
    ) -> None:
        """Keep an index and what its positions hold; a folder that cannot be written costs the next start, no more."""
        with suppress(OSError, RuntimeError):
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = self._folder / f".{side}.{uuid.uuid4().hex[:12]}"
            try:
                search_package("faiss").write_index(index.engine, str(draft))
                document = {
                    "fingerprint": fingerprint,
                    "sha256": _digest(draft),
                    "probes": index.probes,
                    "recall": index.recall,
                    "keys": list(keys),
                    "hashes": list(hashes),
                }
                os.replace(draft, self._path(side, fingerprint, "faiss"))
                write_json(self._path(side, fingerprint, "json"), document)
            finally:
                draft.unlink(missing_ok=True)

    def read(self, side: Side, fingerprint: str) -> tuple[ApproximateIndex, list[str], list[str]] | None:
        """Return an index and what its positions hold, or None."""
        path = self._path(side, fingerprint, "faiss")
        try:
            document = json.loads(self._path(side, fingerprint, "json").read_text(encoding="utf-8"))
            if document["fingerprint"] != fingerprint or document["sha256"] != _digest(path):
                return None
            engine = search_package("faiss").read_index(str(path))
            index = ApproximateIndex(engine, document["probes"], document["recall"])
            return (index, document["keys"], document["hashes"]) if len(index) == len(document["keys"]) else None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return None

    def keep_only(self, fingerprints: Collection[str]) -> None:
        """Delete the indexes of all other retrievers, and what writers that were killed have left."""
        kept = {self._path(side, name, end) for side in SIDES for name in fingerprints for end in ("faiss", "json")}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path not in kept:
                path.unlink(missing_ok=True)

    def _path(self, side: Side, fingerprint: str, ending: str) -> Path:
        return self._folder / f"{side}-{fingerprint}.{ending}"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
