"""An empty store of either engine."""

from tests.collection.store.conftest import postgres_address, postgres_server, store

__all__ = ["postgres_address", "postgres_server", "store"]
