"""Making the folder of a collection, and saving and loading the retrievers in it."""

from __future__ import annotations

import copy
import json
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from diptych.atomic_files import sync_to_disk
from diptych.collection.storage.clear_errors import keep_reserve
from diptych.collection.storage.layout import Layout, RetrieverNames
from diptych.collection.storage.place import write_lock
from diptych.collection.storage.retriever_protocol import RetrieverProtocol
from diptych.collection.storage.store import Store
from diptych.errors import CollectionError


@dataclass(frozen=True)
class StoredRetriever:
    """One of the retrievers of a collection.

    ``active`` marks the one that searches use unless they name another. ``ready`` is false while making its points was
    interrupted; ``missing`` counts the pictures and captions without a point. ``kind`` is the class of its model, empty
    when it has none.
    """

    name: str
    fingerprint: str
    active: bool
    ready: bool
    missing: int
    kind: str


_OWN_NAMES = {"store", "retrievers", "index", "service", "write.lock", "reserve", "last_run.json", "last_status.json"}
# What is known of past items.
_NOTES = {"changes.jsonl", "saved.json"}
# What a writer that was killed in the middle of a JSON file leaves behind.
_TEMPORARY_JSON = re.compile(r"\.(collection|last_run|last_status|saved)\.json\.[0-9a-f]{12}")
# The places of those who stand in line for the lock, which are theirs to clear away.
_LINE = re.compile(r"write\.lock[.-]\d+-\d+-\d+")


def make_collection(retriever: RetrieverProtocol, folder: Path, root: str) -> None:
    """Make the folder of an empty collection; one that a killed process left unfinished is made anew.

    ``root`` is kept as it is given; :func:`stored_root` says how.
    """
    _check_new(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with write_lock(folder / "write.lock"):
        _check_new(folder)
        names = names_of(retriever)
        layout = Layout(folder, root, names)
        shutil.rmtree(layout.store, ignore_errors=True)
        for path in folder.iterdir():
            if _TEMPORARY_JSON.fullmatch(path.name) or path.name in _NOTES:
                path.unlink()
        layout.store.mkdir()
        keep_reserve(layout.reserve)
        save_retriever(retriever, layout, names)
        store = Store(layout.store)
        store.tables.keep_retriever(names)
        store.prepare()
        # Last: a folder with this file is a whole collection.
        layout.write()
        sync_to_disk(folder.parent)


def names_of(retriever: RetrieverProtocol) -> RetrieverNames:
    """Return the fingerprints of a retriever, and a fresh folder name to save it under."""
    return RetrieverNames(
        saved=f"{retriever.fingerprint[:16]}-{uuid.uuid4().hex[:8]}",
        name=retriever.name,
        fingerprint=retriever.fingerprint,
        image_fingerprint=retriever.image_fingerprint,
        text_fingerprint=retriever.text_fingerprint,
    )


def save_retriever(retriever: RetrieverProtocol, layout: Layout, names: RetrieverNames) -> None:
    """Save a retriever in a folder of its own; nothing refers to it before the layout does."""
    layout.retrievers.mkdir(exist_ok=True)
    retriever.save(layout.saved_retriever(names))


def delete_saved(layout: Layout, store: Store) -> None:
    """Delete the saved retrievers that the layout does not name."""
    kept = {names.saved for names in layout.in_force}
    for folder in layout.retrievers.iterdir():
        if folder.name not in kept:
            store.tables.forget_retriever(folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def kind_of_saved(folder: Path) -> str:
    """Return the class of a saved retriever's model without loading it, empty where it has none."""
    try:
        document = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        return str(document["model"]["learned"]["model_"]["$model"]["class"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def load_retriever(folder: Path) -> RetrieverProtocol:
    """Read a saved retriever."""
    from diptych.retriever import Retriever

    return Retriever.load(folder)


def default_retriever() -> RetrieverProtocol:
    """Return the retriever that needs no training."""
    from diptych.retriever import Retriever

    return Retriever.default()


def _check_new(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise CollectionError(f"{folder} is a file; choose a folder for the collection")
    if (folder / "collection.json").exists():
        raise CollectionError(f"{folder} is a collection already; open it, or choose another folder")
    names = {path.name for path in folder.iterdir()} - _OWN_NAMES - _NOTES if folder.exists() else set()
    others = {name for name in names if not (_TEMPORARY_JSON.fullmatch(name) or _LINE.fullmatch(name))}
    if others:
        raise CollectionError(f"{folder} holds other files ({sorted(others)[0]}); choose an empty or new folder")


def defensive_copy(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a copy that its owner's later training leaves alone, or the retriever itself where it has no copies."""
    try:
        return copy.deepcopy(retriever)
    # Whatever a retriever holds that cannot be copied, it can still be used: every write checks its fingerprint.
    except Exception:
        return retriever


def check_same_points(retriever: RetrieverProtocol, names: RetrieverNames) -> None:
    """Refuse a retriever that no longer makes the points it is stored for."""
    if retriever.fingerprint != names.fingerprint:
        raise CollectionError(
            f"the retriever {names.name!r} no longer makes the points of this collection: it was fitted again, or this "
            "version of the package has other weights; `diptych index --retriever "
            f"{names.name}` (set_retriever) encodes the pictures again, with the present ones"
        )
