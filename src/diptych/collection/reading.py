"""Asking a collection: searches, items, points, and how it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from diptych.addresses import without_password
from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.root import OriginalError, find_item, find_items, has_content, is_below, open_original
from diptych.collection.searching.options import RerankBy, Sort, Target
from diptych.collection.searching.query import Answer, Answers, Query, SearchRequest
from diptych.collection.searching.search import nearest, search
from diptych.collection.state import CollectionState
from diptych.collection.store import models
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import count_items, items_by_id, iterate_items, picture_texts, thumbnails
from diptych.collection.store.points import known_encoder, read_features, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.data.picture_files import split_moment
from diptych.encoders.image.picture_parts import PictureText
from diptych.errors import CollectionError, InvalidInputError, UnknownItemError

# Imported lazily: what searching does not need.
if TYPE_CHECKING:
    from diptych.collection.export import ExportedPictures
    from diptych.collection.maintenance import CheckReport, Status
    from diptych.collection.saved import Albums, SavedSearches
    from diptych.collection.store.duplicates import DuplicateGroup
    from diptych.collection.store.facets import Facet, MapCell, Period
    from diptych.collection.store.listing import Order, Page
    from diptych.collection.store.model_history import LearningRecord
    from diptych.collection.store.suggestions import Suggestion
    from diptych.collection.xmp_export import WrittenSidecars

_ITEMS_AT_ONCE = 2000


class CollectionReader:
    """Everything that can be asked of a collection: searches, items, points, how it is."""

    def __init__(self, state: CollectionState) -> None:
        self._state = state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; everything is on disk already."""
        self._state.close()

    def __len__(self) -> int:
        with self._state.store.reading() as db:
            return count_items(db)

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item in iterate_items(self._state.store))

    def __contains__(self, which: object) -> bool:
        if not isinstance(which, (str, os.PathLike)):
            return False
        with self._state.store.reading() as db:
            return find_item(db, self._state.root, which) is not None

    def __getitem__(self, which: str | os.PathLike[str]) -> Item:
        """Return an item by id or path."""
        with self._state.store.reading() as db:
            return self._numbered(db, [which])[0][1]

    def _numbered(self, db: Connection, which: Sequence[str | os.PathLike[str]]) -> list[tuple[int, Item]]:
        """Return items by id or path with their numbers."""
        found = []
        for name, one in zip(which, find_items(db, self._state.root, which), strict=True):
            if one is None:
                raise UnknownItemError(
                    f"there is no item {os.fspath(name)!r} in {self.place}; name an id or a path in it"
                )
            found.append(one)
        return found

    @property
    def folder(self) -> Path:
        """The folder of the collection; of one in PostgreSQL, what this machine keeps of it."""
        return self._state.folder

    @property
    def place(self) -> str:
        """Where the collection is: its folder, or its address in PostgreSQL, without a password."""
        return without_password(self._state.place)

    @property
    def store(self) -> Store:
        """The tables of the collection, for what is kept beside its items."""
        return self._state.store

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
        from diptych.collection.saved import Albums

        return Albums(self._state.store, self._numbers_of)

    @property
    def saved_searches(self) -> SavedSearches:
        """The saved searches, which are asked anew each time."""
        from diptych.collection.saved import SavedSearches

        return SavedSearches(self._state.store, self.answer)

    def _numbers_of(self, which: Any) -> list[int]:
        """Return the numbers of items that a user names by id, path or filter."""
        if isinstance(which, Filter):
            from diptych.collection.store.filtering import matching_items

            with self._state.looking() as (db, columns):
                return np.flatnonzero(matching_items(db, columns, which)).tolist()
        names = [which] if isinstance(which, (str, os.PathLike)) else list(which)
        with self._state.store.reading() as db:
            return [number for number, _ in self._numbered(db, names)]

    @property
    def retriever(self) -> RetrieverProtocol:
        """The retriever that searches use."""
        return self.retriever_named(None)

    def retriever_named(self, name: str | None) -> RetrieverProtocol:
        """Return a stored retriever by its name in the collection; None is the active one."""
        with self._state.store.reading() as db:
            model = models.model_named(db, name)
        return self._state.loaded.of(model)

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
        with self._state.store.reading() as db:
            numbers = [number for number, _ in self._numbered(db, list(which))]
            contents = self._contents_of(db, numbers)
            found = thumbnails(db, list(set(contents.values())))
        return [found.get(contents.get(number, 0)) for number in numbers]

    @staticmethod
    def _contents_of(db: Connection, numbers: Sequence[int]) -> dict[int, int]:
        """Return the content of each item that has a picture."""
        condition, values = db.among("id", numbers)
        return dict(db.rows(f"SELECT id, content FROM item WHERE content IS NOT NULL AND {condition}", values))

    def picture_text(self, which: str | os.PathLike[str]) -> PictureText | None:
        """Return the text in an item's picture with the boxes of its words; None where it has not been read."""
        with self._state.store.reading() as db:
            contents = self._contents_of(db, [self._numbered(db, [which])[0][0]])
            return next(iter(picture_texts(db, list(contents.values())).values()), None)

    def items(self, wanted: Filter | str | None = None) -> list[Item]:
        """Return the items that meet a filter, in the order of addition; of many, :meth:`page` returns a few."""
        if wanted is None:
            return list(self)
        with self._state.looking() as (db, columns):
            chosen = np.flatnonzero(self._matching(db, columns, wanted))
            return [
                item
                for start in range(0, len(chosen), _ITEMS_AT_ONCE)
                for item in items_by_id(db, chosen[start : start + _ITEMS_AT_ONCE])
            ]

    def facets(self, filter: Filter | str | None = None, *, limit: int = 10) -> list[Facet]:
        """Return labels and metadata to narrow a search down by, counted among the items that meet a filter.

        A field has its ``limit`` most frequent values, or its range; texts that never repeat are left out.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        from diptych.collection.store import facets

        with self._state.looking() as (db, columns):
            return facets.facets(db, columns, Filter.of(filter), limit)

    def timeline(self, filter: Filter | str | None = None) -> tuple[Period, ...]:
        """Return the months in which the items that meet a filter were taken, the earliest first, with their counts."""
        from diptych.collection.store import facets

        with self._state.looking() as (db, columns):
            return facets.timeline(db, columns, Filter.of(filter))

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
        from diptych.collection.store import facets
        from diptych.data.photo_facts.places import Box

        with self._state.looking() as (db, columns):
            return facets.map_cells(db, columns, Filter.of(filter), Box(south, west, north, east))

    def suggestions(self, prefix: str, limit: int = 8) -> list[Suggestion]:
        """Return ways to go on with a query: labels, words of captions and frequent phrases, most frequent first.

        Words come from the newest 50,000 captions. Of more than 5,000 captions, removals are not counted at once.
        """
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {limit}")
        with self._state.looking() as (db, columns):
            return self._state.suggestions.suggestions(db, columns, prefix, limit)

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
        sort: Sort = "relevance",
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
        sort:
            The order of the good answers: ``"relevance"``, ``"taken"`` or ``"added"`` (latest first), or ``"name"``.
        """
        request = SearchRequest(
            query=Query.of(query, self._find_picture),
            k=k,
            offset=offset,
            target=target,
            filter=Filter.of(filter),
            hybrid=hybrid,
            exact=exact,
            min_probability=min_probability,
            retriever=retriever,
            regions=regions,
            rerank=rerank,
            rerank_by=rerank_by,
            sort=sort,
        )
        return self.answer(request)

    def answer(self, request: SearchRequest) -> Answers:
        """Return the answers to a request, as :meth:`search` does."""
        with self._state.searching(request.retriever) as view:
            return search(view, request)

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
        side = SearchRequest(Query.text("-"), target=target).side
        with self._state.searching(retriever) as view:
            return nearest(view, np.asarray(points), k, side=side, exact=bool(exact))

    @property
    def metric(self) -> str | None:
        """What a vector index compares the stored points by: inner_product, l2 or hamming; None where none can."""
        return Scoring(self.retriever.space, "text_query").metric

    def texts_in_pictures(self) -> dict[str, str]:
        """Return what is written in the pictures, by their content."""
        sql = "SELECT hash, text FROM picture_text JOIN content ON content.id = picture_text.content"
        with self._state.store.reading() as db:
            return {bytes(key).hex(): text for key, text in db.rows(sql)}

    def page(
        self,
        filter: Filter | str | None = None,
        *,
        sort: Order = "added",
        descending: bool | None = None,
        cursor: str | None = None,
        limit: int = 30,
    ) -> Page:
        """Return some items that meet a filter, sorted by ``added``, ``taken``, ``updated`` or ``name``.

        By default the latest come first, and names from A to Z. ``cursor`` is the ``next`` of the page before; pages
        neither repeat nor miss an item while others write.
        """
        from diptych.collection.store.listing import list_items

        backwards = sort != "name" if descending is None else descending
        with self._state.looking() as (db, columns):
            return list_items(
                db, columns, Filter.of(filter), order=sort, descending=backwards, cursor=cursor, limit=limit
            )

    def retriever_history(self) -> list[LearningRecord]:
        """Return what changed the active retriever and what was compared with it, oldest first."""
        from diptych.collection.store.model_history import records

        with self._state.store.reading() as db:
            return records(db)

    def points(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored points of the common space with the ids of their rows: items' for images, captions' for texts.

        They are as they are compared: centred or scaled as the space asks, rounded to 16 bits. Without ``ids`` all of
        them come, in the order of addition; what has no point is left out.
        """
        with self._state.store.reading() as db:
            model = models.model_named(db, retriever)
            owners = self._owners(db, side, ids)
            if not model.width:
                return [], np.zeros((0, 0), dtype=np.float32)
            contents, _, rows = read_points(db, model.id, side, _distinct(owners))
        scoring = Scoring(self._state.loaded.of(model).space, "text_query")
        return _rows_of(owners, contents, scoring.comparable(rows, side))

    def features(
        self, side: Side, ids: Sequence[str] | None = None, retriever: str | None = None
    ) -> tuple[list[str], AnyArray]:
        """Return stored features, of which the retriever makes points, with the ids of their rows, as `points` does.

        A method that uses the same encoder learns from them without reading a picture again.
        """
        with self._state.store.reading() as db:
            model = models.model_named(db, retriever)
            owners = self._owners(db, side, ids)
            encoder = known_encoder(db, model.encoder(side), side)
            if encoder is None:
                return [], np.zeros((0, 0), dtype=np.float32)
            contents, rows = read_features(db, encoder, _distinct(owners))
        return _rows_of(owners, contents, rows)

    @staticmethod
    def _owners(db: Connection, side: Side, ids: Sequence[str] | None) -> list[tuple[str, int]]:
        """Return the public ids of items or captions with their contents, in the order asked or of addition."""
        if side not in SIDES:
            raise InvalidInputError(f"side must be 'image' or 'text', got {side!r}")
        table, order = ("item", "id") if side == "image" else ("caption", "item, place")
        sql = f"SELECT name, content FROM {table} WHERE content IS NOT NULL"
        if ids is None:
            return [(name, content) for name, content in db.rows(f"{sql} ORDER BY {order}")]
        there = db.rows(f"SELECT name FROM {table} WHERE name IN ({_marks(ids)})", list(ids)) if len(ids) else []
        unknown = sorted(set(ids) - {name for (name,) in there})
        if unknown:
            what, error = ("item", UnknownItemError) if side == "image" else ("caption", CollectionError)
            raise error(f"there is no {what} {unknown[0]!r} in the collection; take the id of an answer")
        found = dict(db.rows(f"{sql} AND name IN ({_marks(ids)})", list(ids))) if len(ids) else {}
        return [(name, found[name]) for name in ids if name in found]

    def build_index(self, retriever: str | None = None) -> None:
        """Build the vector indexes now; a few thousand points are always compared whole."""
        with self._state.store.reading() as db:
            searched = self._state.searched(models.model_named(db, retriever))
        for index in searched.indexes.values():
            index.build()

    def duplicates(self, threshold: float | None = 0.97) -> list[DuplicateGroup]:
        """Return groups of items with the same picture: byte for byte, and by the cosine of their image features.

        ``threshold`` is the least cosine of near duplicates; None looks for exact ones only.
        """
        from diptych.collection.store.duplicates import duplicates

        with self._state.store.reading() as db:
            encoder = known_encoder(db, models.active_model(db).image_fingerprint, "image")
            return duplicates(db, encoder, threshold)

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        from diptych.collection.maintenance import status

        return status(self._state)

    def export(self, path: str | os.PathLike[str], format: str | None = None, *, points: bool = False) -> None:
        """Write the items (``csv``, ``jsonl``, ``parquet``) or points (``npz``) to a file.

        Without ``format`` the ending of the name says it. Points come as ``image`` and ``text`` arrays with the ids of
        their rows, as they are searched: centred or scaled as the space asks. ``points`` gives the items of a Parquet
        file the column ``point``, those of their pictures. Another engine searches them with points that the space
        prepares, ``retriever.space.indexable("text_query").queries(retriever.encode_texts(["a boat"]))``.
        """
        from diptych.collection.export import export_format, write_items, write_points

        target = Path(path)
        kind = export_format(target, format)
        if kind in ("csv", "jsonl", "parquet"):
            write_items(target, kind, self, self.texts_in_pictures(), self.points("image") if points else None)
            return
        write_points(target, {side: self.points(side) for side in SIDES})

    def export_xmp(
        self,
        target: str | os.PathLike[str] | None = None,
        *,
        filter: Filter | str | None = None,
    ) -> WrittenSidecars:
        """Write captions, labels and ratings to XMP files for other photo programs; pictures stay as they are.

        ``photo.jpg.xmp`` goes beside ``photo.jpg``, or to the same place below ``target``. Files that another program
        has written stay as they are and are named in what is returned.
        """
        from diptych.collection.xmp_export import write_sidecars

        return write_sidecars(self.items(filter), self._state.root, None if target is None else Path(target))

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
        from diptych.collection.export import PictureExport

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

    def verify(self) -> CheckReport:
        """Compare every row with its checksum, the tables with each other, and items with points; change nothing."""
        from diptych.collection.maintenance import check

        return check(self._state)

    def _matching(self, db: Connection, columns: Columns, wanted: Filter | str) -> BoolArray:
        from diptych.collection.store.filtering import matching_items

        return matching_items(db, columns, wanted if isinstance(wanted, Filter) else Filter.parse(wanted))

    def _find_picture(self, name: str) -> Path | None:
        path = self._state.root.given(name)
        return path if path.is_file() else None


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _distinct(owners: Sequence[tuple[str, int]]) -> IntArray:
    return np.unique(np.array([content for _, content in owners], dtype=np.int64))


def _rows_of(owners: Sequence[tuple[str, int]], contents: IntArray, rows: AnyArray) -> tuple[list[str], AnyArray]:
    """Return the rows of owners by their contents, without those that have none."""
    place_of = {content: place for place, content in enumerate(contents.tolist())}
    kept = [(name, place_of[content]) for name, content in owners if content in place_of]
    if not kept:
        return [], np.zeros((0, 0), dtype=np.float32)
    chosen = rows[[place for _, place in kept]]
    return [name for name, _ in kept], chosen if chosen.dtype == np.uint8 else chosen.astype(np.float32)
