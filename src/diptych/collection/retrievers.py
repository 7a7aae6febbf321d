"""The retrievers of a collection: changed, kept beside each other, encoded again, calibrated."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.indexing.add_report import Progress
from diptych.collection.indexing.reencoding import ReencodeReport, Reencoding
from diptych.collection.retriever_protocol import SIDES, RetrieverProtocol
from diptych.collection.root import Root
from diptych.collection.store import models
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_name, known_contents
from diptych.collection.store.model_history import (
    LearningRecord,
    Origin,
    from_to,
    records,
    remember,
    replaceable,
    utc_now,
)
from diptych.collection.store.models import LONGEST_NAME, LoadedRetrievers, Model, State, stored_model
from diptych.collection.store.points import count_missing_points, drop_point_tables, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store, note_changes
from diptych.errors import ActiveRetrieverError, CollectionError, InvalidInputError, UnknownRetrieverError

# A change leaves the retriever before, so that going back costs nothing, and a few older ones.
MAX_RESTING = 3
FEATURES_AT_ONCE = 2000
MAX_TRIES = 3

_UNUSED = """NOT EXISTS (SELECT 1 FROM model m
    WHERE (encoder.side = 'image' AND m.image_fingerprint = encoder.fingerprint)
    OR (encoder.side = 'text' AND m.text_fingerprint = encoder.fingerprint))"""


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


@dataclass(frozen=True)
class SavedModel:
    """A retriever as rows: its names, and its files as (name, body, SHA-256)."""

    names: dict[str, str]
    files: tuple[tuple[str, bytes, str], ...]

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes the points."""
        return self.names["fingerprint"]


