"""LanceDB, imported without what only its clients of remote services need, which nothing here uses.

Preparing these took a second of every start: a class for every message of their protocol, checks of every argument,
and on Python 3.11 a comparison of every method with the one that it overrides. Its classes are prepared when they are
used. In Diptych's own programs it comes without pandas, too, which PyArrow imports where it is installed, for tables
of it, of which they make none, without the documentation that PyArrow writes for each of its functions, and without
other people's encoders, functions in the database and databases elsewhere.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from diptych import own_process
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.ledger import newest_version

_PROTOCOL, _CLIENT = "lance_namespace", "lance_namespace_urllib3_client"
_NO_ENCODERS = ("__init__", "base", "registry", "utils")
_DOCUMENTATION = "pyarrow.vendored.docscrape"
_UNUSED = tuple(
    f"lancedb.{name}" for name in ("catalog", "functions", "namespace", "remote", "remote.db", "remote.table")
)
# A module is in sys.modules before it is whole, and two threads must not put their stand-ins there at once.
_IMPORTING = threading.RLock()


class _Package(ModuleType):
    """Stands for a package whose modules can be imported; it imports none of them itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        spec = find_spec(name)
        self.__path__ = list(spec.submodule_search_locations or ()) if spec else []


class _Protocol(_Package):
    """Stands for the package of the protocol: a message comes from its own module, the connection when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name == "connect":
            return lambda *given, **named: import_module(_PROTOCOL).connect(*given, **named)
        if name == "LanceNamespace":
            # The engine names it in annotations only.
            return Any
        if not name[0].isupper():
            raise AttributeError(name)
        module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        return getattr(import_module(f"{_CLIENT}.models.{module}"), name)


class _Overrides(ModuleType):
    """Stands for the comparison with what is overridden; newer versions of Python have a mark that does nothing."""

    EnforceOverrides = type("EnforceOverrides", (), {})

    @staticmethod
    def override(method: Any) -> Any:
        return method


class _Unused(ModuleType):
    """Stands for a module of which nothing is used: nothing is one of its classes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kind = type(name, (), {})
        setattr(self, name, kind)
        return kind


class _UnusedProtocol(_Unused, _Package):
    """Stands for the package of the protocol where no message is ever sent."""


class _Documentation(ModuleType):
    """Stands for what PyArrow reads the descriptions of options with, to write that of each of its functions."""

    @staticmethod
    def NumpyDocString(_: str) -> dict[str, list[Any]]:
        return {"Parameters": []}


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Let the engine be imported with the little that it takes of these modules; they are whole afterwards."""
    kinds: dict[str, type[ModuleType]] = {
        _PROTOCOL: _Protocol,
        _CLIENT: _Package,
        f"{_CLIENT}.models": _Package,
        "overrides": _Overrides,
    }
    if own_process.is_ours():
        kinds |= {_PROTOCOL: _UnusedProtocol, _DOCUMENTATION: _Documentation}
        kinds |= dict.fromkeys(_modules_of_encoders(), _Unused)
        # The engine asks for some of these again with every search for words.
        sys.modules.update({name: _Unused(name) for name in _UNUSED if name not in sys.modules})
    added: dict[str, ModuleType] = {}
    try:
        for name, kind in kinds.items():
            if name not in sys.modules:
                added[name] = sys.modules[name] = kind(name)
        yield
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _modules_of_encoders() -> list[str]:
    spec = find_spec("lancedb")
    folders = spec.submodule_search_locations if spec else None
    files = [file for folder in folders or () for file in Path(folder, "embeddings").glob("*.py")]
    return [f"lancedb.embeddings.{file.stem}" for file in files if file.stem not in _NO_ENCODERS]


class _Hidden:
    """Lets what is imported meanwhile find no such module, unless it is there already."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse the module, and leave the others to whoever finds them."""
        if name == self._module:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)


def engine_package() -> Any:
    """Return LanceDB.

    >>> engine_package().connect("memory://").list_tables().tables
    []
    """
    with _IMPORTING:
        return search_package("lancedb") if "lancedb" in sys.modules else _first_import()


def _first_import() -> Any:
    pydantic, of_dataclasses = search_package("pydantic"), search_package("pydantic.dataclasses")
    checked, settings, dataclass = pydantic.validate_call, pydantic.BaseModel.model_config, of_dataclasses.dataclass
    pydantic.validate_call = lambda function=None, /, **_: (lambda given: given) if function is None else function
    pydantic.BaseModel.model_config = {**settings, "defer_build": True}
    of_dataclasses.dataclass = partial(dataclass, config={"defer_build": True})
    try:
        with _stand_ins(), _Hidden("pandas") if own_process.is_ours() else nullcontext():
            return search_package("lancedb")
    finally:
        pydantic.validate_call, pydantic.BaseModel.model_config = checked, settings
        of_dataclasses.dataclass = dataclass


def with_memory(table: Any, folder: Path) -> Any:
    """Return a table that knows its columns: the engine asks for them three times a query, each time on the disk.

    It knows the rows of its newest version, too: to look which one that is takes a twentieth of asking the engine.
    """
    kind: Any = type(table)
    table.__class__ = _with_memory(kind)
    table.folder, table.known_rows = folder, (-1, 0)
    return table


@cache
def _with_memory(kind: Any) -> Any:
    class Table(kind):
        folder: Path
        known_rows: tuple[int, int]

        def newest_version(self) -> int:
            """Return the number of the newest version, whoever wrote it."""
            newest = newest_version(self.folder)
            return int(self.version) if newest is None else newest

        def n_rows(self) -> int:
            """Return how many rows the newest version has."""
            version, (known, n_rows) = self.newest_version(), self.known_rows
            if version != known:
                n_rows = int(self.count_rows())
                self.known_rows = version, n_rows
            return n_rows

        @cached_property
        def schema(self) -> Any:
            return super().schema

        def add_columns_missing(self, columns: Mapping[str, str]) -> None:
            """Add columns, but for those that another process has added since the table was opened."""
            if not columns.keys() <= {*self.schema.names}:
                del self.schema
                missing = {name: made for name, made in columns.items() if name not in self.schema.names}
                if missing:
                    self.add_columns(missing)
                    del self.schema

    return Table
