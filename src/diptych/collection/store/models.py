"""The search models of a collection: their states, their files in the database, and loading them."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.store.dialect import Connection
from diptych.collection.store.points import drop_point_tables
from diptych.collection.store.store import Store, note_changes
from diptych.errors import CollectionError, DiptychError, InvalidInputError, UnknownRetrieverError

State = Literal["active", "kept", "resting", "unfinished", "pending"]
Listed = list[tuple[Any, ...]]
LoadRetriever = Callable[[Path], RetrieverProtocol]

UNPACKED = "models"
"""The folder of unpacked models among what can be made again."""

PART_BYTES = 32 << 20
LONGEST_NAME = 80
"""How many letters names have that people give: of retrievers, albums and saved searches."""


@dataclass(frozen=True)
class Model:
    """A row of ``model``: a stored search model.

    ``state`` is ``active``, ``kept`` (searched by name), ``resting`` (kept for the way back, gets no points of new
    items), ``unfinished`` (its points are being made) or ``pending`` (not among the others yet). ``is_next``: it
    becomes active when its points are made; ``keeps_old``: the active one then stays. ``width`` and ``form`` are known
    with its first points; ``saved`` names the form its files were saved in.
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
    is_next: bool
    keeps_old: bool
    has_regions: bool
    saved: str
    note: str

    def encoder(self, side: str) -> str:
        """Return the fingerprint of the encoder of a side."""
        return self.image_fingerprint if side == "image" else self.text_fingerprint


_COLUMNS = ", ".join(field.name for field in fields(Model))
_FLAGS = {"is_next", "keeps_old", "has_regions"}


