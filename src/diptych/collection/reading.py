"""Asking a collection: searches, items, points, and how it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.browse.facets import Facet, MapCell, Period, count_cells, count_periods
from diptych.collection.browse.filter import Filter
from diptych.collection.browse.saved import chosen_items
from diptych.collection.browse.suggestions import Suggestion
from diptych.collection.browse.thumbnail_cache import Thumbnails
from diptych.collection.changes.sharing import Albums, SavedSearches
from diptych.collection.search.live_state import LiveState
from diptych.collection.search.query import Answer, Answers, Query
from diptych.collection.search.ranking import RerankBy
from diptych.collection.search.retriever_state import APPROXIMATE_FROM
from diptych.collection.search.snapshot import SearchSnapshot, Target, side_of
from diptych.collection.storage.item import Item
from diptych.collection.storage.retriever_protocol import PointKind, RetrieverProtocol, Side
from diptych.collection.storage.status import Status
from diptych.collection.storage.store import features_table, points_table
from diptych.collection.trusted_root import OriginalError, has_content, is_below, open_original
from diptych.data.photo_facts.places import Box
from diptych.data.picture_files import split_moment
from diptych.encoders.image.picture_parts import PictureText
from diptych.errors import InvalidInputError, UnknownItemError

if TYPE_CHECKING:
    from diptych.collection.browse.export import ExportedPictures
    from diptych.collection.changes.maintenance import CheckReport, DuplicateGroup, Maintenance


class CollectionReader:
    """Everything that can be asked of a collection: searches, items, points, how it is."""

    def __init__(self, state: LiveState) -> None:
        self._state = state
        self._thumbnails = Thumbnails(lambda: state.store)

    @cached_property
    def _maintenance(self) -> Maintenance:
        from diptych.collection.changes.maintenance import Maintenance

        return Maintenance(self._state)

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
            raise UnknownItemError(
                f"there is no item {os.fspath(which)!r} in {self.folder}; name an id or a path in it"
            )
        return item

    @property
    def folder(self) -> Path:
        """The folder of the collection."""
        return self._state.folder

    @property
    def root(self) -> Path:
        """The folder that stored paths are relative to."""
        return self._state.root.folder

    @property
    def is_root_trusted(self) -> bool:
        """True if files of the root may be opened: this user made the collection here, or named the root for it."""
        return self._state.root.is_trusted

    def check_root(self) -> None:
        """Raise where the root is not trusted; the message says how to name it."""
        self._state.root.check_trusted()

    @property
    def albums(self) -> Albums:
        """The albums: items under titles, each in an order of its own."""
        return Albums(self._state)

    @property
    def saved_searches(self) -> SavedSearches:
        """The saved searches, which are asked anew each time."""
        return SavedSearches(self._state, self.search)

    @property
    def retriever(self) -> RetrieverProtocol:
        """The retriever that searches use."""
        return self._state.retriever()

    def path_of(self, item: Item) -> Path | None:
        """Return the file of an item, None for one without a picture."""
        return None if item.path is None else self._state.root.picture(item.path)

    def picture_of(self, item: Item) -> Path | None:
        """Return what encoders read for an item: its file, or the path that stands for a moment of a video.

        None for an item without a picture, and where the root is not trusted.
        """
        return None if item.path is None or not self.is_root_trusted else self._state.root.file(item.path)

    def open_original(self, item: Item) -> BinaryIO:
        """Open the file of an item for others than its owner, or raise :class:`OriginalError` with the reason.

        It must lie inside the root after all links are followed and be the picture or video that was indexed.
        """
        self.check_root()
        path = self.picture_of(item)
        if path is None:
            raise OriginalError("no-picture", "is a text and has no picture; read its captions")
        return open_original(path, item.content_hash, self.root, self.folder)

    def thumbnail(self, which: str | os.PathLike[str]) -> bytes | None:
        """Return a small JPEG of an item's picture, or None."""
        return self.thumbnails([which])[0]

    def thumbnails(self, which: Iterable[str | os.PathLike[str]]) -> list[bytes | None]:
        """Return small JPEGs of many items' pictures, None where there is none."""
        contents = [self[one].content_hash for one in which]
        found = self._thumbnails.get(content for content in contents if content is not None)
        return [None if content is None else found.get(content) for content in contents]

    def picture_text(self, which: str | os.PathLike[str]) -> PictureText | None:
        """Return the text in an item's picture with the boxes of its words; None where it has not been read."""
        content = self[which].content_hash
        return None if content is None else self._state.store.picture_texts.get([content]).get(content)

    def items(self, wanted: Filter | str | None = None) -> list[Item]:
        """Return the items that meet a filter, in the order of addition."""
        items, chosen = self._state.items(), self._chosen(wanted)
        return list(items) if chosen is None else items.matching(chosen)

    def facets(self, filter: Filter | str | None = None, *, limit: int = 10) -> list[Facet]:
        """Return labels and metadata to narrow a search down by, counted among the items that meet a filter.

        A field has its ``limit`` most frequent values, or its range; texts that never repeat are left out.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().facets(self._chosen(filter), limit)

    def timeline(self, filter: Filter | str | None = None) -> tuple[Period, ...]:
        """Return the months in which the items that meet a filter were taken, the earliest first, with their counts."""
        return count_periods(self._state.items().parts_to_count(self._chosen(filter)))

    def map_cells(
        self,
        filter: Filter | str | None = None,
        *,
        south: float = -90.0,
        west: float = -180.0,
        north: float = 90.0,
        east: float = 180.0,
    ) -> tuple[MapCell, ...]:
        """Return where the items that meet a filter were taken: fields of a map of a part of the world, with counts."""
        if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
            raise InvalidInputError("a map goes from south to north within -90 to 90, and west to east within ±180")
        return count_cells(self._state.items().parts_to_count(self._chosen(filter)), Box(south, west, north, east))

    def suggestions(self, prefix: str, limit: int = 8) -> list[Suggestion]:
        """Return ways to go on with a query: labels, words of captions and frequent phrases, most frequent first.

        In a large collection they may lag behind removals, and leave out phrases that are rare in it.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        return self._state.items().suggestions(prefix, limit)

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
        regions: bool = True,
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
            How words are looked for in captions, file names, labels, metadata and the text in pictures (BM25): by
            default only those that ask for something by its name (a number, a name, what is quoted: words that
            photographs are not ordinarily described by), and what holds all of them comes first. A number from 0 to 1
            is the weight of the words in a joined ranking by reciprocal rank, True is 0.5; False leaves words out.
        exact:
            Compare everything (True), use the index (False), or decide by size (None).
        min_probability:
            Leave out answers below; by default ``no_good_match`` says when even the best is below the cut-off.
        retriever:
            The name of a stored retriever (see :meth:`retrievers`), by default the active one.
        regions:
            Whether parts of pictures are searched too, where :meth:`add_regions` has made them.
        rerank:
            With a hashing method: how many of the nearest codes to order more finely, by the real numbers that the
            query's bits are the signs of.
        rerank_by:
            What they are ordered by: their ``"codes"``, or their stored ``"features"``, which say more.
        """
        side = side_of(target)
        if k < 1 or offset < 0:
            raise InvalidInputError(f"k must be at least 1 and offset at least 0, got {k} and {offset}")
        kinds: tuple[PointKind, ...] = ("image", "region") if side == "image" and regions else (side,)
        snapshot, compared = self._ready(kinds, exact, retriever)
        answers = snapshot.search(
            Query.of(query, self._find_picture),
            k=k,
            offset=offset,
            side=side,
            wanted=self._chosen(filter),
            hybrid=hybrid,
            exact=compared,
            regions=regions,
            min_probability=min_probability,
            rerank=rerank,
            rerank_by=rerank_by,
        )
        is_by_features = rerank is not None and rerank_by == "features"
        if is_by_features and snapshot.galleries[side].wants_outputs and not self._state.is_past:
            self._state.keep_outputs(side, retriever)
        return answers

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
        snapshot, compared = self._ready((side,), exact, retriever)
        gallery = snapshot.galleries[side]
        rows, scores = gallery.search(gallery.scoring.query_vectors(np.asarray(points)), k, exact=side in compared)
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
        for kind in ("image", "text", "region"):
            self._state.build_index(kind, retriever)

    def retriever_named(self, name: str | None) -> RetrieverProtocol:
        """Return a stored retriever by its name in the collection; None is the active one."""
        return self._state.retriever(name)

    def duplicates(self, threshold: float | None = 0.97) -> list[DuplicateGroup]:
        """Return groups of items with the same picture: byte for byte, and by the cosine of their image features.

        ``threshold`` is the least cosine of near duplicates; None looks for exact ones only.
        """
        return self._maintenance.duplicates(threshold)

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        return self._maintenance.status()

    def export(self, path: str | os.PathLike[str], format: str | None = None, *, points: bool = False) -> None:
        """Write the items (``csv``, ``jsonl``, ``parquet``) or points (``npz``, ``safetensors``, ``faiss``) to a file.

        Without ``format`` the ending of the name says it. Points come as ``image`` and ``text`` arrays with the ids of
        their rows, as they are searched: centred or scaled as the space asks. ``points`` gives the items of a Parquet
        file the column ``point``, those of their pictures. An index of FAISS is searched with points that the space
        prepares, ``retriever.space.indexable("text_query").queries(retriever.encode_texts(["a boat"]))``; the ids of
        its rows lie beside it in ``*.ids.txt``, captions in ``*.captions.faiss``.
        """
        self._maintenance.export(path, format, points)

    def export_pictures(
        self,
        target: str | os.PathLike[str],
        which: Iterable[Item | Answer | str | os.PathLike[str]],
        *,
        title: str = "Pictures",
        about: str = "",
        gallery: bool = False,
        keep_metadata: bool | None = None,
        force: bool = False,
    ) -> ExportedPictures:
        """Write the pictures of answers or items to a folder, or to a zip file where the name ends so.

        They are copies of the files with their captions in ``captions.json``, or, as a ``gallery``, pictures for a
        browser with a page to look at them, ``index.html``, under a ``title`` and a line ``about`` it. Those of a
        gallery say nothing else that the files say (place, date, camera), unless ``keep_metadata``; without it,
        ``keep_metadata=False``, neither do others. A file that is gone is named in what is returned. What exists is
        overwritten only by ``force``.
        """
        from diptych.collection.browse.export import PictureExport

        found = [one if isinstance(one, Item) else one.item if isinstance(one, Answer) else self[one] for one in which]
        items = list({item.id: item for item in found if item is not None}.values())
        how: dict[str, Any] = {"title": title, "about": about, "gallery": gallery, "keep_metadata": keep_metadata}
        return PictureExport(items, self._open_picture, self.thumbnails, **how).write(Path(target), force=force)

    def _open_picture(self, item: Item) -> BinaryIO | None:
        """Open a file for its owner: below the root as it is, elsewhere only with the content that was indexed."""
        path = self.picture_of(item)
        if path is None:
            return None
        try:
            file = split_moment(path)[0].open("rb")
        except OSError:
            return None
        if is_below(path, self.root) or has_content(file, path, item.content_hash):
            file.seek(0)
            return file
        file.close()
        return None

    def verify(self, *, all_bytes: bool = True) -> CheckReport:
        """Compare every file with its checksum, and the tables with the items; no item is changed.

        Damage that is found is kept from being read from then on: what needs it is refused with a sentence. Without
        ``all_bytes`` only the sizes of files are looked at.
        """
        return self._maintenance.check(all_bytes=all_bytes)

    def _chosen(self, wanted: Filter | str | None) -> Filter | None:
        return chosen_items(wanted, self._state.layout.folder)

    def _ready(
        self, kinds: Sequence[PointKind], exact: bool | None, retriever: str | None
    ) -> tuple[SearchSnapshot, set[PointKind]]:
        """Return the present state, with indexes or some on their way where wanted, and what to compare whole."""
        snapshot = self._state.snapshot(retriever)
        there = {kind: snapshot.galleries[kind] for kind in kinds if kind in snapshot.galleries}
        small = {kind for kind, gallery in there.items() if len(gallery) < APPROXIMATE_FROM}
        compared = set(there) if exact or self._state.is_past else small if exact is None else set[PointKind]()
        wanting = [kind for kind, gallery in there.items() if kind not in compared and gallery.wants_index]
        for kind in wanting:
            self._state.build_index(kind, retriever, wait=exact is False)
        return self._state.snapshot(retriever) if wanting else snapshot, compared

    def _find_picture(self, name: str) -> Path | None:
        path = self._state.root.given(name)
        return path if path.is_file() else None
