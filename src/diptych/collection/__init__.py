"""Stored pictures and texts: added, kept, searched."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.collection.browse.export import ExportedPictures as ExportedPictures
    from diptych.collection.browse.facets import Facet as Facet
    from diptych.collection.browse.facets import FacetValue as FacetValue
    from diptych.collection.browse.facets import MapCell as MapCell
    from diptych.collection.browse.facets import Period as Period
    from diptych.collection.browse.filter import Filter as Filter
    from diptych.collection.browse.saved import Album as Album
    from diptych.collection.browse.saved import SavedSearch as SavedSearch
    from diptych.collection.browse.suggestions import Suggestion as Suggestion
    from diptych.collection.changes.add_report import AddProgress as AddProgress
    from diptych.collection.changes.add_report import AddReport as AddReport
    from diptych.collection.changes.backup import BackupReport as BackupReport
    from diptych.collection.changes.backup import RestoreReport as RestoreReport
    from diptych.collection.changes.backup import backup_collection as backup_collection
    from diptych.collection.changes.backup import restore_collection as restore_collection
    from diptych.collection.changes.content_reading import ReadingReport as ReadingReport
    from diptych.collection.changes.content_reading import TextReport as TextReport
    from diptych.collection.changes.damage import go_back as go_back
    from diptych.collection.changes.maintenance import CheckReport as CheckReport
    from diptych.collection.changes.maintenance import DuplicateGroup as DuplicateGroup
    from diptych.collection.changes.retriever_changes import ReencodeReport as ReencodeReport
    from diptych.collection.changes.watching import FolderWatcher as FolderWatcher
    from diptych.collection.collection import Collection as Collection
    from diptych.collection.search.query import Answer as Answer
    from diptych.collection.search.query import Answers as Answers
    from diptych.collection.search.query import Query as Query
    from diptych.collection.search.query import Term as Term
    from diptych.collection.search.query import parse_query as parse_query
    from diptych.collection.storage.change_journal import Version as Version
    from diptych.collection.storage.item import Item as Item
    from diptych.collection.storage.item import Record as Record
    from diptych.collection.storage.retriever_protocol import HashCodeRetrieverProtocol as HashCodeRetrieverProtocol
    from diptych.collection.storage.retriever_protocol import RetrieverProtocol as RetrieverProtocol
    from diptych.collection.storage.saved_retrievers import StoredRetriever as StoredRetriever
    from diptych.collection.storage.status import Status as Status
    from diptych.encoders.image.picture_parts import PictureRegion as PictureRegion
    from diptych.encoders.image.picture_parts import PictureText as PictureText
    from diptych.encoders.image.picture_parts import PictureWord as PictureWord
    from diptych.errors import CollectionError as CollectionError
    from diptych.errors import UnknownRetrieverError as UnknownRetrieverError
else:
    # Who only asks how a collection is, or where, waits for no engine.
    __getattr__, __all__ = declared_exports(__name__)
