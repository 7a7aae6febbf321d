"""The store of a place: SQLite in a folder, PostgreSQL by an address."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from diptych.addresses import is_address
from diptych.atomic_files import Durability
from diptych.collection.store.sqlite import DATABASE, SqliteStore
from diptych.collection.store.store import Fill, Store
from diptych.errors import MissingPackageError


def create_store(
    place: Path | str, durability: Durability = "power", replica: str | None = None, fill: Fill | None = None
) -> Store:
    """Make the tables of an empty collection in a folder or at an address, and fill them, in one step."""

    if is_address(place):
        created: Store = _postgres().PostgresStore.create(str(place), durability, replica, fill)
        return created
    return SqliteStore.create(Path(place), durability, fill)


def open_store(place: Path | str, durability: Durability = "power", replica: str | None = None) -> Store:
    """Open the collection in a folder or at an address."""
    if is_address(place):
        opened: Store = _postgres().PostgresStore.open(str(place), durability, replica)
        return opened
    return SqliteStore.open(Path(place), durability)


def is_collection(place: Path | str) -> bool:
    """Return True if there is a collection in a folder or at an address."""
    if is_address(place):
        return bool(_postgres().PostgresStore.exists(str(place)))
    return (Path(place) / DATABASE).is_file()


def _postgres() -> ModuleType:
    try:
        # Imported lazily: psycopg takes 0.4 s, and folders do not need it.
        from diptych.collection.store import postgres
    except ImportError as problem:
        raise MissingPackageError("a collection in PostgreSQL", "'diptych[postgres]'") from problem
    return postgres
