"""Stored pictures and texts that can be searched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.browse.facets import Facet
from diptych.collection.browse.filter import Filter
from diptych.collection.browse.suggestions import Suggestion
from diptych.collection.browse.thumbnail_cache import Thumbnails
from diptych.collection.changes.adding import AddReport, Progress
from diptych.collection.changes.item_changes import ItemChanges, Which
from diptych.collection.changes.maintenance import CheckReport, DuplicateGroup, Maintenance, Status
from diptych.collection.changes.retriever_changes import ReencodeReport, RetrieverChanges
from diptych.collection.remote.place import create_place, has_collection, open_place
from diptych.collection.search.live_state import APPROXIMATE_FROM, LiveState, LoadRetriever
from diptych.collection.search.query import Query
from diptych.collection.search.ranking import RerankBy
from diptych.collection.search.snapshot import Answers, SearchSnapshot, Target, side_of
from diptych.collection.storage import saved_retrievers
from diptych.collection.storage.item import Item, Record
from diptych.collection.storage.retriever_protocol import RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import StoredRetriever, defensive_copy
from diptych.collection.storage.store import features_table, points_table
from diptych.errors import InvalidInputError, UnknownItemError


class Collection:
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
    ) -> None:
        self._state = LiveState(open_place(folder), load_retriever or saved_retrievers.load_retriever, write_wait)
        self._changes = ItemChanges(self._state, scheduler)
        self._retrievers = RetrieverChanges(self._state, scheduler)
        self._maintenance = Maintenance(self._state)
        self._thumbnails = Thumbnails(lambda: self._state.store)

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
    ) -> Self:
        """Make an empty collection; without a retriever it gets the default one.

        Paths are stored relative to ``root``, by default the folder around the collection, so that both can move. One
        in object storage (``s3://bucket/name``) has the current folder as its root by default.
        """
        chosen = defensive_copy(saved_retrievers.default_retriever() if retriever is None else retriever)
        create_place(folder, None if root is None else Path(root), partial(saved_retrievers.make_collection, chosen))
        collection = cls(folder, load_retriever=load_retriever, write_wait=write_wait, scheduler=scheduler)
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
    ) -> Self:
        """Open a collection.

        ``load_retriever`` reads retrievers of another kind than :class:`diptych.Retriever`. A change that finds another
        writer at work waits for it up to ``write_wait`` seconds before it raises. ``scheduler`` is the address of a
        Dask scheduler, such as tcp://host:8786, whose workers read and encode what is added, with the same result.
        """
        return cls(folder, load_retriever=load_retriever, write_wait=write_wait, scheduler=scheduler)

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
    ) -> Self:
        """Open a collection, or make it; an existing one keeps its own retriever."""
        options: dict[str, Any] = {"load_retriever": load_retriever, "write_wait": write_wait, "scheduler": scheduler}
        if has_collection(folder):
            return cls.open(folder, **options)
        return cls.create(folder, retriever, root=root, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for indexes that are being built; everything else is on disk already."""
        self._state.close()

    def __len__(self) -> int:
        return len(self._state.items())

    def __iter__(self) -> Iterator[Item]:
        return iter(self._state.items())

    def __contains__(self, which: object) -> bool:
        return isinstance(which, (str, os.PathLike)) and self._state.find(which) is not None

    def __getitem__(self, which: str | os.PathLike[str]) -> Item:
        """Return an item by id or path."""
        item = self._state.find(which)
        if item is None:
            raise UnknownItemError(f"there is no item {os.fspath(which)!r} in {self.name}; name an id or a path in it")
        return item

    @property
    def name(self) -> str:
        """Where the collection is: the path of its folder, or its address in object storage."""
        return self._state.place.name

    @property
    def folder(self) -> Path:
        """The folder of the collection; of one in object storage, the present copy on this machine."""
        return self._state.place.folder

    @property
    def stale_seconds(self) -> float | None:
        """For how long the object storage of the collection could not be reached, None while it can."""
        return self._state.place.stale_seconds

    @property
    def root(self) -> Path:
        """The folder that stored paths are relative to."""
        return self._state.root.folder

    @property
    def retriever(self) -> RetrieverProtocol:
        """The retriever that searches use."""
        return self._state.retriever()

    def path_of(self, item: Item) -> Path | None:
        """Return the file of an item, None for one without a picture."""
        return None if item.path is None else self._state.root.file(item.path)

    def thumbnail(self, which: str | os.PathLike[str]) -> bytes | None:
        """Return a small JPEG of an item's picture, or None."""
        return self.thumbnails([which])[0]

    def thumbnails(self, which: Iterable[str | os.PathLike[str]]) -> list[bytes | None]:
        """Return small JPEGs of many items' pictures, None where there is none."""
        contents = [self[one].content_hash for one in which]
        found = self._thumbnails.get(content for content in contents if content is not None)
        return [None if content is None else found.get(content) for content in contents]

    def items(self, wanted: Filter | str | None = None) -> list[Item]:
        """Return the items that meet a filter, in the order of addition."""
        items, chosen = self._state.items(), Filter.of(wanted)
        return list(items) if chosen is None else items.matching(chosen)

    def facets(self, filter: Filter | str | None = None, *, limit: int = 10) -> list[Facet]:
        """Return labels and metadata to narrow a search down by, counted among the items that meet a filter.

        A field has its ``limit`` most frequent values, or its range; texts that never repeat are left out.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().facets(Filter.of(filter), limit)

    def suggestions(self, prefix: str, limit: int = 8) -> list[Suggestion]:
        """Return ways to go on with a query: labels, words of captions and frequent phrases, most frequent first.

        In a large collection they may lag behind removals, and leave out phrases that are rare in it.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().suggestions(prefix, limit)

    def add(self, sources: Any, *, progress: Progress | None = None) -> AddReport:
        """Add pictures, folders of pictures, records and captioned pictures; return what became of each.

        Files whose size and time are as stored are not opened, renamed files are recognised, and what cannot be used is
        skipped with a reason. ``progress`` is told after each batch, when it is durable.
        """
        with self._state.writing():
            return self._changes.add(sources, progress)

    def refresh(self, folder: str | os.PathLike[str] | None = None, *, progress: Progress | None = None) -> AddReport:
        """Add what is new or changed in a folder (by default the root), and remove items whose files are gone."""
        base = self.root if folder is None else self._state.root.given(folder)
        if not base.is_dir():
            raise InvalidInputError(f"{base} is no folder that can be read now; nothing was removed")
        with self._state.writing():
            report = self._changes.add(base, progress)
            report.removed = self._changes.remove_missing(base)
        return report

    def remove_missing(self, folder: str | os.PathLike[str] | None = None) -> list[str]:
        """Remove the items whose files are gone, all of them or those of a folder; return their paths."""
        with self._state.writing():
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
        with self._state.writing():
            item = self[which]
            if item.path is None and captions is not None and not captions:
                raise InvalidInputError(f"item {item.id} has no picture, so it needs a caption; remove it instead")
            texts = captions or item.captions if item.path is None else captions
            self._changes.change(item, Record(item.path, texts, labels, metadata))
        return self[item.id]

    def remove(self, which: Which) -> list[str]:
        """Remove items by id, path or filter; return the ids. The files stay where they are."""
        with self._state.writing():
            items = self._changes.named(which)
            self._changes.remove(items)
        return [item.id for item in items]

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        target: Target = "images",
        filter: Filter | str | None = None,
        hybrid: float | bool | None = None,
        exact: bool | None = None,
        min_probability: float | None = None,
        offset: int = 0,
        retriever: str | None = None,
        rerank: int | None = None,
        rerank_by: RerankBy = "codes",
    ) -> Answers:
        """Find pictures or captions.

        Parameters
        ----------
        query:
            A string (see :func:`parse_query`), a :class:`Query`, or a picture as path object, array or Pillow image.
        k, offset:
            How many answers, and how many to leave out before them.
        target:
            ``"images"`` or ``"texts"``.
        filter:
            A :class:`Filter` or its text. With k items that meet it there are k answers.
        hybrid:
            Also look for the words of the query in the captions (BM25) and join both rankings by reciprocal rank; the
            number from 0 to 1 is the weight of the words, True is 0.5.
        exact:
            Compare everything (True), use the index (False), or decide by size (None).
        min_probability:
            Leave out answers below; by default ``no_good_match`` says when even the best is below the cut-off.
        retriever:
            The name of a stored retriever (see :meth:`retrievers`), by default the active one.
        rerank:
            With a hashing method: how many of the nearest codes to order more finely, by the real numbers that the
            query's bits are the signs of.
        rerank_by:
            What they are ordered by: their ``"codes"``, or their stored ``"features"``, which say more.
        """
        side = side_of(target)
        if k < 1 or offset < 0:
            raise InvalidInputError(f"k must be at least 1 and offset at least 0, got {k} and {offset}")
        snapshot, use_all = self._ready(side, exact, retriever)
        return snapshot.search(
            Query.of(query, self._find_picture),
            k=k,
            offset=offset,
            side=side,
            wanted=Filter.of(filter),
            hybrid=hybrid,
            exact=use_all,
            min_probability=min_probability,
            rerank=rerank,
            rerank_by=rerank_by,
        )

    def nearest(
        self,
        points: AnyArray,
        k: int = 10,
        *,
        target: Target = "images",
        exact: bool | None = None,
        retriever: str | None = None,
    ) -> tuple[AnyArray, FloatArray]:
        """Return the ids and scores of the ``k`` nearest to each of many points of the space, for bulk work.

        Ids are those of items, or of captions when texts are searched; an empty id fills up where there are fewer.
        """
        side = side_of(target)
        snapshot, use_all = self._ready(side, exact, retriever)
        gallery = snapshot.galleries[side]
        rows, scores = gallery.search(gallery.scoring.query_vectors(np.asarray(points)), k, exact=use_all)
        return gallery.keys(rows), scores

    def points(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored points of the common space with the ids of their rows: items' for images, captions' for texts.

        Without ``ids`` all of them come, in the order of addition; what has no point is left out.
        """
        return self._state.stored_rows(points_table, side, ids, retriever)

    def features(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored features, of which the retriever makes points, with the ids of their rows, as `points` does.

        A method that uses the same encoder learns from them without reading a picture again.
        """
        return self._state.stored_rows(features_table, side, ids, retriever)

    def build_index(self, retriever: str | None = None) -> None:
        """Build the search indexes now; a side with fewer than 1,000 points is always compared whole."""
        self._state.build_index("image", retriever)
        self._state.build_index("text", retriever)

    def retrievers(self) -> list[StoredRetriever]:
        """Return the stored retrievers, the active one first."""
        return self._retrievers.stored()

    def retriever_named(self, name: str | None) -> RetrieverProtocol:
        """Return a stored retriever by its name in the collection; None is the active one."""
        return self._state.retriever(name)

    def add_retriever(
        self, retriever: RetrieverProtocol, *, name: str | None = None, progress: Progress | None = None
    ) -> ReencodeReport:
        """Keep the points of another retriever beside the active one's, for searches that name it.

        Later items get points of every stored retriever. ``name`` must be free; by default it is that of the retriever,
        with a number where it is taken. One that is stored already gets its new calibration and the points it lacks.
        """
        return self._retrievers.add(retriever, name, progress)

    def activate_retriever(self, name: str) -> None:
        """Let searches use a stored retriever from now on, in one step; the one before stays stored."""
        self._retrievers.activate(name)

    def remove_retriever(self, name: str) -> None:
        """Forget a stored retriever with its points; the active one cannot go."""
        self._retrievers.remove(name)

    def set_retriever(
        self, retriever: RetrieverProtocol, *, progress: Progress | None = None, now: bool = True, keep: bool = False
    ) -> ReencodeReport:
        """Change the retriever: make the points of the new one, then switch in one step.

        Features are used again where the encoders are the same; otherwise the pictures are read again. Until the
        switch, searches use the old retriever. ``now=False`` only marks the collection as stale, for a later
        :meth:`reencode`. After an interruption, either method goes on where it stopped. ``keep=True`` keeps the old
        retriever stored beside the new one; otherwise only its unused rows stay, until :meth:`repair`.
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

    def duplicates(self, threshold: float | None = 0.97) -> list[DuplicateGroup]:
        """Return groups of items with the same picture: byte for byte, and by the cosine of their image features.

        ``threshold`` is the least cosine of near duplicates; None looks for exact ones only.
        """
        return self._maintenance.duplicates(threshold)

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        return self._maintenance.status()

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the items (``csv``, ``jsonl``, ``parquet``) or the points (``npz``, ``safetensors``) to a file.

        Without ``format`` the ending of the name says it. Points come as ``image`` and ``text`` arrays with the ids of
        their rows, as they are searched: centred or scaled as the space asks.
        """
        self._maintenance.export(path, format)

    def verify(self) -> CheckReport:
        """Compare the tables with the items; nothing is changed."""
        return self._maintenance.check()

    def repair(self) -> CheckReport:
        """Give missing points where possible, drop what no item uses, join small files; return the state after it."""
        with self._state.writing():
            self._retrievers.fill()
            self._maintenance.clean()
        return self.verify()

    def _ready(self, side: Side, exact: bool | None, retriever: str | None) -> tuple[SearchSnapshot, bool]:
        """Return the present state, with an index or one on its way where it is wanted, and whether to compare all."""
        snapshot = self._state.snapshot(retriever)
        gallery = snapshot.galleries[side]
        if exact or (exact is None and len(gallery) < APPROXIMATE_FROM):
            return snapshot, True
        if gallery.wants_index:
            self._state.build_index(side, retriever, wait=exact is False)
            snapshot = self._state.snapshot(retriever)
        return snapshot, False

    def _find_picture(self, name: str) -> Path | None:
        path = self._state.root.given(name)
        return path if path.is_file() else None
