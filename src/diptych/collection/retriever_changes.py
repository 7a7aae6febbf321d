"""The retrievers of a collection: changed, kept beside each other, calibrated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from diptych.collection import opening
from diptych.collection.add_progress import AddProgress
from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import SIDES, PointSource
from diptych.collection.encoding import Encoding
from diptych.collection.free_name import LONGEST_NAME, free_name
from diptych.collection.layout import Layout
from diptych.collection.live_state import LiveState
from diptych.collection.maintenance import Maintenance
from diptych.collection.own_retriever import own_copy
from diptych.collection.reencode_report import ReencodeReport
from diptych.collection.reencoding import Reencoding
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.stored_retriever import StoredRetriever
from diptych.collection.tables import features_table, points_table
from diptych.errors import InvalidInputError

Progress = Callable[[AddProgress], None]


class RetrieverChanges:
    """Gives a collection other retrievers.

    Each change of what is valid replaces ``collection.json`` in one step. A retriever is named there before its points
    are made, so that an interrupted run is known and goes on where it stopped, and its saved folder and tables are
    deleted after it is no longer named.
    """

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def stored(self) -> list[StoredRetriever]:
        """Return the retrievers, the active one first."""
        return self._state.settled(self._stored)

    def _stored(self) -> list[StoredRetriever]:
        layout = self._state.layout
        maintenance = Maintenance(self._state.store, layout, self._state.catalogue())
        return [
            StoredRetriever(
                name=names.name,
                fingerprint=names.fingerprint,
                active=names is layout.retriever,
                ready=names.fingerprint not in layout.unfinished,
                missing=sum(maintenance.lacking(names, side) for side in SIDES),
                kind=opening.kind_of_saved(layout.saved_retriever(names)),
            )
            for names in layout.stored
        ]

    def set(
        self, retriever: PointSource, progress: Progress | None, *, now: bool = True, keep: bool = False
    ) -> ReencodeReport:
        """Change the active retriever."""
        retriever = own_copy(retriever)
        with self._state.writing():
            layout = self._state.layout
            if retriever.fingerprint == layout.retriever.fingerprint:
                # The same points; what may differ is the calibration.
                self._save_again(retriever, layout.retriever)
                return ReencodeReport()
            if layout.pending is None or layout.pending.fingerprint != retriever.fingerprint:
                leaving = () if keep else (layout.retriever,)
                names = self._named(retriever, None, leaving)
                opening.save_retriever(retriever, layout, names)
                layout = layout.with_pending(names)
            self._write(replace(layout, keep_old=keep), None)
            return self._reencode(retriever, progress) if now else ReencodeReport()

    def reencode(self, progress: Progress | None) -> ReencodeReport:
        """Finish a change of the active retriever that was begun."""
        with self._state.writing():
            pending = self._state.layout.pending
            return ReencodeReport() if pending is None else self._reencode(self._state.load(pending), progress)

    def add(self, retriever: PointSource, name: str | None, progress: Progress | None) -> ReencodeReport:
        """Keep the points of one more retriever."""
        retriever = own_copy(retriever)
        with self._state.writing():
            known = self._state.layout.with_fingerprint(retriever.fingerprint)
            if known is None:
                names = self._named(retriever, name)
                opening.save_retriever(retriever, self._state.layout, names)
                self._write(self._state.layout.with_further(names), retriever)
            else:
                if name not in (None, known.name):
                    raise CollectionError(
                        f"this retriever is stored already, as {known.name!r}; use that name, or remove it first"
                    )
                names = self._save_again(retriever, known)
            report = self._run(retriever, names, progress)
            self._write(self._state.layout.finished(names), None)
            return report

    def activate(self, name: str) -> None:
        """Let searches use a stored retriever from now on."""
        with self._state.writing():
            layout = self._state.layout
            chosen = layout.named(name)
            if chosen.fingerprint in layout.unfinished:
                raise CollectionError(
                    f"the points of the retriever {name!r} are unfinished; add it again to finish them, then activate"
                )
            if chosen is not layout.retriever:
                self._write(layout.activated(chosen), None)

    def remove(self, name: str) -> None:
        """Forget a retriever and its points."""
        with self._state.writing():
            layout = self._state.layout
            removed = layout.named(name)
            if removed is layout.retriever:
                raise CollectionError(f"the retriever {name!r} is the active one; activate another one first")
            layout = layout.without(removed)
            self._write(layout, None)
            used = {table(names, side) for names in layout.in_force for side in SIDES for table in _TABLES}
            for table in (make(removed, side) for side in SIDES for make in _TABLES):
                if table not in used:
                    self._state.store.drop(table)
            opening.delete_saved(layout)

    def calibrate(self, judgements: Iterable[tuple[str, str, bool]]) -> None:
        """Fit the probabilities of text→image searches to judgements: (words, id of the item, whether it is good)."""
        from diptych.retriever import Calibration, Retriever

        with self._state.writing():
            searching = self._state.searching()
            retriever = searching.retriever
            if not isinstance(retriever, Retriever):
                raise InvalidInputError(f"a {type(retriever).__name__} has no calibration to fit")
            scores, relevance = [], []
            for words, item_id, is_good in judgements:
                point = searching.galleries["image"].vector(item_id)
                if point is not None:
                    asked = retriever.encode_texts([words])
                    scores.append(float(retriever.space.compare(asked, point, "text_query")[0, 0]))
                    relevance.append(float(is_good))
            fitted = Calibration(prior=None).fit({"text_to_image": (scores, relevance)})
            # Searches that are under way keep the retriever they began with.
            calibrated, calibration = copy.copy(retriever), copy.deepcopy(retriever.calibration_)
            # The first line is that of text→image.
            calibration.intercepts_ = np.append(fitted.intercepts_[:1], calibration.intercepts_[1:])
            calibration.slopes_ = np.append(fitted.slopes_[:1], calibration.slopes_[1:])
            calibrated.calibration_ = calibration
            self._save_again(calibrated, self._state.layout.retriever)

    def fill(self) -> None:
        """Make the points that stored retrievers lack; the caller is the only writer."""
        for names in self._state.layout.stored:
            self._run(self._state.retriever(names.name), names, None)
            self._write(self._state.layout.finished(names), None)

    def _reencode(self, retriever: PointSource, progress: Progress | None) -> ReencodeReport:
        names = self._state.layout.pending
        if names is None:
            return ReencodeReport()
        report = self._run(retriever, names, progress)
        self._write(self._state.layout.switched(), retriever)
        return report

    def _run(self, retriever: PointSource, names: RetrieverNames, progress: Progress | None) -> ReencodeReport:
        encoding = Encoding(self._state.store, retriever, names)
        return Reencoding(self._state.catalogue(), self._state.root, encoding).run(progress)

    def _save_again(self, retriever: PointSource, known: RetrieverNames) -> RetrieverNames:
        """Take a retriever that makes the same points; a change to another one that was begun stays begun."""
        layout = self._state.layout
        names = replace(opening.names_of(retriever), name=known.name)
        opening.save_retriever(retriever, layout, names)
        self._write(layout.saved_again(names), retriever)
        opening.delete_saved(self._state.layout)
        return names

    def _write(self, layout: Layout, retriever: PointSource | None) -> None:
        if layout != self._state.layout:
            layout.write()
            self._state.use(layout, retriever)

    def _named(
        self, retriever: PointSource, name: str | None, leaving: Sequence[RetrieverNames] = ()
    ) -> RetrieverNames:
        """Return the names of a retriever, with one that no other has except those that are leaving."""
        layout, names = self._state.layout, opening.names_of(retriever)
        known = layout.with_fingerprint(names.fingerprint)
        if known is not None:
            return replace(names, name=known.name)
        taken = {other.name for other in layout.stored if other not in leaving}
        if name is None:
            return replace(names, name=free_name(names.name, taken))
        if free_name(name, ()) != name:
            raise InvalidInputError(
                f"{name!r} cannot name a retriever; use up to {LONGEST_NAME} printable letters without /"
            )
        if name in taken:
            raise CollectionError(f"a retriever is called {name!r} already; choose another name, or remove it first")
        return replace(names, name=name)


_TABLES = (features_table, points_table)
