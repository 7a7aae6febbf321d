"""Stored pictures and texts: added, kept, searched."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.collection.collection import Collection as Collection
    from diptych.collection.export import ExportedPictures as ExportedPictures
    from diptych.collection.filter import Filter as Filter
    from diptych.collection.indexing.add_report import AddProgress as AddProgress
    from diptych.collection.indexing.add_report import AddReport as AddReport
    from diptych.collection.indexing.content_reading import ReadingReport as ReadingReport
    from diptych.collection.indexing.content_reading import TextReport as TextReport
    from diptych.collection.indexing.reencoding import ReencodeReport as ReencodeReport
    from diptych.collection.indexing.watching import FolderWatcher as FolderWatcher
    from diptych.collection.item import Item as Item
    from diptych.collection.item import Record as Record
    from diptych.collection.maintenance import CheckReport as CheckReport
    from diptych.collection.maintenance import Status as Status
    from diptych.collection.retriever_protocol import HashCodeRetrieverProtocol as HashCodeRetrieverProtocol
    from diptych.collection.retriever_protocol import RetrieverProtocol as RetrieverProtocol
    from diptych.collection.retrievers import StoredRetriever as StoredRetriever
    from diptych.collection.saved import Album as Album
    from diptych.collection.saved import SavedSearch as SavedSearch
    from diptych.collection.searching.query import Answer as Answer
    from diptych.collection.searching.query import Answers as Answers
    from diptych.collection.searching.query import Query as Query
    from diptych.collection.searching.query import Term as Term
    from diptych.collection.searching.query import parse_query as parse_query
    from diptych.collection.store.duplicates import DuplicateGroup as DuplicateGroup
    from diptych.collection.store.facets import Facet as Facet
    from diptych.collection.store.facets import FacetValue as FacetValue
    from diptych.collection.store.facets import MapCell as MapCell
    from diptych.collection.store.facets import Period as Period
    from diptych.collection.store.suggestions import Suggestion as Suggestion
    from diptych.collection.upkeep.backup import BackupReport as BackupReport
    from diptych.collection.upkeep.backup import RestoreReport as RestoreReport
    from diptych.collection.upkeep.backup import backup_collection as backup_collection
    from diptych.collection.upkeep.backup import restore_collection as restore_collection
    from diptych.encoders.image.picture_parts import PictureRegion as PictureRegion
    from diptych.encoders.image.picture_parts import PictureText as PictureText
    from diptych.encoders.image.picture_parts import PictureWord as PictureWord
    from diptych.errors import CollectionError as CollectionError
    from diptych.errors import UnknownRetrieverError as UnknownRetrieverError
else:
    # Imported lazily: asking where a collection is needs none of it.
    __getattr__, __all__ = declared_exports(__name__)
