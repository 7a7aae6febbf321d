"""The retrievers of a collection: changed, kept beside each other, re-encoded, calibrated."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from diptych.cluster import open_workers
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.changes.add_report import AddProgress, Progress
from diptych.collection.changes.encoding import Encoding, EncodingTask, StatedFile, encoded
from diptych.collection.changes.file_facts import content_hash, file_status
from diptych.collection.changes.retriever_history import (
    LearningRecord,
    Origin,
    RetrieverHistory,
    from_to,
    replaceable,
    utc_now,
)
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage import saved_retrievers
from diptych.collection.storage.layout import LONGEST_NAME, Layout, RetrieverNames, Root, unique_name
from diptych.collection.storage.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import StoredRetriever, defensive_copy
from diptych.collection.storage.store import points_table, tables_of
from diptych.errors import ActiveRetrieverError, CollectionError, InvalidInputError


@dataclass(frozen=True)
class ReencodeReport:
    """How many pictures and captions got points of the new retriever.

    ``read_again`` counts the pictures that had to be read for another image encoder, ``failures`` gives the reason for
    each path that could not be and each caption that the encoder refused: those items stay, without being found by it.
    """

    pictures: int = 0
    captions: int = 0
    read_again: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


_BATCH = 1024
# Reading pictures takes long: each task is a commit, from which an interrupted run goes on.
_PICTURES_AT_ONCE = 256


class Reencoding:
    """Gives every picture and caption a point of a new retriever, from stored features where its encoders made them.

    Points are made of these here, where the features are; pictures and captions without any are encoded by workers.
    """

    def __init__(self, items: LiveItems, root: Root, encoding: Encoding, scheduler: str | None = None) -> None:
        self._items = items
        self._contents = {side: items.contents(side) for side in SIDES}
        self._root = root
        self._encoding = encoding
        self._scheduler = scheduler
        self._failures: dict[Side, dict[str, str]] = {side: {} for side in SIDES}

    def run(self, progress: Progress | None = None) -> ReencodeReport:
        """Make all missing points."""
        started = time.perf_counter()
        missing = {side: self._encoding.missing(side, list(self._contents[side])) for side in SIDES}
        done, total = 0, sum(map(len, missing.values()))

        def count(number: int) -> None:
            nonlocal done
            done += number
            if progress is not None and number:
                progress(AddProgress(done, total))

        if total:
            with open_workers(self._scheduler) as workers:
                for task, made in encoded(workers, self._tasks(missing, count), [self._encoding.source]):
                    self._fail("image", self._encoding.pictures(task.files, made))
                    self._fail("text", self._encoding.texts(task.texts, made))
                    count(len(task.files) + len(task.texts))
        return ReencodeReport(
            pictures=len(missing["image"]) - len(self._failures["image"]),
            captions=len(missing["text"]) - len(self._failures["text"]),
            read_again=self._encoding.read_again,
            failures=self._failures["text"] | self._failures["image"],
            seconds=time.perf_counter() - started,
        )

    def _tasks(
        self, missing: Mapping[Side, Sequence[str]], count: Callable[[int], None]
    ) -> Iterator[tuple[EncodingTask, EncodingTask]]:
        """Make the points of stored features, and yield what is left to encode."""
        for side in SIDES:
            size = _PICTURES_AT_ONCE if side == "image" else _BATCH
            table = points_table(self._encoding.source[0], side)
            for contents in _parts(missing[side], _BATCH):
                left = self._encoding.from_features(side, contents)
                files = self._files(left) if side == "image" else {}
                texts = {content: self._contents["text"][content] for content in left} if side == "text" else {}
                count(len(contents) - len(files) - len(texts))
                for keys in _parts([*files, *texts], size):
                    task = EncodingTask.of(files, texts, {table: keys})
                    yield task, task

    def _files(self, contents: Sequence[str]) -> dict[str, StatedFile]:
        files = {}
        for content in contents:
            try:
                files[content] = self._file_with(content)
            except InvalidInputError as reason:
                self._fail("image", {content: str(reason)})
        return files

    def _fail(self, side: Side, reasons: Mapping[str, str]) -> None:
        self._failures[side] |= {self._contents[side][content]: reason for content, reason in reasons.items()}

    def _file_with(self, content: str) -> StatedFile:
        """Return a file that still holds this content, with its status from before it was looked at."""
        problem = InvalidInputError("it is stored without a file")
        for item in self._items.find("content", content):
            if item.path is None:
                continue
            self._root.check_trusted()
            path = self._root.file(item.path)
            try:
                status = file_status(path)
                same_status = (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns)
                if same_status or content_hash(path) == item.content_hash:
                    return path, status
                problem = InvalidInputError("it has changed since it was added; refresh the collection")
            except InvalidInputError as reason:
                problem = reason
        raise problem


def _parts(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[start : start + size] for start in range(0, len(values), size))


# A change leaves the retriever before, so that going back costs nothing, and a few older ones.
_MAX_RESTING = 3


class RetrieverChanges:
    """Gives a collection other retrievers; each change replaces ``collection.json`` in one step.

    A retriever is named there before its points are made, so that an interrupted run goes on where it stopped, and its
    saved folder and tables are deleted after it is no longer named. The history says which one was in force when.
    """

    def __init__(self, state: LiveState, scheduler: str | None = None) -> None:
        self._state = state
        self._scheduler = scheduler

    def stored(self) -> list[StoredRetriever]:
        """Return the retrievers, the active one first."""
        return self._state.retry_if_changed(lambda: [self._described(names) for names in self._state.layout.stored])

    def _described(self, names: RetrieverNames) -> StoredRetriever:
        layout = self._state.layout
        return StoredRetriever(
            name=names.name,
            fingerprint=names.fingerprint,
            active=names is layout.retriever,
            ready=names.fingerprint not in layout.unfinished,
            missing=sum(self._state.lacking(names, side) for side in SIDES),
            kind=saved_retrievers.kind_of_saved(layout.saved_retriever(names)),
        )

    def set(
        self, retriever: RetrieverProtocol, progress: Progress | None, *, now: bool = True, keep: bool = True
    ) -> ReencodeReport:
        """Change the active retriever."""
        retriever = defensive_copy(retriever)
        with self._state.writing():
            layout = self._state.layout
            if retriever.fingerprint == layout.retriever.fingerprint:
                # The same points; what may differ is the calibration.
                self._save_again(retriever, layout.retriever)
                return ReencodeReport()
            if layout.pending is None or layout.pending.fingerprint != retriever.fingerprint:
                names = self._named(retriever, None, () if keep else (layout.retriever,))
                saved_retrievers.save_retriever(retriever, layout, names)
                layout = replace(layout, pending=names)
            self._write(replace(layout, keep_old=keep), None)
            return self._reencode(retriever, progress) if now else ReencodeReport()

    def reencode(self, progress: Progress | None) -> ReencodeReport:
        """Finish a change of the active retriever that was begun."""
        with self._state.writing():
            pending = self._state.layout.pending
            return ReencodeReport() if pending is None else self._reencode(self._state.load(pending), progress)

    def add(self, retriever: RetrieverProtocol, name: str | None, progress: Progress | None) -> ReencodeReport:
        """Keep the points of one more retriever."""
        retriever = defensive_copy(retriever)
        with self._state.writing():
            known = self._state.layout.with_fingerprint(retriever.fingerprint)
            if known is None:
                names = self._named(retriever, name)
                saved_retrievers.save_retriever(retriever, self._state.layout, names)
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

    def activate(self, name: str, record: LearningRecord | None = None) -> None:
        """Let searches use a stored retriever from now on; the history gets the record, by default that of a choice."""
        with self._state.writing():
            layout = self._state.layout
            chosen = layout.named(name)
            if chosen.fingerprint in layout.unfinished:
                raise CollectionError(
                    f"the points of the retriever {name!r} are unfinished; add it again to finish them, then activate"
                )
            if chosen is not layout.retriever:
                if chosen.fingerprint in layout.resting:
                    self._run(self._state.retriever(name), chosen, None)
                    layout = layout.finished(chosen)
                self._put_into_force(layout.activated(chosen), None, "choice", record)

    def remove(self, name: str) -> None:
        """Forget a retriever and its points."""
        with self._state.writing(freeing=True):
            layout = self._state.layout
            removed = layout.named(name)
            if removed is layout.retriever:
                raise ActiveRetrieverError(f"the retriever {name!r} is the active one; activate another one first")
            self._remove(removed)

    def calibrate(self, judgements: Iterable[tuple[str, str, bool]]) -> None:
        """Fit the probabilities of text→image searches to judgements: (words, id of the item, whether it is good)."""
        from diptych.retriever import Calibration, Retriever

        with self._state.writing():
            snapshot = self._state.snapshot()
            retriever = snapshot.retriever
            if not isinstance(retriever, Retriever):
                raise InvalidInputError(f"a {type(retriever).__name__} has no calibration to fit")
            scores, relevance = [], []
            for words, item_id, is_good in judgements:
                gallery = snapshot.galleries["image"]
                rows = gallery.rows_of(item_id)
                if rows:
                    point = gallery.vectors(np.array(rows))
                    query = retriever.texts_to_points(retriever.query_features([words]))
                    scores.append(float(retriever.space.compare(query, point, "text_query")[0, 0]))
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
        for names in self._state.layout.followed:
            self._run(self._state.retriever(names.name), names, None)
            self._write(self._state.layout.finished(names), None)

    def _reencode(self, retriever: RetrieverProtocol, progress: Progress | None) -> ReencodeReport:
        names = self._state.layout.pending
        if names is None:
            return ReencodeReport()
        report = self._run(retriever, names, progress)
        self._put_into_force(self._state.layout.switched(), retriever, "switch")
        return report

    def _put_into_force(
        self,
        layout: Layout,
        retriever: RetrieverProtocol | None,
        origin: Origin,
        record: LearningRecord | None = None,
    ) -> None:
        """Change the retriever in force, write that down, and delete earlier ones that nothing leads back to."""
        named = from_to(self._state.layout.retriever, layout.retriever)
        done = LearningRecord(utc_now(), "changed", **named, origin=origin) if record is None else record
        history = RetrieverHistory(layout.folder)
        with history.change(done):
            self._write(layout, retriever)
        in_force = layout.retriever.fingerprint
        for fingerprint in replaceable(history.records(in_force), in_force, _MAX_RESTING):
            earlier = self._state.layout.with_fingerprint(fingerprint)
            if earlier is not None:
                self._remove(earlier)

    def _remove(self, names: RetrieverNames) -> None:
        layout = self._state.layout.without(names)
        self._write(layout, None)
        for table in tables_of([names]).keys() - tables_of(layout.in_force).keys():
            self._state.store.drop(table)
        self._state.delete_saved()

    def _run(self, retriever: RetrieverProtocol, names: RetrieverNames, progress: Progress | None) -> ReencodeReport:
        encoding = Encoding(self._state.store, retriever, names)
        report = Reencoding(self._state.items(), self._state.root, encoding, self._scheduler).run(progress)
        if report.pictures or report.captions:
            self._state.forget_points(names)
        return report

    def _save_again(self, retriever: RetrieverProtocol, known: RetrieverNames) -> RetrieverNames:
        """Take a retriever that makes the same points; a change to another one that was begun stays begun."""
        layout = self._state.layout
        names = replace(saved_retrievers.names_of(retriever), name=known.name)
        saved_retrievers.save_retriever(retriever, layout, names)
        self._write(layout.saved_again(names), retriever)
        self._state.delete_saved()
        return names

    def _write(self, layout: Layout, retriever: RetrieverProtocol | None) -> None:
        if layout != self._state.layout:
            self._state.write_layout(layout, retriever)

    def _named(
        self, retriever: RetrieverProtocol, name: str | None, leaving: Sequence[RetrieverNames] = ()
    ) -> RetrieverNames:
        """Return the names of a retriever, with one that no other has except those that are leaving."""
        layout, names = self._state.layout, saved_retrievers.names_of(retriever)
        known = layout.with_fingerprint(names.fingerprint)
        if known is not None:
            return replace(names, name=known.name)
        taken = {other.name for other in layout.stored if other not in leaving}
        if name is None:
            return replace(names, name=unique_name(names.name, taken))
        if unique_name(name, ()) != name:
            raise InvalidInputError(
                f"{name!r} cannot name a retriever; use up to {LONGEST_NAME} printable letters without /"
            )
        if name in taken:
            raise CollectionError(f"a retriever is called {name!r} already; choose another name, or remove it first")
        return replace(names, name=name)
