"""Stored pictures and texts: added, kept, searched."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.collection.browse.export import ExportedPictures
    from diptych.collection.browse.facets import Facet, FacetValue, MapCell, Period
    from diptych.collection.browse.filter import Filter
    from diptych.collection.browse.saved import Album, SavedSearch
    from diptych.collection.browse.suggestions import Suggestion
    from diptych.collection.changes.add_report import AddProgress, AddReport
    from diptych.collection.changes.backup import BackupReport, RestoreReport, backup_collection, restore_collection
    from diptych.collection.changes.content_reading import ReadingReport, TextReport
    from diptych.collection.changes.going_back import go_back
    from diptych.collection.changes.maintenance import CheckReport, DuplicateGroup, MigrationReport, migrate_collection
    from diptych.collection.changes.retriever_changes import ReencodeReport
    from diptych.collection.changes.watching import FolderWatcher
    from diptych.collection.collection import Collection
    from diptych.collection.planning import Plan, RetrieverCosts, plan_collection
    from diptych.collection.search.answers import Answer, Answers
    from diptych.collection.search.query import Query, Term, parse_query
    from diptych.collection.storage.change_journal import Version
    from diptych.collection.storage.item import Item, Record
    from diptych.collection.storage.retriever_protocol import (
        CodeSource,
        HashCodeRetrieverProtocol,
        PointSource,
        RetrieverProtocol,
    )
    from diptych.collection.storage.saved_retrievers import StoredRetriever
    from diptych.collection.storage.status import Status
    from diptych.encoders.image.picture_regions import PictureRegion
    from diptych.encoders.image.text_in_pictures import PictureText, PictureWord
    from diptych.errors import CollectionError, UnknownRetrieverError
else:
    # Who only asks how a collection is, or where, waits for no engine.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.collection.browse.export": "ExportedPictures",
            "diptych.collection.browse.facets": "Facet FacetValue MapCell Period",
            "diptych.collection.browse.filter": "Filter",
            "diptych.collection.browse.saved": "Album SavedSearch",
            "diptych.collection.browse.suggestions": "Suggestion",
            "diptych.collection.changes.add_report": "AddProgress AddReport",
            "diptych.collection.changes.backup": "BackupReport RestoreReport backup_collection restore_collection",
            "diptych.collection.changes.content_reading": "ReadingReport TextReport",
            "diptych.collection.changes.going_back": "go_back",
            "diptych.collection.changes.maintenance": "CheckReport DuplicateGroup MigrationReport migrate_collection",
            "diptych.collection.changes.retriever_changes": "ReencodeReport",
            "diptych.collection.changes.watching": "FolderWatcher",
            "diptych.collection.collection": "Collection",
            "diptych.collection.planning": "Plan RetrieverCosts plan_collection",
            "diptych.collection.search.answers": "Answer Answers",
            "diptych.collection.search.query": "Query Term parse_query",
            "diptych.collection.storage.change_journal": "Version",
            "diptych.collection.storage.item": "Item Record",
            "diptych.collection.storage.retriever_protocol": (
                "CodeSource HashCodeRetrieverProtocol PointSource RetrieverProtocol"
            ),
            "diptych.collection.storage.saved_retrievers": "StoredRetriever",
            "diptych.collection.storage.status": "Status",
            "diptych.encoders.image.picture_regions": "PictureRegion",
            "diptych.encoders.image.text_in_pictures": "PictureText PictureWord",
            "diptych.errors": "CollectionError UnknownRetrieverError",
        },
    )

__all__ = [
    "AddProgress",
    "AddReport",
    "Album",
    "Answer",
    "Answers",
    "BackupReport",
    "CheckReport",
    "CodeSource",
    "Collection",
    "CollectionError",
    "DuplicateGroup",
    "ExportedPictures",
    "Facet",
    "FacetValue",
    "Filter",
    "FolderWatcher",
    "HashCodeRetrieverProtocol",
    "Item",
    "MapCell",
    "MigrationReport",
    "Period",
    "PictureRegion",
    "PictureText",
    "PictureWord",
    "Plan",
    "PointSource",
    "Query",
    "ReadingReport",
    "Record",
    "ReencodeReport",
    "RestoreReport",
    "RetrieverCosts",
    "RetrieverProtocol",
    "SavedSearch",
    "Status",
    "StoredRetriever",
    "Suggestion",
    "Term",
    "TextReport",
    "UnknownRetrieverError",
    "Version",
    "backup_collection",
    "go_back",
    "migrate_collection",
    "parse_query",
    "plan_collection",
    "restore_collection",
]
