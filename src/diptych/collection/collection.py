"""Stored pictures and texts that can be searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diptych.atomic_files import Durability, checked_durability
from diptych.collection.changes.retriever_history import LearningRecord, RetrieverHistory, in_force_at
from diptych.collection.reading import CollectionReader
from diptych.collection.search.live_state import LiveState, LoadRetriever
from diptych.collection.search.past_state import PastState
from diptych.collection.storage import saved_retrievers
from diptych.collection.storage.change_journal import AsOf, ChangeJournal, Version
from diptych.collection.storage.item import Item, Record, iso_time
from diptych.collection.storage.layout import Layout, stored_root
from diptych.collection.storage.retriever_protocol import RetrieverProtocol
from diptych.collection.storage.saved_retrievers import StoredRetriever, defensive_copy
from diptych.collection.trusted_root import check_root, refused_root
from diptych.data.folders import reject_storage_address
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    # Who only searches does not wait for what changes a collection.
    from diptych.collection.changes.add_report import AddReport, Progress
    from diptych.collection.changes.content_reading import ReadingReport, TextReport
    from diptych.collection.changes.file_facts import FactsChoice
    from diptych.collection.changes.item_changes import ItemChanges, Which
    from diptych.collection.changes.maintenance import CheckReport
    from diptych.collection.changes.retriever_changes import ReencodeReport, RetrieverChanges


class Collection(CollectionReader):
    """A folder that remembers pictures, captions, labels and metadata, and finds them by meaning.

    The store is durable: what :meth:`add` has acknowledged survives a killed process. Points are kept with the
    fingerprint of the retriever that made them and are never mixed with those of another. Several processes may search
    while one writes, and see its changes at their next search.

    Up to 100,000 points a search compares all of them; beyond that it uses an index tuned to a recall of at least 0.95
    among the ten nearest, unless ``exact=True``. Binary codes of a hashing method are always compared whole.

    >>> import tempfile
    >>> from diptych import Retriever
    >>> from diptych.collection import Collection, Record
    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA
    >>> pairs = load_dataset("scenes", n_train=120, n_test=20, size=32).train
    >>> parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> retriever = Retriever(model=CCA(n_components=8), cache=False, **parts).fit(pairs, baseline=None)
    >>> with tempfile.TemporaryDirectory() as folder, Collection.create(f"{folder}/c", retriever) as collection:
    ...     report = collection.add([Record(captions=["a red ball"]), Record(captions=["a green house"])])
    ...     answers = collection.search("a ball", k=1, target="texts")
    ...     report.added, answers[0].caption
    (2, 'a red ball')
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        load_retriever: LoadRetriever | None = None,
        write_wait: float = 0.0,
        scheduler: str | None = None,
        as_of: AsOf | None = None,
        durability: Durability | None = None,
        root: str | os.PathLike[str] | None = None,
    ) -> None:
        reject_storage_address(folder)
        named = None if root is None else Path(os.path.abspath(root))
        place, load = Path(folder), load_retriever or saved_retrievers.load_retriever
        self._as_of: Version | None = None
        if as_of is None:
            super().__init__(LiveState(place, load, write_wait, durability, named))
            if named is not None:
                self._state.keep_root()
        else:
            moment, self._as_of = ChangeJournal(place).moment(as_of)
            super().__init__(PastState(place, load, moment, _retriever_at(place, moment), named))
        self._scheduler = scheduler

    @cached_property
    def _changes(self) -> ItemChanges:
        from diptych.collection.changes.item_changes import ItemChanges

        return ItemChanges(self._state, self._scheduler)

    @cached_property
    def _retrievers(self) -> RetrieverChanges:
        from diptych.collection.changes.retriever_changes import RetrieverChanges

        return RetrieverChanges(self._state, self._scheduler)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        retriever: RetrieverProtocol | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        load_retriever: LoadRetriever | None = None,
        write_wait: float = 0.0,
        scheduler: str | None = None,
        durability: Durability | None = None,
    ) -> Self:
        """Make an empty collection; without a retriever it gets the default one.

        Paths are stored relative to ``root``, by default the folder around the collection, and only files below it are
        handed out. The whole file system, hidden folders of the home and the collection itself are refused.
        """
        reject_storage_address(folder)
        checked_durability(durability)
        chosen = defensive_copy(saved_retrievers.default_retriever() if retriever is None else retriever)
        place = Path(folder)
        named = Path(os.path.abspath(place.parent if root is None else root))
        if root is not None:
            check_root(place, root)
        saved_retrievers.make_collection(chosen, place, stored_root(named, place))
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        options["root"] = None if refused_root(place, named) else named
        collection = cls(folder, durability=durability, **options)
        collection._state.use(collection._state.layout, chosen)
        return collection

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        load_retriever: LoadRetriever | None = None,
        write_wait: float = 0.0,
        scheduler: str | None = None,
        as_of: AsOf | None = None,
        durability: Durability | None = None,
        root: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open a collection, as it is or as it was.

        A collection that was copied, moved or restored, or was made by another user, is searched without its files
        until ``root`` names the folder of its pictures, once.

        ``load_retriever`` reads retrievers of another kind than :class:`diptych.Retriever`. A change that finds another
        writer at work waits for it up to ``write_wait`` seconds before it raises. ``scheduler`` is the address of a
        Dask scheduler, such as tcp://host:8786, whose workers read and encode what is added, with the same result.

        ``as_of`` is a version of :meth:`history`, a day (its end) or a time in UTC, as text or as datetime: the items
        are those of then, searched with the retriever of then where it is still stored, exactly and without an index.
        Nothing can be changed in it. The items of then are put together when it is opened, in a temporary folder.

        ``durability="power"`` brings every change to the disk before it is acknowledged; with ``"process"`` it survives
        the end of the process, and after a power cut the collection may have to be restored or made again. Without it
        ``DIPTYCH_DURABILITY`` says which, and where that says nothing it is ``"power"``.
        """
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        return cls(folder, as_of=as_of, durability=durability, root=root, **options)

    @classmethod
    def open_or_create(
        cls,
        folder: str | os.PathLike[str],
        retriever: RetrieverProtocol | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        load_retriever: LoadRetriever | None = None,
        write_wait: float = 0.0,
        scheduler: str | None = None,
        durability: Durability | None = None,
    ) -> Self:
        """Open a collection, or make it; an existing one keeps its own retriever, and ``root`` names its pictures."""
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        if (Path(folder) / "collection.json").exists():
            return cls.open(folder, durability=durability, root=root, **options)
        return cls.create(folder, retriever, root=root, durability=durability, **options)

    def add(self, sources: Any, *, progress: Progress | None = None) -> AddReport:
        """Add pictures, folders of pictures, records and captioned pictures; return what became of each.

        Files whose size and time are as stored are not opened, renamed files are recognised, and what cannot be used is
        skipped with a reason. ``progress`` is told after each batch, when it is durable. Others who wait to write
        are let in between two batches.
        """
        return self._changes.add(sources, progress)

    def load(self, batches: Any, *, progress: Callable[[int], None] | None = None) -> int:
        """Add items whose points were made elsewhere, from Arrow tables or record batches; return how many.

        Columns: ``id``; ``caption`` with its ``text_point``; ``path`` and ``content_hash`` (the SHA-256 of the file) of
        a picture with its ``image_point``; ``labels``, lists of strings; ``metadata``, a struct or the text of a JSON
        object. An item has a caption, a picture or both, and null in the other columns. Points are those of the active
        retriever, paths are relative to the root or absolute, and no file is opened. An item that cannot be used ends
        it with an error that names the first one; the batches before are stored. ``progress`` is told after each commit
        how many items are durable.
        """
        from diptych.collection.changes.loading import Loading

        with self._state.writing():
            return Loading(self._state).load(batches, progress)

    def refresh(self, folder: str | os.PathLike[str] | None = None, *, progress: Progress | None = None) -> AddReport:
        """Add what is new or changed in a folder (by default the root), and remove items whose files are gone."""
        self._state.root.check_trusted()
        base = self.root if folder is None else self._state.root.given(folder)
        if not base.is_dir():
            raise InvalidInputError(f"{base} is no folder that can be read now; nothing was removed")
        return self._changes.add(base, progress, missing_in=base)

    def remove_missing(self, folder: str | os.PathLike[str] | None = None) -> list[str]:
        """Remove the items whose files are gone, all of them or those of a folder; return their paths."""
        with self._state.writing(freeing=True):
            return self._changes.remove_missing(None if folder is None else self._state.root.given(folder))

    def update(
        self,
        which: str | os.PathLike[str],
        *,
        captions: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Item:
        """Replace captions, labels or metadata of an item; what is None stays."""
        (item,) = self.update_all({which: {"captions": captions, "labels": labels, "metadata": metadata}})
        return item

    def update_all(self, changes: Mapping[str | os.PathLike[str], Mapping[str, Any]]) -> list[Item]:
        """Change several items in one commit, which takes little longer than one; all of them, or none and an error.

        By id or path, ``captions``, ``labels`` and ``metadata`` as :meth:`update` takes them.
        """
        with self._state.writing():
            found = {item.id: (item, said) for item, said in ((self[which], said) for which, said in changes.items())}
            self._changes.change([(item, self._said(item, **said)) for item, said in found.values()])
        return [self[which] for which in changes]

    @staticmethod
    def _said(
        item: Item,
        captions: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Record:
        if item.path is None and captions is not None and not captions:
            raise InvalidInputError(f"item {item.id} has no picture, so it needs a caption; remove it instead")
        return Record(item.path, captions or item.captions if item.path is None else captions, labels, metadata)

    def at(self, as_of: AsOf) -> Self:
        """Open this collection as it was, as :meth:`open` does; retrievers that are loaded serve both."""
        root = self.root if self.is_root_trusted else None
        return type(self)(self.folder, load_retriever=self._state.loaded, as_of=as_of, root=root)

    @property
    def as_of(self) -> Version | None:
        """The version that held at the moment that was asked for; None where the collection is as it is now."""
        return self._as_of

    def history(self) -> list[Version]:
        """Return the versions of the items that can be asked for, oldest first; :meth:`open` takes their numbers."""
        self._state.check_layout()
        return self._state.journal().versions()

    def version_at(self, as_of: AsOf) -> Version:
        """Return the version that held at a moment; the error for an earlier one than is kept names the earliest."""
        return self._state.journal().moment(as_of)[1]

    @property
    def history_days(self) -> float:
        """For how many days items that were changed or removed are kept as they were."""
        self._state.check_layout()
        return self._state.layout.history_days

    def keep_history(self, days: float) -> None:
        """Choose for how many days items that were changed or removed are kept as they were, 30 by default.

        What is older goes at once. 0 keeps nothing.
        """
        if not 0 <= days <= 36_500:
            raise InvalidInputError(f"days must be between 0 and 36,500, got {days}")
        with self._state.writing():
            self._state.write_layout(replace(self._state.layout, history_days=float(days)), None)
            journal = ChangeJournal(self._state.layout.folder)
            journal.forget(self._state.store, self._state.next_ns(), days, days)

    def keep_facts(self, choice: FactsChoice) -> int:
        """Choose what is kept of what photographs say of themselves, and return how many items lost something by it.

        ``"all"``, ``"no-places"`` for everything but where they were taken, or ``"none"``. What is stored of the rest
        goes at once; what comes back is read by the next :meth:`add` or :meth:`refresh`.
        """
        with self._state.writing():
            return self._changes.keep_facts(choice)

    def remove(self, which: Which) -> list[str]:
        """Remove items by id, path or filter; return the ids. The files stay where they are."""
        with self._state.writing(freeing=True):
            items = self._changes.named(which)
            self._changes.remove(items)
        return [item.id for item in items]

    def read_text(self, *, progress: Progress | None = None) -> TextReport:
        """Read the text in the pictures, so that searches find it; needs the extra ``ocr``.

        It takes about a second of one core for each picture, at the lowest priority, and others may write meanwhile.
        After an interruption it goes on where it was; each picture is read once, whatever becomes of its name.
        ``progress`` is told after each picture.
        """
        from diptych.collection.changes.content_reading import TextReading

        return TextReading(self._state).run(progress)

    def add_regions(self, retriever: str | None = None, *, progress: Progress | None = None) -> ReadingReport:
        """Give parts of the pictures points of their own, so that searches find small things and say where they are.

        Thirteen overlapping regions of each picture are encoded: it takes thirteen times as long as adding the
        pictures, at the lowest priority, and thirteen times the room of their points. Others may write meanwhile. They
        are those of one stored ``retriever``, by default the active one, and are searched when all are done or after an
        interruption, from which the next call goes on. Pictures that are added later get theirs by another call.
        """
        from diptych.collection.changes.content_reading import RegionReading

        return RegionReading(self._state, retriever).run(progress)

    def remove_regions(self, retriever: str | None = None) -> None:
        """Delete the regions of a stored retriever, by default the active one."""
        from diptych.collection.changes.content_reading import remove_regions

        with self._state.writing():
            remove_regions(self._state, retriever)

    def retrievers(self) -> list[StoredRetriever]:
        """Return the stored retrievers, the active one first."""
        return self._retrievers.stored()

    def add_retriever(
        self, retriever: RetrieverProtocol, *, name: str | None = None, progress: Progress | None = None
    ) -> ReencodeReport:
        """Keep the points of another retriever beside the active one's, for searches that name it.

        Later items get points of every stored retriever. ``name`` must be free; by default it is that of the retriever,
        with a number where it is taken. One that is stored already gets its new calibration and the points it lacks.
        """
        return self._retrievers.add(retriever, name, progress)

    def activate_retriever(self, name: str, *, record: LearningRecord | None = None) -> None:
        """Let searches use a stored retriever from now on, in one step; the one before stays stored.

        ``record`` is what the history says of it, by default that somebody chose it.
        """
        self._retrievers.activate(name, record)

    def remove_retriever(self, name: str) -> None:
        """Forget a stored retriever with its points; the active one cannot go."""
        self._retrievers.remove(name)

    def set_retriever(
        self, retriever: RetrieverProtocol, *, progress: Progress | None = None, now: bool = True, keep: bool = True
    ) -> ReencodeReport:
        """Change the retriever: make the points of the new one, then switch in one step.

        Features are used again where the encoders are the same; otherwise the pictures are read again. Until the
        switch, searches use the old retriever. ``now=False`` only marks the collection as stale, for a later
        :meth:`reencode`. After an interruption, either method goes on where it stopped. The old retriever stays stored
        as it is, for ``diptych.collection.learning.rollback``, and so do the last three; what is added later gets their
        points on the way back. ``keep=False`` lets it go: only its unused rows stay, until :meth:`repair`.
        """
        return self._retrievers.set(retriever, progress, now=now, keep=keep)

    def reencode(self, *, progress: Progress | None = None) -> ReencodeReport:
        """Finish a change of retriever that was begun; without one there is nothing to do."""
        return self._retrievers.reencode(progress)

    def calibrate(self, judgements: Iterable[tuple[str, str | os.PathLike[str], bool]]) -> None:
        """Fit the probabilities of text→image searches to judgements: (words, item, whether it is a good answer).

        Judge answers as they come: the share of good ones is taken for the share to expect.
        """
        self._retrievers.calibrate([(words, self[which].id, is_good) for words, which, is_good in judgements])

    def repair(self) -> CheckReport:
        """Make damaged files and missing points again where possible, drop what no item uses, join small files.

        Returns the state after it, which names what could not be made again.
        """
        from diptych.collection.changes.damage import mend

        with self._state.writing(mending=True):
            if mend(self._state):
                self._retrievers.fill()
                self._maintenance.clean()
        return self.verify()


def _retriever_at(folder: Path, moment_ns: int) -> str:
    now = Layout.read(folder).retriever.fingerprint
    return in_force_at(iso_time(moment_ns), RetrieverHistory(folder).records(now), now)