class RetrieverChanges:
    """Gives a collection other retrievers; each change is one transaction.

    A retriever is stored before its points are made, so that an interrupted run goes on where it stopped. The history
    says which one was active when.
    """

    def __init__(
        self, store: Store, root: Callable[[], Root], loaded: LoadedRetrievers, scheduler: str | None = None
    ) -> None:
        self._store = store
        self._root = root
        self._loaded = loaded
        self._scheduler = scheduler

    def stored(self) -> list[StoredRetriever]:
        """Return the retrievers, the active one first."""
        # In PostgreSQL the points of one may go while they are counted.
        for _ in range(MAX_TRIES - 1):
            with suppress(UnknownRetrieverError):
                return self._stored()
        return self._stored()

    def _stored(self) -> list[StoredRetriever]:
        with self._store.reading() as db:
            return [
                StoredRetriever(
                    name=model.name,
                    fingerprint=model.fingerprint,
                    active=model.state == "active",
                    ready=model.state != "unfinished",
                    missing=sum(count_missing_points(db, model.id, side) for side in SIDES),
                    kind=model.kind,
                )
                for model in models.models(db)
            ]

    def create(self, retriever: RetrieverProtocol) -> None:
        """Store the first retriever of a collection."""
        retriever = defensive_copy(retriever)
        saved = saved_model(retriever)
        name = unique_name(retriever.name, ())
        self._loaded.keep(self._store.write(lambda db: add_model(db, saved, name, "active")), retriever)

    def set(
        self, retriever: RetrieverProtocol, progress: Progress | None = None, *, keep: bool = True
    ) -> ReencodeReport:
        """Change the active retriever; the one before rests beside it where it is to be kept."""
        retriever = defensive_copy(retriever)
        saved = saved_model(retriever)

        def begin(db: Connection) -> Model:
            known = models.model_with(db, saved.fingerprint)
            if known is not None:
                # The same points; what may differ is the calibration.
                return save_again(db, known, saved)
            if (replaced := models.pending_model(db)) is not None:
                remove_model(db, replaced)
            return add_model(db, saved, unique_name(saved.names["name"], ()), "pending")

        model = self._store.write(begin)
        self._loaded.keep(model, retriever)
        self.tidy()
        return ReencodeReport() if model.state == "active" else self._switch(model, progress, keep=keep)

    def reencode(self, progress: Progress | None = None) -> ReencodeReport:
        """Finish a change of the active retriever that was begun."""
        with self._store.reading() as db:
            model = models.pending_model(db)
        return ReencodeReport() if model is None else self._switch(model, progress, keep=True)

    def add(
        self, retriever: RetrieverProtocol, name: str | None = None, progress: Progress | None = None
    ) -> ReencodeReport:
        """Keep the points of one more retriever."""
        retriever = defensive_copy(retriever)
        saved = saved_model(retriever)
        model = self._store.write(lambda db: _added(db, saved, name))
        self._loaded.keep(model, retriever)
        return self._made(model, progress, lambda db: finish(db, model))

    def activate(self, name: str, record: LearningRecord | None = None) -> None:
        """Let searches use a stored retriever from now on; the history gets the record, by default that of a choice."""
        with self._store.reading() as db:
            chosen = models.model_named(db, name)
        if chosen.state == "unfinished":
            raise CollectionError(
                f"the points of the retriever {name!r} are unfinished; add it again to finish them, then activate"
            )

        def change(db: Connection) -> None:
            before, model = models.active_model(db), stored_model(db, chosen.fingerprint)
            if model.id != before.id:
                activate(db, model)
                _note(db, before, model, "choice", record)

        if chosen.state == "resting":
            self._made(chosen, None, change)
        elif chosen.state != "active":
            self._store.write(change)
        self.tidy()

    def remove(self, name: str) -> None:
        """Forget a retriever and its points."""

        def forget(db: Connection) -> None:
            model = models.model_named(db, name)
            if model.state == "active":
                raise ActiveRetrieverError(f"the retriever {name!r} is the active one; activate another one first")
            remove_model(db, model)

        self._store.write(forget, freeing=True)
        self.tidy()

    def calibrate(self, judgements: Iterable[tuple[str, str, bool]]) -> None:
        """Fit the probabilities of text→image searches to judgements: (words, id of the item, whether it is good)."""
        from diptych.retriever import Calibration, Retriever

        judged = list(judgements)
        with self._store.reading() as db:
            model = models.active_model(db)
            retriever = self._loaded.of(model)
            if not isinstance(retriever, Retriever):
                raise InvalidInputError(f"a {type(retriever).__name__} has no calibration to fit")
            items = items_by_name(db, {item_id for _, item_id, _ in judged})
            hashes = {name: item.content_hash for name, (_, item) in items.items() if item.content_hash is not None}
            ids = known_contents(db, list(hashes.values()))
            stored: dict[int, AnyArray] = {}
            if ids and model.width:
                contents, _, points = read_points(db, model.id, "image", list(ids.values()))
                stored = dict(zip(contents.tolist(), points, strict=True))
        scoring = Scoring(retriever.space, "text_query")
        scores, relevance = [], []
        for words, item_id, is_good in judged:
            point = stored.get(ids.get(hashes.get(item_id, ""), 0))
            if point is not None:
                query = scoring.query_vectors(retriever.texts_to_points(retriever.query_features([words])))
                kept = point if point.dtype == np.uint8 else point.astype(np.float32)
                scores.append(float(scoring.scores(query, kept[None])[0, 0]))
                relevance.append(float(is_good))
        fitted = Calibration(prior=None).fit({"text_to_image": (scores, relevance)})
        # Searches that are under way keep the retriever they began with.
        calibrated, calibration = copy.copy(retriever), copy.deepcopy(retriever.calibration_)
        # The first line is that of text→image.
        calibration.intercepts_ = np.append(fitted.intercepts_[:1], calibration.intercepts_[1:])
        calibration.slopes_ = np.append(fitted.slopes_[:1], calibration.slopes_[1:])
        calibrated.calibration_ = calibration
        saved = saved_model(calibrated)
        again = self._store.write(lambda db: save_again(db, stored_model(db, model.fingerprint), saved))
        self._loaded.keep(again, calibrated)

    def fill(self) -> None:
        """Make the points that stored retrievers lack."""
        with self._store.reading() as db:
            followed = models.followed_models(db)
        for model in followed:
            self._made(model, None, partial(finish, model=model))

    def tidy(self) -> None:
        """Delete the features and the files that no stored retriever uses, a few rows at a time."""
        delete_vector_files(self._store)
        with self._store.reading() as db:
            unused = db.ids(f"SELECT id FROM encoder WHERE {_UNUSED}").tolist()
        for encoder in unused:
            while self._store.write(partial(_forget_features, encoder=encoder), freeing=True):
                pass

    def _switch(self, model: Model, progress: Progress | None, *, keep: bool) -> ReencodeReport:
        def change(db: Connection) -> None:
            before = models.active_model(db)
            if before.id == model.id:
                # Another process has done the same.
                return
            activate(db, model, "resting")
            if not keep:
                remove_model(db, before)
            rename_model(db, model)
            _note(db, before, models.active_model(db), "switch")

        report = self._made(model, progress, change)
        self.tidy()
        return report

    def _made(self, model: Model, progress: Progress | None, change: Callable[[Connection], None]) -> ReencodeReport:
        """Make the points that a model lacks, and change its state in the transaction that finds them complete."""
        work = Reencoding(self._store, self._root(), (model, self._loaded.of(model)), self._scheduler)

        def end(db: Connection) -> bool:
            stored_model(db, model.fingerprint)
            is_complete = not any(work.missing(db).values())
            if is_complete:
                change(db)
            return is_complete

        while True:
            report = work.run(progress)
            # Others may have added items since.
            if self._store.write(end):
                return report


