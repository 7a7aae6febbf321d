"""The search models of a collection as they are stored: found by name or fingerprint, and loaded once."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.errors import CollectionError, UnknownRetrieverError

State = Literal["active", "kept", "resting", "unfinished", "pending"]
LoadRetriever = Callable[[Path], RetrieverProtocol]

LONGEST_NAME = 80
"""How many letters names have that people give: of retrievers, albums and saved searches."""


@dataclass(frozen=True)
class Model:
    """A row of ``model``: a stored search model.

    ``state`` is ``active``, ``kept`` (searched by name), ``resting`` (kept for the way back, gets no points of new
    items), ``unfinished`` (its points are being made) or ``pending``: becomes active when its points are made, and is
    not listed before. ``width`` and ``form`` are known with its first points; ``saved`` names the form its files were
    saved in.
    """

    id: int
    name: str
    fingerprint: str
    image_fingerprint: str
    text_fingerprint: str
    kind: str
    width: int
    form: str
    state: State
    place: int
    has_regions: bool
    saved: str
    note: str

    def encoder(self, side: str) -> str:
        """Return the fingerprint of the encoder of a side."""
        return self.image_fingerprint if side == "image" else self.text_fingerprint


_COLUMNS = ", ".join(field.name for field in fields(Model))


def all_models(db: Connection) -> list[Model]:
    """Return every model, the active one first, the pending one included."""
    order = "CASE state WHEN 'active' THEN 0 ELSE 1 END, place, id"
    return [_model(row) for row in db.rows(f"SELECT {_COLUMNS} FROM model ORDER BY {order}")]


def models(db: Connection) -> list[Model]:
    """Return the models that searches may use, the active one first."""
    return [model for model in all_models(db) if model.state != "pending"]


def followed_models(db: Connection) -> list[Model]:
    """Return the models that new items get points of."""
    return [model for model in models(db) if model.state != "resting"]


def pending_model(db: Connection) -> Model | None:
    """Return the model that becomes active when its points are made, or None."""
    return next((model for model in all_models(db) if model.state == "pending"), None)


def active_model(db: Connection) -> Model:
    """Return the model that searches use unless they name another."""
    return model_named(db, None)


def model_named(db: Connection, name: str | None) -> Model:
    """Return a stored model by name; None is the active one."""
    stored = models(db)
    for model in stored:
        if name in (None, model.name):
            return model
    known = ", ".join(repr(model.name) for model in stored)
    raise UnknownRetrieverError(f"there is no retriever {name!r} in this collection; stored are {known}")


def model_with(db: Connection, fingerprint: str) -> Model | None:
    """Return the model that makes these points, the pending one included, or None."""
    return next((model for model in all_models(db) if model.fingerprint == fingerprint), None)


def stored_model(db: Connection, fingerprint: str) -> Model:
    """Return the model that makes these points, or raise."""
    model = model_with(db, fingerprint)
    if model is None:
        raise UnknownRetrieverError("the retriever was removed by another process; add it again")
    return model


def _model(row: tuple[Any, ...]) -> Model:
    values = {field.name: value for field, value in zip(fields(Model), row, strict=True)}
    return Model(**values | {"has_regions": bool(values["has_regions"])})


def load_model(store: Store, model: Model, load_retriever: LoadRetriever) -> RetrieverProtocol:
    """Load a stored model, which must still make the points it is stored for."""
    with store.reading() as db:
        stored_model(db, model.fingerprint)
        files = db.rows("SELECT name, body, sha256 FROM model_file WHERE model = ?", (model.id,))
    with tempfile.TemporaryDirectory(prefix="diptych-model-") as parent:
        folder = Path(parent) / "model"
        for name, body, expected in files:
            path = Path(os.path.normpath(folder / name))
            # A collection from elsewhere may name files outside.
            if hashlib.sha256(body).hexdigest() != expected or not path.is_relative_to(folder):
                raise CollectionError(
                    f"the file {name} of the retriever {model.name!r} is damaged in the database; "
                    "restore a backup, or set the retriever again"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        loaded = load_retriever(folder)
    check_same_points(loaded, model)
    return loaded


def load_retriever(folder: Path) -> RetrieverProtocol:
    """Read a saved retriever."""
    from diptych.retriever import Retriever

    return Retriever.load(folder)


def check_same_points(retriever: RetrieverProtocol, model: Model) -> None:
    """Refuse a retriever that no longer makes the points it is stored for."""
    if retriever.fingerprint != model.fingerprint:
        raise CollectionError(
            f"the retriever {model.name!r} no longer makes the points of this collection: it was fitted again, or this "
            "version of the package has other weights; `diptych index --retriever "
            f"{model.name}` (set_retriever) encodes the pictures again, with the present ones"
        )


class LoadedRetrievers:
    """The retrievers that this process uses, each loaded once."""

    def __init__(self, store: Store, load_retriever: LoadRetriever) -> None:
        self._store = store
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        # By the number of the model, with the form that was loaded.
        self._loaded: dict[int, tuple[str, RetrieverProtocol]] = {}

    def of(self, model: Model) -> RetrieverProtocol:
        """Return the retriever of a model, in the form that was saved last."""
        with self._lock:
            saved, retriever = self._loaded.get(model.id, ("", None))
            if retriever is None or saved != model.saved:
                retriever = load_model(self._store, model, self._load_retriever)
                self.keep(model, retriever)
            return retriever

    def keep(self, model: Model, retriever: RetrieverProtocol) -> None:
        """Use a retriever for the model that was made of it; those of models that are stored no more are let go."""
        with self._store.reading() as db:
            stored = {one.id for one in all_models(db)}
        with self._lock:
            self._loaded = {number: one for number, one in self._loaded.items() if number in stored}
            self._loaded[model.id] = model.saved, retriever