@dataclass(frozen=True)
class SavedModel:
    """A retriever as rows: its names, and its files in parts as (name, part, body, SHA-256)."""

    names: dict[str, str]
    files: tuple[tuple[str, int, bytes, str], ...]

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes the points."""
        return self.names["fingerprint"]


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


def next_model(db: Connection) -> Model | None:
    """Return the model that becomes active when its points are made, or None."""
    return next((model for model in all_models(db) if model.is_next), None)


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


def _model(row: tuple[Any, ...]) -> Model:
    values = {field.name: value for field, value in zip(fields(Model), row, strict=True)}
    return Model(**values | {name: bool(values[name]) for name in _FLAGS})


# States


def add_model(db: Connection, saved: SavedModel, name: str, state: State) -> Model:
    """Store a model that is not stored yet."""
    place = int(db.value("SELECT max(place) FROM model") or 0) + 1
    values = {**saved.names, "name": name, "state": state, "place": place}
    marks = ", ".join("?" * len(values))
    db.run(f"INSERT INTO model ({', '.join(values)}) VALUES ({marks})", list(values.values()))
    model = _known(db, saved.fingerprint)
    _put_files(db, model, saved)
    note_changes(db, "model")
    return model


def save_again(db: Connection, model: Model, saved: SavedModel) -> Model:
    """Replace the files of a stored model by another saved form that makes the same points."""
    db.run("DELETE FROM model_file WHERE model = ?", (model.id,))
    _put_files(db, model, saved)
    db.run("UPDATE model SET saved = ?, kind = ? WHERE id = ?", (saved.names["saved"], saved.names["kind"], model.id))
    note_changes(db, "model")
    return _known(db, model.fingerprint)


def set_next(db: Connection, saved: SavedModel, *, keeps_old: bool) -> list[Model]:
    """Let a model become active when its points are made; return pending ones that were to before, to be removed."""
    model = model_with(db, saved.fingerprint)
    replaced = [one for one in all_models(db) if one.is_next and one.fingerprint != saved.fingerprint]
    if model is None:
        leaving = None if keeps_old else active_model(db).name
        taken = {one.name for one in models(db)} - {leaving}
        model = add_model(db, saved, unique_name(saved.names["name"], taken), "pending")
    elif not model.is_next:
        save_again(db, model, saved)
    db.run("UPDATE model SET is_next = 0, keeps_old = 0")
    db.run("UPDATE model SET is_next = 1, keeps_old = ? WHERE id = ?", (int(keeps_old), model.id))
    note_changes(db, "model")
    return [one for one in replaced if one.state == "pending"]


def switch(db: Connection) -> tuple[Model, Model]:
    """Make the next model active; return the one before, which rests or is to be removed, and the new one.

    The one before is to be removed where its state is ``pending``.
    """
    new, old = next_model(db), active_model(db)
    if new is None:
        raise CollectionError("no retriever is pending; call set_retriever first")
    place = int(db.value("SELECT max(place) FROM model")) + 1
    left = ("resting", place) if new.keeps_old else ("pending", place)
    db.run("UPDATE model SET state = ?, place = ? WHERE id = ?", (*left, old.id))
    # Another model may have been activated or added under that name since the change was begun.
    name = unique_name(new.name, {one.name for one in models(db) if one.id != new.id})
    values = (name, new.id)
    db.run("UPDATE model SET state = 'active', is_next = 0, keeps_old = 0, name = ? WHERE id = ?", values)
    note_changes(db, "model")
    return _known(db, old.fingerprint), _known(db, new.fingerprint)


def list_pending(db: Connection, model: Model, name: str) -> None:
    """Keep the next model beside the others, under a name, from now on; its points are being made."""
    db.run("UPDATE model SET state = 'unfinished', name = ? WHERE id = ? AND state = 'pending'", (name, model.id))
    note_changes(db, "model")


def finish(db: Connection, model: Model) -> None:
    """Keep an unfinished or resting model like the others: it has all its points."""
    if db.run("UPDATE model SET state = 'kept' WHERE id = ? AND state IN ('unfinished', 'resting')", (model.id,)):
        note_changes(db, "model")


def activate(db: Connection, model: Model) -> None:
    """Make a stored model active; the one before stays, first among the others."""
    place = int(db.value("SELECT min(place) FROM model")) - 1
    db.run("UPDATE model SET state = 'kept', place = ? WHERE state = 'active'", (place,))
    db.run("UPDATE model SET state = 'active', is_next = 0, keeps_old = 0 WHERE id = ?", (model.id,))
    note_changes(db, "model")


def remove_model(db: Connection, model: Model) -> bool:
    """Forget a model that is not active, and its points; return False where it stays as the next one, out of sight."""
    if model.is_next and model.state != "pending":
        db.run("UPDATE model SET state = 'pending' WHERE id = ?", (model.id,))
    else:
        drop_point_tables(db, model.id)
        db.run("DELETE FROM model WHERE id = ?", (model.id,))
    note_changes(db, "model")
    return not (model.is_next and model.state != "pending")


def chosen_name(name: str, taken: Collection[str]) -> str:
    """Return a chosen name of a model, or raise where it is taken or cannot be one."""
    if unique_name(name, ()) != name:
        raise InvalidInputError(
            f"{name!r} cannot name a retriever; use up to {LONGEST_NAME} printable letters without /"
        )
    if name in taken:
        raise CollectionError(f"a retriever is called {name!r} already; choose another name, or remove it first")
    return name


def _known(db: Connection, fingerprint: str) -> Model:
    model = model_with(db, fingerprint)
    if model is None:
        raise CollectionError("the retriever was removed by another process; add it again")
    return model


# Files


def saved_model(retriever: RetrieverProtocol) -> SavedModel:
    """Save a retriever, and return it as rows."""
    with tempfile.TemporaryDirectory(prefix="diptych-model-") as parent:
        folder = Path(parent) / "model"
        retriever.save(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = tuple(
            (path.relative_to(folder).as_posix(), part, body, hashlib.sha256(body).hexdigest())
            for path in paths
            for part, body in enumerate(_parts(path))
        )
        names = {
            "name": retriever.name,
            "fingerprint": retriever.fingerprint,
            "image_fingerprint": retriever.image_fingerprint,
            "text_fingerprint": retriever.text_fingerprint,
            "kind": kind_of_saved(folder),
            "saved": f"{retriever.fingerprint[:16]}-{uuid.uuid4().hex[:8]}",
        }
    return SavedModel(names, files)


def load_model(store: Store, model: Model, load_retriever: LoadRetriever) -> RetrieverProtocol:
    """Load a stored model, which must still make the points it is stored for."""
    while True:
        try:
            loaded = _load(store, model, load_retriever)
            break
        except (DiptychError, OSError):
            # Another process may have saved it again, with another calibration, and deleted the older form.
            with store.reading() as db:
                current = _known(db, model.fingerprint)
            if current.saved == model.saved:
                raise
            model = current
    check_same_points(loaded, model)
    return loaded


def _load(store: Store, model: Model, load_retriever: LoadRetriever) -> RetrieverProtocol:
    folder = store.derived / UNPACKED / model.saved
    with store.reading() as db:
        sql = "SELECT name, part, sha256 FROM model_file WHERE model = ? ORDER BY name, part"
        listed = db.rows(sql, (model.id,))
    if not _is_whole(folder, listed):
        try:
            _unpack(store, model, listed, folder)
        except OSError:
            # Readers may search where they cannot write, and where the disk is full.
            with tempfile.TemporaryDirectory(prefix="diptych-model-") as other:
                _unpack(store, model, listed, Path(other) / model.saved)
                return load_retriever(Path(other) / model.saved)
    return load_retriever(folder)


def _unpack(store: Store, model: Model, listed: Listed, folder: Path) -> None:
    """Write the files of a model to a folder, in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".tmp-", dir=folder.parent))
    try:
        with store.reading() as db:
            sql = "SELECT body FROM model_file WHERE model = ? AND name = ? AND part = ?"
            for name, part, expected in listed:
                body = db.value(sql, (model.id, name, part))
                if body is None or hashlib.sha256(body).hexdigest() != expected:
                    raise CollectionError(
                        f"the file {name} of the retriever {model.name!r} is damaged in the database; "
                        "restore a backup, or set the retriever again"
                    )
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as file:
                    file.write(body)
        made.chmod(0o755)
        # Another process may have been faster; else what lies there is damaged.
        if not _is_whole(folder, listed):
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_whole(folder: Path, listed: Listed) -> bool:
    try:
        for name in {name for name, _, _ in listed}:
            found = [hashlib.sha256(body).hexdigest() for body in _parts(folder / name)]
            if found != [digest for other, _, digest in listed if other == name]:
                return False
    except OSError:
        return False
    return bool(listed)