def _added(db: Connection, saved: SavedModel, name: str | None) -> Model:
    """Store one more model, or the new form of a stored one."""
    known = models.model_with(db, saved.fingerprint)
    if known is not None and known.state != "pending":
        if name not in (None, known.name):
            raise CollectionError(
                f"this retriever is stored already, as {known.name!r}; use that name, or remove it first"
            )
        return save_again(db, known, saved)
    taken = {model.name for model in models.models(db)}
    chosen = unique_name(saved.names["name"], taken) if name is None else chosen_name(name, taken)
    if known is None:
        return add_model(db, saved, chosen, "unfinished")
    list_pending(db, known, chosen)
    return save_again(db, known, saved)


def _note(db: Connection, before: Model, after: Model, origin: Origin, record: LearningRecord | None = None) -> None:
    """Write down that another model is active, and remove earlier ones that nothing leads back to."""
    remember(db, record or LearningRecord(utc_now(), "changed", **from_to(before, after), origin=origin))
    stored = {model.fingerprint: model for model in models.models(db)}
    for fingerprint in replaceable(records(db), after.fingerprint, MAX_RESTING):
        if fingerprint in stored:
            remove_model(db, stored[fingerprint])


def _forget_features(db: Connection, encoder: int) -> bool:
    """Delete some features of an encoder that no model uses; return True where there may be more."""
    if db.value(f"SELECT id FROM encoder WHERE id = ? AND {_UNUSED}", (encoder,)) is None:
        return False
    values = (encoder, encoder, FEATURES_AT_ONCE)
    some = "SELECT content FROM feature WHERE encoder = ? ORDER BY content LIMIT ?"
    if db.run(f"DELETE FROM feature WHERE encoder = ? AND content IN ({some})", values):
        return True
    db.run("DELETE FROM encoder WHERE id = ?", (encoder,))
    return False


