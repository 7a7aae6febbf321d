"""Running the tests of collections in folders on object storage: ``pytest tests/collection --storage``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diptych.collection.collection as collection_module
from diptych.collection.remote import place as places
from diptych.data.folders import storage_address


def keep_folders_in_storage(monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    """Let every collection of a folder be one in object storage, opened by the folder or by its copy."""

    def address_of(location: Any) -> str:
        folder = Path(os.path.abspath(location))
        if "remote" in folder.parts and folder.name.startswith("copy-"):
            return (folder.parent / "address").read_text()
        return storage_address(location) or f"{storage}/{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"

    def opened(location: Any) -> Any:
        if os.path.exists(Path(location) / "collection.json") and "copy-" not in Path(location).name:
            return places.LocalPlace(Path(location))
        return places.RemotePlace(address_of(location)).open()

    def created(location: Any, root: Path | None, make: Callable[[Path, str], None]) -> None:
        place = places.RemotePlace(address_of(location))
        around = Path(location).parent if root is None else root
        place.create(lambda folder: make(folder, os.path.abspath(around)))
        (place.folder.parent / "address").write_text(place.name)

    monkeypatch.setattr(collection_module, "open_place", opened)
    monkeypatch.setattr(collection_module, "create_place", created)
    monkeypatch.setattr(
        collection_module, "has_collection", lambda location: places.has_collection(address_of(location))
    )
