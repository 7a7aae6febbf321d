"""Stored pictures and texts: added, kept, searched."""

from diptych.collection.browse.facets import Facet, FacetValue
from diptych.collection.browse.filter import Filter
from diptych.collection.browse.suggestions import Suggestion
from diptych.collection.changes.adding import AddProgress, AddReport
from diptych.collection.changes.backup import BackupReport, RestoreReport, backup_collection, restore_collection
from diptych.collection.changes.maintenance import (
    CheckReport,
    DuplicateGroup,
    MigrationReport,
    Status,
    migrate_collection,
)
from diptych.collection.changes.retriever_changes import ReencodeReport
from diptych.collection.changes.watching import FolderWatcher
from diptych.collection.collection import Collection
from diptych.collection.planning import Plan, RetrieverCosts, plan_collection
from diptych.collection.search.query import Query, Term, parse_query
from diptych.collection.search.snapshot import Answer, Answers
from diptych.collection.storage.item import Item, Record
from diptych.collection.storage.retriever_protocol import HashCodeRetrieverProtocol, RetrieverProtocol
from diptych.collection.storage.saved_retrievers import StoredRetriever
from diptych.errors import CollectionError, UnknownRetrieverError

__all__ = [
    "AddProgress",
    "AddReport",
    "Answer",
    "Answers",
    "BackupReport",
    "CheckReport",
    "CodeSource",
    "Collection",
    "CollectionError",
    "DuplicateGroup",
    "Facet",
    "FacetValue",
    "Filter",
    "FolderWatcher",
    "HashCodeRetrieverProtocol",
    "Item",
    "MigrationReport",
    "Plan",
    "PointSource",
    "Query",
    "Record",
    "ReencodeReport",
    "RestoreReport",
    "RetrieverCosts",
    "RetrieverProtocol",
    "Status",
    "StoredRetriever",
    "Suggestion",
    "Term",
    "UnknownRetrieverError",
    "backup_collection",
    "migrate_collection",
    "parse_query",
    "plan_collection",
    "restore_collection",
]

# Former names, which imports may still use.
PointSource = RetrieverProtocol
CodeSource = HashCodeRetrieverProtocol
