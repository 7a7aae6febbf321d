"""Words of captions, names, labels, metadata and pictures: how the engine's indexes cut them and are asked for them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from diptych.collection.storage.clear_errors import with_clear_errors
from diptych.collection.storage.layout import search_package

# Capitals and accents do not count. Words are cut as Unicode has it, and where they are written without spaces, in
# Chinese, Japanese and Thai, by a dictionary of the engine's own.
_CUTTING = {
    "base_tokenizer": "icu/split",
    "lower_case": True,
    "ascii_folding": True,
    "stem": False,
    "remove_stop_words": False,
}
_MANY_UNINDEXED = 10_000
# Joined columns of so many rows take no longer than another query.
_FEW_ROWS = 20_000
_KOREAN_WORD = re.compile(r"[가-힣]+")
_PARTICLES = ("", *"은는이가을를에의와과도로만", "에서", "에게", "으로", "까지", "부터")

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Holder = Literal["caption", "item", "content"]
# Where words stand: the table, its columns, what a row of it belongs to, and the column that names that.
_TABLES: dict[str, tuple[tuple[str, ...], Holder, str]] = {
    "captions": (("text",), "caption", "id"),
    "items": (("path", "labels", "metadata"), "item", "added_ns"),
    "picture_texts": (("text",), "content", "key"),
}


@dataclass(frozen=True)
class WordHits:
    """What holds words, best first by BM25: ids of captions, times of addition of items, or contents of pictures."""

    holder: Holder
    keys: list[Any]
    scores: list[float]


@with_clear_errors
class WordIndex:
    """The engine's full-text indexes; ``table`` gives a table of the store, ``committed`` is told of changes to it."""

    def __init__(self, folder: Path, table: Callable[[str], Any], committed: Callable[[str], None]) -> None:
        self.folder = folder
        self._table = table
        self._committed = committed
        self._ready: set[str] = set()
        self._prepared: dict[str, Any] = {}

    def prepare(self) -> None:
        """Let the engine find words; only the writer calls this. What is not indexed yet, the engine reads besides."""
        for name, (columns, _, _) in _TABLES.items():
            table = self._table(name)
            # Where indexes have come or gone, it is another table.
            if table is None or table is self._prepared.get(name):
                continue
            for column in _unprepared(table, columns):
                config = search_package("lancedb.index").FTS(with_position=False, **_CUTTING)
                table.create_index(column, config=config)
                self._committed(name)
            self._prepared[name] = table
            self._ready.add(name)

    def any_of(self, words: str, limit: int, *, captions: bool = True) -> list[WordHits]:
        """Return what holds the most of some words, in captions as well or everywhere else."""
        names = [name for name in _TABLES if captions or name != "captions"]
        return self._asked(names, lambda name, table: _hits_of(name, table, [(words,)], limit, needs_all=False))

    def all_of(self, words: Sequence[Sequence[str]], limit: int, field_names: Set[str] = frozenset()) -> list[WordHits]:
        """Return what holds every one of some words, each in one of its forms.

        ``field_names`` are words that metadata are called by.
        """
        return self._asked(_TABLES, lambda name, table: _hits_of(name, table, words, limit, True, field_names))

    def _asked(self, names: Iterable[str], ask: Callable[[str, Any], list[WordHits]]) -> list[WordHits]:
        tables = [(name, table) for name in names if (table := self._table(name)) is not None]
        filled = [(name, table) for name, table in tables if table.count_rows()]
        ready = [(name, table) for name, table in filled if self._is_ready(name, table, _TABLES[name][0])]
        return [hits for found in _side_by_side(lambda one: ask(*one), ready) for hits in found]

    def _is_ready(self, name: str, table: Any, columns: Sequence[str]) -> bool:
        # Another process may have made the indexes.
        if name not in self._ready and {column for index in _indexes(table) for column in index.columns} >= {*columns}:
            self._ready.add(name)
        return name in self._ready


def lacks_words(table: Any) -> bool:
    """Return True if many texts are in no full-text index yet, so that every search by words reads them."""
    return any(table.index_stats(index.name).num_unindexed_rows >= _MANY_UNINDEXED for index in _indexes(table))


def _indexes(table: Any) -> list[Any]:
    return [index for index in table.list_indices() if index.index_type == "FTS"]


def _unprepared(table: Any, columns: Sequence[str]) -> list[str]:
    """Return the columns whose words are not indexed."""
    prepared = {column for index in _indexes(table) for column in index.columns}
    return [column for column in columns if column not in prepared]


def _searched(columns: Sequence[str], names_fields: bool) -> list[str]:
    """Return the columns to look for a word in: metadata are stored with their names, which nobody looks for."""
    return [column for column in columns if column != "metadata" or not names_fields]


def _hits_of(
    name: str,
    table: Any,
    words: Sequence[Sequence[str]],
    limit: int,
    needs_all: bool,
    field_names: Set[str] = frozenset(),
) -> list[WordHits]:
    columns = _TABLES[name][0]
    each = [
        [_match(" ".join(forms), column, needs_all and len(forms) == 1) for column in _searched(columns, is_name)]
        for forms, is_name in ((forms, not field_names.isdisjoint(forms)) for forms in words)
    ]
    if table.count_rows() > _FEW_ROWS and len(columns) > 1:
        # The engine takes long to join columns where many rows have the words, as folders are called by.
        if len(words) == 1:
            return _side_by_side(lambda match: _hits(table, name, match, limit), each[0])
        together = _match(" ".join(forms[0] for forms in words), columns[0], True)
        if len((in_one := _hits(table, name, together, limit)).keys) >= limit:
            return [in_one]
    return [_hits(table, name, _joined("MUST", [_joined("SHOULD", matches) for matches in each]), limit)]


def _hits(table: Any, name: str, query: Any, limit: int) -> WordHits:
    _, holder, key = _TABLES[name]
    found = table.search(query).select([key, "_score"]).limit(limit).to_arrow()
    return WordHits(holder, found[key].to_pylist(), found["_score"].to_pylist())


def _side_by_side(ask: Callable[[Argument], Result], each: Sequence[Argument]) -> list[Result]:
    """Return the answers to queries that are asked at once: most of the time of one goes into opening small files."""
    if len(each) < 2:
        return [ask(one) for one in each]
    with ThreadPoolExecutor(len(each)) as threads:
        return list(threads.map(ask, each))


def _joined(occur: Literal["MUST", "SHOULD"], queries: Sequence[Any]) -> Any:
    """Return a query for what meets all of some queries, or any of them."""
    query = search_package("lancedb.query")
    return queries[0] if len(queries) == 1 else query.BooleanQuery([(query.Occur[occur], one) for one in queries])


def _match(word: str, column: str, needs_all: bool) -> Any:
    query = search_package("lancedb.query")
    composed = unicodedata.normalize("NFC", word)
    forms = _KOREAN_WORD.sub(_with_particles, composed)
    # One of the forms is enough, but every part of a word that the engine cuts is needed.
    operator = query.FullTextOperator.AND if needs_all and forms == composed else query.FullTextOperator.OR
    return query.MatchQuery(forms, column, operator=operator)


def _with_particles(match: re.Match[str]) -> str:
    """Return a Korean word as it is written alone and before each of the particles that are joined to nouns.

    Whether the end of a word is such a particle or belongs to it only a dictionary knows, so both are asked for.
    """
    stems = {match[0], *(match[0].removesuffix(end) for end in _PARTICLES if match[0] != end)}
    return " ".join(stem + end for stem in sorted(stems) for end in _PARTICLES)
