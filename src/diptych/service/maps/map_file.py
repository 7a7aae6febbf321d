"""Where maps are kept."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from diptych.collection import Collection


def map_path(collection: Collection, fingerprint: str) -> Path:
    """Return the file of the map that shows the points of the retriever with this fingerprint."""
    return collection.folder / "service" / "maps" / f"{fingerprint}.json"


def has_map(collection: Collection, fingerprint: str) -> bool:
    """Say whether a map has been made."""
    return map_path(collection, fingerprint).is_file()


def read_map(collection: Collection, fingerprint: str) -> dict[str, Any] | None:
    """Return a map as it was made, or None where there is none that can be read."""
    try:
        document = json.loads(map_path(collection, fingerprint).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("points"), list) else None


def write_map(collection: Collection, fingerprint: str, document: dict[str, Any]) -> None:
    """Write a map whole or not at all."""
    target = map_path(collection, fingerprint)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{uuid.uuid4().hex}.json")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(document, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
