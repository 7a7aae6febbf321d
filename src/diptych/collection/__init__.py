"""Stored pictures and texts: added, kept, searched."""

from diptych.collection.add_progress import AddProgress
from diptych.collection.add_report import AddReport
from diptych.collection.answer import Answer
from diptych.collection.answers import Answers
from diptych.collection.check_report import CheckReport
from diptych.collection.code_source import CodeSource
from diptych.collection.collection import Collection
from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import PointSource
from diptych.collection.duplicate_group import DuplicateGroup
from diptych.collection.facet import Facet
from diptych.collection.facet_value import FacetValue
from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.query import Query
from diptych.collection.query_parser import parse_query
from diptych.collection.record import Record
from diptych.collection.reencode_report import ReencodeReport
from diptych.collection.status import Status
from diptych.collection.stored_retriever import StoredRetriever
from diptych.collection.suggestion import Suggestion
from diptych.collection.term import Term
from diptych.collection.unknown_retriever_error import UnknownRetrieverError

__all__ = [
    "AddProgress",
    "AddReport",
    "Answer",
    "Answers",
    "CheckReport",
    "CodeSource",
    "Collection",
    "CollectionError",
    "DuplicateGroup",
    "Facet",
    "FacetValue",
    "Filter",
    "Item",
    "PointSource",
    "Query",
    "Record",
    "ReencodeReport",
    "Status",
    "StoredRetriever",
    "Suggestion",
    "Term",
    "UnknownRetrieverError",
    "parse_query",
]