def _parts(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in parts; an empty file has one."""
    with path.open("rb") as file:
        yield file.read(PART_BYTES)
        while body := file.read(PART_BYTES):
            yield body


def _put_files(db: Connection, model: Model, saved: SavedModel) -> None:
    columns = ("model", "name", "part", "body", "sha256")
    db.load("model_file", columns, ((model.id, *file) for file in saved.files))


def delete_derived(store: Store) -> None:
    """Delete the unpacked files and the vector files of models that are stored no more."""
    with store.reading() as db:
        stored = all_models(db)
    used = {model.saved for model in stored}
    unpacked = store.derived / UNPACKED
    # What another process is unpacking now is its own.
    unused = [path for path in unpacked.glob("[!.]*") if path.name not in used]
    numbers = {str(model.id) for model in stored}
    unused += [path for path in store.derived.glob("points-*") if path.name.split("-")[1] not in numbers]
    for path in unused:
        shutil.rmtree(path, ignore_errors=True)


# Retrievers


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


def defensive_copy(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a copy that its owner's later training leaves alone, or the retriever itself where it has no copies."""
    try:
        return copy.deepcopy(retriever)
    # Whatever a retriever holds that cannot be copied, it can still be used: every write checks its fingerprint.
    except Exception:
        return retriever


def check_same_points(retriever: RetrieverProtocol, model: Model) -> None:
    """Refuse a retriever that no longer makes the points it is stored for."""
    if retriever.fingerprint != model.fingerprint:
        raise CollectionError(
            f"the retriever {model.name!r} no longer makes the points of this collection: it was fitted again, or this "
            "version of the package has other weights; `diptych index --retriever "
            f"{model.name}` (set_retriever) encodes the pictures again, with the present ones"
        )


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return the name fit for addresses and lists, with a number where it is taken.

    >>> unique_name("trained", ["trained", "trained 2"]), unique_name("my/model", [])
    ('trained 3', 'my model')
    """
    letters = (letter if letter.isprintable() and letter != "/" else " " for letter in name)
    plain = " ".join("".join(letters).split())[:LONGEST_NAME].strip() or "retriever"
    free, number = plain, 1
    while free in taken:
        number += 1
        free = f"{plain} {number}"
    return free


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