def saved_model(retriever: RetrieverProtocol) -> SavedModel:
    """Save a retriever, and return it as rows."""
    with tempfile.TemporaryDirectory(prefix="diptych-model-") as parent:
        folder = Path(parent) / "model"
        retriever.save(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        bodies = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        names = {
            "name": retriever.name,
            "fingerprint": retriever.fingerprint,
            "image_fingerprint": retriever.image_fingerprint,
            "text_fingerprint": retriever.text_fingerprint,
            "kind": kind_of_saved(folder),
            "saved": uuid.uuid4().hex,
        }
    files = tuple((name, body, hashlib.sha256(body).hexdigest()) for name, body in bodies.items())
    return SavedModel(names, files)


def kind_of_saved(folder: Path) -> str:
    """Return the class of a saved retriever's model without loading it, empty where it has none."""
    try:
        document = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        return str(document["model"]["learned"]["model_"]["$model"]["class"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def defensive_copy(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a copy that its owner's later training leaves alone, or the retriever itself where it has no copies."""
    try:
        return copy.deepcopy(retriever)
    # Whatever a retriever holds that cannot be copied, it can still be used: every write checks its fingerprint.
    except Exception:
        return retriever


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


def chosen_name(name: str, taken: Collection[str]) -> str:
    """Return a chosen name of a model, or raise where it is taken or cannot be one."""
    if unique_name(name, ()) != name:
        raise InvalidInputError(
            f"{name!r} cannot name a retriever; use up to {LONGEST_NAME} printable letters without /"
        )
    if name in taken:
        raise CollectionError(f"a retriever is called {name!r} already; choose another name, or remove it first")
    return name


def add_model(db: Connection, saved: SavedModel, name: str, state: State) -> Model:
    """Store a model that is not stored yet."""
    place = int(db.value("SELECT max(place) FROM model") or 0) + 1
    values = {**saved.names, "name": name, "state": state, "place": place}
    marks = ", ".join("?" * len(values))
    db.run(f"INSERT INTO model ({', '.join(values)}) VALUES ({marks})", list(values.values()))
    model = stored_model(db, saved.fingerprint)
    _put_files(db, model, saved)
    note_changes(db, "model")
    return model


def save_again(db: Connection, model: Model, saved: SavedModel) -> Model:
    """Replace the files of a stored model by another saved form that makes the same points."""
    db.run("DELETE FROM model_file WHERE model = ?", (model.id,))
    _put_files(db, model, saved)
    db.run("UPDATE model SET saved = ?, kind = ? WHERE id = ?", (saved.names["saved"], saved.names["kind"], model.id))
    note_changes(db, "model")
    return stored_model(db, model.fingerprint)


def _put_files(db: Connection, model: Model, saved: SavedModel) -> None:
    columns = ("model", "name", "body", "sha256")
    db.load("model_file", columns, ((model.id, *file) for file in saved.files))


def list_pending(db: Connection, model: Model, name: str) -> None:
    """Keep the pending model beside the others, under a name, from now on; its points are being made."""
    db.run("UPDATE model SET state = 'unfinished', name = ? WHERE id = ? AND state = 'pending'", (name, model.id))
    note_changes(db, "model")


def finish(db: Connection, model: Model) -> None:
    """Keep an unfinished or resting model like the others: it has all its points."""
    if db.run("UPDATE model SET state = 'kept' WHERE id = ? AND state IN ('unfinished', 'resting')", (model.id,)):
        note_changes(db, "model")


def activate(db: Connection, model: Model, left: Literal["kept", "resting"] = "kept") -> None:
    """Make a stored model active; the one before stays, first among the others, or rests behind them."""
    place = "min(place) - 1" if left == "kept" else "max(place) + 1"
    place = db.value(f"SELECT {place} FROM model")
    db.run("UPDATE model SET state = ?, place = ? WHERE state = 'active'", (left, place))
    db.run("UPDATE model SET state = 'active' WHERE id = ?", (model.id,))
    note_changes(db, "model")


def rename_model(db: Connection, model: Model) -> None:
    """Give a model a number behind its name where another one has it."""
    name = unique_name(model.name, {one.name for one in models.models(db) if one.id != model.id})
    db.run("UPDATE model SET name = ? WHERE id = ?", (name, model.id))


def remove_model(db: Connection, model: Model) -> None:
    """Forget a model that is not active, and its points."""
    drop_point_tables(db, model.id)
    db.run("DELETE FROM model WHERE id = ?", (model.id,))
    note_changes(db, "model")


def delete_vector_files(store: Store) -> None:
    """Delete the vector files of models that are stored no more."""
    with store.reading() as db:
        numbers = {str(model.id) for model in models.all_models(db)}
    for path in store.derived.glob("points-*"):
        if path.name.split("-")[1] not in numbers:
            shutil.rmtree(path, ignore_errors=True)
