"""The retrievers of a collection: changed, kept beside each other, encoded again, calibrated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

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
from diptych.collection.store.models import LoadedRetrievers, Model, SavedModel, unique_name
from diptych.collection.store.points import count_missing_points, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.errors import ActiveRetrieverError, CollectionError, InvalidInputError

# A change leaves the retriever before, so that going back costs nothing, and a few older ones.
MAX_RESTING = 3
FEATURES_AT_ONCE = 2000

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
        retriever = models.defensive_copy(retriever)
        saved = models.saved_model(retriever)
        name = unique_name(retriever.name, ())
        self._loaded.keep(self._store.write(lambda db: models.add_model(db, saved, name, "active")), retriever)

    def set(
        self, retriever: RetrieverProtocol, progress: Progress | None = None, *, now: bool = True, keep: bool = True
    ) -> ReencodeReport:
        """Change the active retriever; the one before rests beside it where it is to be kept."""
        retriever = models.defensive_copy(retriever)
        saved = models.saved_model(retriever)

        def begin(db: Connection) -> Model:
            active = models.active_model(db)
            if active.fingerprint == saved.fingerprint:
                # The same points; what may differ is the calibration.
                return models.save_again(db, active, saved)
            for replaced in models.set_next(db, saved, keeps_old=keep):
                models.remove_model(db, replaced)
            return _stored(db, saved.fingerprint)

        model = self._store.write(begin)
        self._loaded.keep(model, retriever)
        self.tidy()
        return self._reencode(model, progress) if now and model.is_next else ReencodeReport()

    def reencode(self, progress: Progress | None = None) -> ReencodeReport:
        """Finish a change of the active retriever that was begun."""
        with self._store.reading() as db:
            model = models.next_model(db)
        return ReencodeReport() if model is None else self._reencode(model, progress)

    def add(
        self, retriever: RetrieverProtocol, name: str | None = None, progress: Progress | None = None
    ) -> ReencodeReport:
        """Keep the points of one more retriever."""
        retriever = models.defensive_copy(retriever)
        saved = models.saved_model(retriever)
        model = self._store.write(lambda db: _added(db, saved, name))
        self._loaded.keep(model, retriever)
        return self._made(model, progress, lambda db: models.finish(db, model))

    def activate(self, name: str, record: LearningRecord | None = None) -> None:
        """Let searches use a stored retriever from now on; the history gets the record, by default that of a choice."""
        with self._store.reading() as db:
            chosen = models.model_named(db, name)
        if chosen.state == "unfinished":
            raise CollectionError(
                f"the points of the retriever {name!r} are unfinished; add it again to finish them, then activate"
            )

        def change(db: Connection) -> None:
            before, model = models.active_model(db), _stored(db, chosen.fingerprint)
            if model.id != before.id:
                models.activate(db, model)
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
            models.remove_model(db, model)

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
        saved = models.saved_model(calibrated)
        again = self._store.write(lambda db: models.save_again(db, _stored(db, model.fingerprint), saved))
        self._loaded.keep(again, calibrated)
        models.delete_derived(self._store)

    def fill(self) -> None:
        """Make the points that stored retrievers lack."""
        with self._store.reading() as db:
            followed = models.followed_models(db)
        for model in followed:
            self._made(model, None, partial(models.finish, model=model))

    def tidy(self) -> None:
        """Delete the features and the files that no stored retriever uses, a few rows at a time."""
        models.delete_derived(self._store)
        with self._store.reading() as db:
            unused = db.ids(f"SELECT id FROM encoder WHERE {_UNUSED}").tolist()
        for encoder in unused:
            while self._store.write(partial(_forget_features, encoder=encoder), freeing=True):
                pass

    def _reencode(self, model: Model, progress: Progress | None) -> ReencodeReport:
        def change(db: Connection) -> None:
            pending = models.next_model(db)
            if pending is None or pending.id != model.id:
                if models.active_model(db).id == model.id:
                    # Another process has done the same.
                    return
                raise CollectionError("another change of the retriever was begun meanwhile; this one was given up")
            before, new = models.switch(db)
            _note(db, before, new, "switch")
            if before.state == "pending":
                models.remove_model(db, before)

        report = self._made(model, progress, change)
        self.tidy()
        return report

    def _made(self, model: Model, progress: Progress | None, change: Callable[[Connection], None]) -> ReencodeReport:
        """Make the points that a model lacks, and change its state in the transaction that finds them complete."""
        work = Reencoding(self._store, self._root(), (model, self._loaded.of(model)), self._scheduler)

        def end(db: Connection) -> bool:
            _stored(db, model.fingerprint)
            is_complete = not any(work.missing(db).values())
            if is_complete:
                change(db)
            return is_complete

        while True:
            report = work.run(progress)
            # Others may have added items since.
            if self._store.write(end):
                return report


def _stored(db: Connection, fingerprint: str) -> Model:
    model = models.model_with(db, fingerprint)
    if model is None:
        raise CollectionError("the retriever was removed by another process; add it again")
    return model


def _added(db: Connection, saved: SavedModel, name: str | None) -> Model:
    """Store one more model, or the new form of a stored one."""
    known = models.model_with(db, saved.fingerprint)
    if known is not None and known.state != "pending":
        if name not in (None, known.name):
            raise CollectionError(
                f"this retriever is stored already, as {known.name!r}; use that name, or remove it first"
            )
        return models.save_again(db, known, saved)
    taken = {model.name for model in models.models(db)}
    chosen = unique_name(saved.names["name"], taken) if name is None else models.chosen_name(name, taken)
    if known is None:
        return models.add_model(db, saved, chosen, "unfinished")
    models.list_pending(db, known, chosen)
    return models.save_again(db, known, saved)


def _note(db: Connection, before: Model, after: Model, origin: Origin, record: LearningRecord | None = None) -> None:
    """Write down that another model is active, and remove earlier ones that nothing leads back to."""
    remember(db, record or LearningRecord(utc_now(), "changed", **from_to(before, after), origin=origin))
    stored = {model.fingerprint: model for model in models.models(db)}
    for fingerprint in replaceable(records(db), after.fingerprint, MAX_RESTING):
        if fingerprint in stored:
            models.remove_model(db, stored[fingerprint])


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
