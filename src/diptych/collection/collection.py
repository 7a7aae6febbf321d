"""Stored pictures and texts that can be searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diptych.atomic_files import Durability, checked_durability
from diptych.collection.filter import Filter
from diptych.collection.item import Item, Record
from diptych.collection.reading import CollectionReader
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.root import ROOT, check_root, refused_root, stored_root
from diptych.collection.state import CollectionState
from diptych.collection.store import models
from diptych.collection.store.dialect import Connection
from diptych.collection.store.models import LoadRetriever
from diptych.collection.store.opening import create_store, is_collection
from diptych.collection.store.store import put_setting
from diptych.data.remote_files import full_path
from diptych.errors import CollectionError, InvalidInputError, UnknownRetrieverError

if TYPE_CHECKING:
    # Imported lazily: searching does not need the write path.
    from diptych.collection.indexing.add_report import AddReport, Progress
    from diptych.collection.indexing.content_reading import ReadingReport, TextReport
    from diptych.collection.indexing.file_facts import FactsChoice
    from diptych.collection.indexing.item_changes import ItemChanges, Which
    from diptych.collection.indexing.reencoding import ReencodeReport
    from diptych.collection.maintenance import CheckReport
    from diptych.collection.retrievers import RetrieverChanges, StoredRetriever
    from diptych.collection.store.model_history import LearningRecord


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
        write_wait: float | None = None,
        scheduler: str | None = None,
        durability: Durability | None = None,
        root: str | os.PathLike[str] | None = None,
        replica: str | None = None,
    ) -> None:
        state = CollectionState(
            folder,
            load_retriever or models.load_retriever,
            durability=durability,
            root=None if root is None else full_path(root),
            write_wait=write_wait,
            replica=replica,
        )
        super().__init__(state)
        self._scheduler = scheduler
        state.keep_root()

    @cached_property
    def _changes(self) -> ItemChanges:
        from diptych.collection.indexing.item_changes import ItemChanges

        return ItemChanges(self._state.store, self._state.root, self._sources, self._matching_ids, self._scheduler)

    def _sources(self) -> list[tuple[models.Model, RetrieverProtocol]]:
        """Return the models that new items get points of, loaded."""
        with self._state.store.reading() as db:
            followed = models.followed_models(db)
        loaded = []
        for model in followed:
            try:
                loaded.append((model, self._state.loaded.of(model)))
            except CollectionError:
                # Another process may have removed it meanwhile.
                with self._state.store.reading() as db:
                    if models.model_with(db, model.fingerprint) is not None:
                        raise
        return loaded

    def _named_source(self, name: str | None) -> tuple[models.Model, RetrieverProtocol]:
        with self._state.store.reading() as db:
            model = models.model_named(db, name)
        return model, self._state.loaded.of(model)

    def _matching_ids(self, db: Connection, wanted: Filter) -> Any:
        return self._matching(db, self._state.columns.current(db), wanted).nonzero()[0]

    @cached_property
    def _retrievers(self) -> RetrieverChanges:
        from diptych.collection.retrievers import RetrieverChanges

        return RetrieverChanges(self._state.store, lambda: self._state.root, self._state.loaded, self._scheduler)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        retriever: RetrieverProtocol | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        load_retriever: LoadRetriever | None = None,
        write_wait: float | None = None,
        scheduler: str | None = None,
        durability: Durability | None = None,
    ) -> Self:
        """Make an empty collection; without a retriever it gets the default one.

        Paths are stored relative to ``root``, by default the folder around the collection, and only files below it are
        handed out. The whole file system, hidden folders of the home and the collection itself are refused. It may be
        an address such as s3://bucket/photos, with the extra ``remote``; credentials come from the environment.
        """
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        from diptych.collection.retrievers import add_model, defensive_copy, saved_model, unique_name
        from diptych.retriever import Retriever

        chosen = defensive_copy(Retriever.default() if retriever is None else retriever)
        saved = saved_model(chosen)
        if root is not None:
            check_root(folder, root)

        def fill(db: Connection, place: Path) -> None:
            put_setting(db, ROOT, stored_root(full_path(place.parent if root is None else root), place))
            add_model(db, saved, unique_name(chosen.name, ()), "active")

        store = create_store(os.fspath(folder), checked_durability(durability), fill=fill)
        store.close()
        named = full_path(store.folder.parent if root is None else root)
        options["root"] = None if refused_root(store.folder, named) else named
        made = cls(folder, durability=durability, **options)
        with made._state.store.reading() as db:
            made._state.loaded.keep(models.active_model(db), chosen)
        return made

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        load_retriever: LoadRetriever | None = None,
        write_wait: float | None = None,
        scheduler: str | None = None,
        durability: Durability | None = None,
        root: str | os.PathLike[str] | None = None,
        replica: str | None = None,
    ) -> Self:
        """Open a collection.

        A collection that was copied, moved or restored, or was made by another user, is searched without its files
        until ``root`` names the folder of its pictures, once.

        ``load_retriever`` reads retrievers of another kind than :class:`diptych.Retriever`. A change that finds another
        writer at work waits for it up to ``write_wait`` seconds before it raises. ``scheduler`` is the address of a
        Dask scheduler, such as tcp://host:8786, whose workers read and encode what is added, with the same result.

        ``durability="power"`` brings every change to the disk before it is acknowledged; with ``"process"`` it survives
        the end of the process, and after a power cut the collection may have to be restored or made again. Without it
        ``DIPTYCH_DURABILITY`` says which, and where that says nothing it is ``"power"``.

        ``folder`` may be an address of PostgreSQL, postgresql://user@host/database?schema=name; a password comes from
        ``PGPASSWORD`` or ``~/.pgpass``. ``replica`` is the address of the same schema on a replica, which answers
        searches while it is there and has the last write of this process.
        """
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        return cls(folder, durability=durability, root=root, replica=replica, **options)

    @classmethod
    def open_or_create(
        cls,
        folder: str | os.PathLike[str],
        retriever: RetrieverProtocol | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        load_retriever: LoadRetriever | None = None,
        write_wait: float | None = None,
        scheduler: str | None = None,
        durability: Durability | None = None,
    ) -> Self:
        """Open a collection, or make it; an existing one keeps its own retriever, and ``root`` names its pictures."""
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        if is_collection(os.fspath(folder)):
            return cls.open(folder, durability=durability, root=root, **options)
        return cls.create(folder, retriever, root=root, durability=durability, **options)

    def add(self, sources: Any, *, progress: Progress | None = None) -> AddReport:
        """Add pictures, folders of pictures, records and captioned pictures; return what became of each.

        Files whose size and time are as stored are not opened, renamed files are recognised, and what cannot be used is
        skipped with a reason. ``progress`` is told after each batch, when it is durable. Others who wait to write
        are let in between two batches.
        """
        report = self._changes.add(sources, progress)
        if report.changed:
            self._catch_up()
        return report

    def load(self, batches: Any, *, progress: Callable[[int], None] | None = None) -> int:
        """Add items whose points were made elsewhere; return how many.

        They come in mappings of columns, tables or record batches of Arrow, or the path of a Parquet file.
        Columns: ``id``; ``caption`` with its ``text_point``; ``path`` and ``content_hash`` (the SHA-256 of the file) of
        a picture with its ``image_point``; ``labels``, lists of strings; ``metadata``, a struct or the text of a JSON
        object. An item has a caption, a picture or both, and null in the other columns. Points are those of the active
        retriever, paths are relative to the root or absolute, and no file is opened. An item that cannot be used ends
        it with an error that names the first one; the batches before are stored. ``progress`` is told after each commit
        how many items are durable.
        """
        from diptych.collection.indexing.loading import load_points

        n_stored = load_points(self._state.store, self._state.root, self._sources(), batches, progress)
        self._catch_up()
        return n_stored

    def refresh(self, folder: str | os.PathLike[str] | None = None, *, progress: Progress | None = None) -> AddReport:
        """Add what is new or changed in a folder, by default the root; remove items whose files are gone or ignored."""
        self._state.root.check_trusted()
        base = self.root if folder is None else self._state.root.given(folder)
        if not base.is_dir():
            raise InvalidInputError(f"{base} is no folder that can be read now; nothing was removed")
        report = self._changes.add(base, progress, missing_in=base)
        if report.changed:
            self._catch_up()
        return report

    def remove_missing(self, folder: str | os.PathLike[str] | None = None) -> list[str]:
        """Remove the items whose files are gone or ignored, all of them or those of a folder; return their paths."""
        return self._changes.remove_missing(None if folder is None else self._state.root.given(folder))

    def waiting_at_most(self, seconds: float) -> AbstractContextManager[None]:
        """Let what this thread changes inside wait so long for another writer, instead of ``write_wait``."""
        return self._state.store.waiting_at_most(seconds)

    def _catch_up(self) -> None:
        """Build the vector indexes that lack many points: a short process ends before its background could do it."""
        with self._state.store.reading() as db:
            followed = models.followed_models(db)
        for model in followed:
            # Another process may remove the search model meanwhile.
            with suppress(UnknownRetrieverError):
                for index in self._state.searched(model).indexes.values():
                    index.catch_up()

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
        return self._changes.update_all(changes)

    def keep_facts(self, choice: FactsChoice) -> int:
        """Choose what is kept of what photographs say of themselves, and return how many items lost something by it.

        ``"all"``, ``"no-places"`` for everything but where they were taken, or ``"none"``. What is stored of the rest
        goes at once; what comes back is read by the next :meth:`add` or :meth:`refresh`.
        """
        return self._changes.keep_facts(choice)

    def remove(self, which: Which) -> list[str]:
        """Remove items by id, path or filter; return the ids. The files stay where they are."""
        return self._changes.remove(which)

    def read_text(self, *, progress: Progress | None = None) -> TextReport:
        """Read the text in the pictures, so that searches find it; needs the extra ``ocr``.

        It takes about a second of one core for each picture, at the lowest priority, and others may write meanwhile.
        After an interruption it goes on where it was; each picture is read once, whatever becomes of its name.
        ``progress`` is told after each picture.
        """
        from diptych.collection.indexing.content_reading import TextReading

        return TextReading(self._state.store, self._state.root).run(progress)

    def add_regions(self, retriever: str | None = None, *, progress: Progress | None = None) -> ReadingReport:
        """Give parts of the pictures points of their own, so that searches find small things and say where they are.

        Thirteen overlapping regions of each picture are encoded: it takes thirteen times as long as adding the
        pictures, at the lowest priority, and thirteen times the room of their points. Others may write meanwhile. They
        are those of one stored ``retriever``, by default the active one, and are searched when all are done or after an
        interruption, from which the next call goes on. Pictures that are added later get theirs by another call.
        """
        from diptych.collection.indexing.content_reading import RegionReading

        report = RegionReading(self._state.store, self._state.root, self._named_source(retriever)).run(progress)
        self._catch_up()
        return report

    def remove_regions(self, retriever: str | None = None) -> None:
        """Delete the regions of a stored retriever, by default the active one."""
        from diptych.collection.indexing.content_reading import remove_regions

        with self._state.store.reading() as db:
            model = models.model_named(db, retriever)
        self._state.store.write(lambda db: remove_regions(db, model), freeing=True)

    def note_retriever(self, record: LearningRecord) -> None:
        """Write down a comparison after which the active retriever stayed."""
        from diptych.collection.store.model_history import remember

        self._state.store.write(lambda db: remember(db, record))

    def item_of(self, record: Record) -> Item:
        """Return the item that a record has become."""
        if record.path is not None or record.id is not None:
            return self[record.path or record.id or ""]
        from diptych.collection.indexing.records import text_ids

        with self._state.store.reading() as db:
            (name,) = text_ids(db, [record]).values()
        return self[name]

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
        report = self._retrievers.add(retriever, name, progress)
        self._catch_up()
        return report

    def activate_retriever(self, name: str, *, record: LearningRecord | None = None) -> None:
        """Let searches use a stored retriever from now on, in one step; the one before stays stored.

        ``record`` is what the history says of it, by default that somebody chose it.
        """
        self._retrievers.activate(name, record)

    def remove_retriever(self, name: str) -> None:
        """Forget a stored retriever with its points; the active one cannot go."""
        self._retrievers.remove(name)

    def set_retriever(
        self, retriever: RetrieverProtocol, *, progress: Progress | None = None, keep: bool = True
    ) -> ReencodeReport:
        """Change the retriever: make the points of the new one, then switch in one step.

        Features are used again where the encoders are the same; otherwise the pictures are read again. Until the
        switch, searches use the old retriever. After an interruption, this method or :meth:`reencode` goes on where it
        stopped. The old retriever stays stored
        as it is, for ``diptych.collection.learning.rollback``, and so do the last three; what is added later gets their
        points on the way back. ``keep=False`` lets it go.
        """
        report = self._retrievers.set(retriever, progress, keep=keep)
        self._catch_up()
        return report

    def reencode(self, *, progress: Progress | None = None) -> ReencodeReport:
        """Finish a change of retriever that was begun; without one there is nothing to do."""
        report = self._retrievers.reencode(progress)
        self._catch_up()
        return report

    def calibrate(self, judgements: Iterable[tuple[str, str | os.PathLike[str], bool]]) -> None:
        """Fit the probabilities of text→image searches to judgements: (words, item, whether it is a good answer).

        Judge answers as they come: the share of good ones is taken for the share to expect.
        """
        self._retrievers.calibrate([(words, self[which].id, is_good) for words, which, is_good in judgements])

    def repair(self) -> CheckReport:
        """Make damaged rows and files and missing points again where possible, and drop what no item uses.

        Returns the state after it, which names what could not be made again.
        """
        from diptych.collection.indexing.reencoding import make_missing_thumbnails
        from diptych.collection.upkeep.checks import repair

        repair(self._state.store)
        self._retrievers.fill()
        make_missing_thumbnails(self._state.store, self._state.root)
        return self.verify()
