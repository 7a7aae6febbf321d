"""Words that items are found by: how texts are cut, the word index of each engine, and ranking by BM25."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.item import Item
from diptych.collection.sought_words import FILE_NAME, LABEL, PICTURE, folded_words, said_fields
from diptych.collection.store.dialect import Connection
from diptych.encoders.image.picture_parts import PictureText

SAID_COLUMNS = ("kind", "name", "label", "field", "picture", "caption_words")
"""What :func:`said_rows` gives; the ids of the item and of the caption come from who writes them."""

MAX_TOKENS = 16_383
"""How many positions a text may have in PostgreSQL."""
MAX_TOKEN_LETTERS = 255
LONGEST_REPEATED = 40
MAX_CANDIDATES = 10_000
MAX_CANDIDATES_BEHIND_FILTER = 160_000
MAX_RANKED = 1_000
TERM_SATURATION = 1.2
LENGTH_WEIGHT = 0.75
_OWNERS = 1 << 31
"""Items and captions have smaller ids; a row and its owner are read as one number."""

# Han, Kana, Hangul and Thai are written without spaces, or join particles to words.
_UNSPACED = (
    "\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_HANGUL = re.compile("[가-힣]+")
_PARTICLES = (*"은는이가을를에의와과도로만", "에서", "에게", "으로", "까지", "부터")

_SAID_TEXTS = ("name", "label", "field", "picture", "caption_words")
_LISTED = ", ".join(_SAID_TEXTS)


def tokens(text: str) -> list[str]:
    """Return the words of a text as they are indexed: without capitals, accents and whatever is no letter or digit.

    Where words are written without spaces, each two signs that stand together are a token, and the last one by itself.

    >>> tokens("Café-Bar, IMG_2034"), tokens("一只狗"), tokens("हिन्दी")
    (['cafe', 'bar', 'img', '2034'], ['一只', '只狗', '狗'], ['हिनदी'])
    """
    if text.isascii():
        return [word[:MAX_TOKEN_LETTERS] for word in folded_words(text)[:MAX_TOKENS]]
    return [token for word in folded_words(text) for run in _RUN.findall(word) for token in _cut(run)][:MAX_TOKENS]


@lru_cache(maxsize=1 << 14)
def repeated_tokens(text: str) -> tuple[str, ...]:
    """Return the words of a label or a value, which many items have."""
    return tuple(tokens(text))


def _cut(run: str) -> list[str]:
    if not _IS_UNSPACED.match(run):
        return [run[:MAX_TOKEN_LETTERS]]
    return [run[start : start + 2] for start in range(len(run))]


def put_said_rows(db: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of ``said``, each with the ids of its item and its caption before ``SAID_COLUMNS``."""
    after = int(db.value("SELECT max(id) FROM said") or 0)
    db.load("said", ("item", "caption", *SAID_COLUMNS), rows)
    if db.engine == "sqlite":
        db.run(f"INSERT INTO word (rowid, {_LISTED}) SELECT id, {_LISTED} FROM said WHERE id > ?", (after,))


def said_rows(item: Item, picture_text: str | None) -> list[tuple[int, str, str, str, str, str]]:
    """Return the rows of ``said`` of an item, in ``SAID_COLUMNS``: its own and then one for each of its captions."""
    said: dict[str, list[str]] = {FILE_NAME: [], LABEL: [], PICTURE: [], "": []}
    read = None if picture_text is None else PictureText(picture_text)
    for name, text in said_fields(item, read, with_captions=False):
        said[name if name in said else ""] += tokens(text) if len(text) > LONGEST_REPEATED else repeated_tokens(text)
    left = MAX_TOKENS
    columns = []
    for name in (FILE_NAME, LABEL, "", PICTURE):
        # Columns that follow each other in PostgreSQL have a place between them.
        columns.append(" ".join(said[name][: max(0, left)]))
        left -= len(said[name]) + 1
    captions = [(1, "", "", "", "", " ".join(tokens(caption))) for caption in item.captions]
    return [(0, columns[0], columns[1], columns[2], columns[3], ""), *captions]


class Phrase(NamedTuple):
    """Tokens that follow each other; of the last one, the beginning is enough where it ``is_prefix``."""

    tokens: tuple[str, ...]
    is_prefix: bool = False


def phrases_of(word: str) -> list[Phrase]:
    """Return what a word is looked for as; one of these is enough.

    Whether the end of a Korean word is a particle or belongs to it only a dictionary knows, so both are looked for.

    >>> [phrase.tokens for phrase in phrases_of("해변에서")], phrases_of("狗")
    ([('해변', '변에', '에서'), ('해변',)], [Phrase(tokens=('狗',), is_prefix=True)])
    """
    composed = unicodedata.normalize("NFC", word)
    if not _HANGUL.fullmatch(composed):
        return _phrases([composed])
    stems = [composed, *(composed.removesuffix(end) for end in _PARTICLES if composed != end)]
    # The beginning of a longer word has no meaning of its own where it is a single syllable.
    return _phrases(stem + end for stem in stems for end in (("", *_PARTICLES) if len(stem) == 1 else ("",)))


def _phrases(words: Iterable[str]) -> list[Phrase]:
    found = []
    for word in dict.fromkeys(words):
        cut = tokens(word)
        is_lone = bool(cut) and len(cut[-1]) == 1 and _IS_UNSPACED.match(cut[-1]) is not None
        if is_lone and len(cut) > 1 and cut[-2][-1] == cut[-1]:
            # In a text another sign may follow.
            del cut[-1]
            is_lone = False
        if cut:
            found.append(Phrase(tuple(cut), is_lone and not _HANGUL.match(cut[-1])))
    return found


Words = Sequence[Sequence[Phrase]]
"""Words to look for, each with the phrases of which one is enough."""


@dataclass(frozen=True)
class WordHits:
    """Ids of items or captions that hold words, best first, with their scores.

    ``n_found`` counts all that were looked at, ``is_newest_of_more`` says that only the newest of more were.
    """

    ids: IntArray
    scores: FloatArray
    n_found: int = 0
    is_newest_of_more: bool = False


def find_words(
    db: Connection,
    words: Words,
    are_allowed: Callable[[IntArray], BoolArray],
    *,
    needs_all: bool,
    n_rows: int,
    of_captions: bool = False,
    in_captions: bool = True,
    max_found: int | None = None,
) -> WordHits:
    """Return what holds all words, or any of them, ranked by BM25: at most ``MAX_RANKED`` items or captions.

    ``are_allowed`` tells which ids of items may be found; with ``of_captions`` captions are, and it tells theirs.
    An item is found by what is said of itself and by its captions, of which the best one counts; without
    ``in_captions`` by the former alone. ``n_rows`` is how many items and captions there are. Where ``max_found`` or
    more are found, they are only counted.
    """
    words = [phrases for phrases in words if phrases]
    if not words:
        return WordHits(np.zeros(0, dtype=np.int64), np.zeros(0))
    query = _query(db, words, needs_all)
    kind = 1 if of_captions else None if in_captions else 0
    limit = MAX_CANDIDATES
    while True:
        rows, owners = np.divmod(_candidates(db, query, kind, limit + 1), _OWNERS)
        is_of_more = len(rows) > limit
        rows, owners = rows[:limit], owners[:limit]
        is_allowed = are_allowed(owners)
        n_found = len(np.unique(owners[is_allowed]))
        if not is_of_more or n_found >= MAX_RANKED or limit >= MAX_CANDIDATES_BEHIND_FILTER:
            break
        limit *= 4
    if not n_found or (max_found is not None and n_found >= max_found):
        return WordHits(np.zeros(0, dtype=np.int64), np.zeros(0), n_found, is_of_more)
    rows, owners = rows[is_allowed], owners[is_allowed]
    weights = [_weight(db, phrases, n_rows) for phrases in words]
    if n_found > MAX_RANKED:
        # Those that have the rarest words are ranked by what they say, of equal ones the newest.
        rarity = np.zeros(len(rows))
        for weight, phrases in zip(weights, words, strict=True):
            rarity += weight * np.isin(rows, _rows_with(db, _query(db, [phrases], needs_all=True), int(rows.min())))
        best = np.lexsort((-rows, -rarity))
        distinct, first = np.unique(owners[best], return_index=True)
        is_best = np.isin(owners, distinct[np.argsort(first)[:MAX_RANKED]])
        rows, owners = rows[is_best], owners[is_best]
    ids, scores = _by_owner(owners, *_bm25(db, words, weights, rows))
    return WordHits(ids, scores, n_found, is_of_more)


def _query(db: Connection, words: Words, needs_all: bool) -> str:
    """Return the query in the language of the engine; tokens have no signs that would mean anything in it."""
    if db.engine == "sqlite":
        each = [
            " OR ".join(f'"{" ".join(phrase.tokens)}"{" *" * phrase.is_prefix}' for phrase in phrases)
            for phrases in words
        ]
        return (" AND " if needs_all else " OR ").join(f"({one})" for one in each)
    each = [
        " | ".join(
            "(" + " <-> ".join(f"'{token}'" for token in phrase.tokens) + ":*" * phrase.is_prefix + ")"
            for phrase in phrases
        )
        for phrases in words
    ]
    return (" & " if needs_all else " | ").join(f"({one})" for one in each)


def _candidates(db: Connection, query: str, kind: int | None, limit: int) -> IntArray:
    """Return the newest rows of ``said`` that match, each times ``_OWNERS`` and added to the id of its owner."""
    if db.engine == "sqlite":
        source = "word JOIN said s ON s.id = word.rowid WHERE word MATCH ?"
        order = "word.rowid"
        # The index knows columns, but not kinds: rows of others would be read and left out.
        columns = ["", "{name label field picture} : ", "caption_words : "][0 if kind is None else kind + 1]
        query = f"{columns}({query})"
    else:
        source = f"said s WHERE s.words @@ ?::tsquery{'' if kind is None else f' AND s.kind = {kind}'}"
        order = "s.id"
    owner = "caption" if kind == 1 else "item"
    return db.ids(f"SELECT s.id * {_OWNERS} + s.{owner} FROM {source} ORDER BY {order} DESC LIMIT {limit}", (query,))


def _rows_with(db: Connection, query: str, first: int) -> IntArray:
    """Return the matching rows from one on."""
    if db.engine == "sqlite":
        return db.ids(f"SELECT rowid FROM word WHERE word MATCH ? AND rowid >= {first}", (query,))
    return db.ids(f"SELECT id FROM said WHERE words @@ ?::tsquery AND id >= {first}", (query,))


def _weight(db: Connection, phrases: Sequence[Phrase], n_rows: int) -> float:
    """Return how much a word says: the logarithm of the odds that a row has it not."""
    n_having = _count(db, _query(db, [phrases], needs_all=True))
    return math.log(1 + (max(n_rows - n_having, 0) + 0.5) / (n_having + 0.5))


def _bm25(db: Connection, words: Words, weights: Sequence[float], rows: IntArray) -> tuple[BoolArray, FloatArray]:
    """Return which rows are those of captions, and the score of each row.

    That is the sum over its columns, whose lengths are compared among the rows.
    """
    if not len(rows):
        return np.zeros(0, dtype=bool), np.zeros(0)
    condition, values = db.among("id", rows)
    found = db.rows(f"SELECT id, kind, {_LISTED} FROM said WHERE {condition}", values)
    texts = {number: said for number, *said in found}
    kinds, *columns = zip(*(texts[row] for row in rows.tolist()), strict=True)
    scores = np.zeros(len(rows))
    for column in filter(any, columns):
        held = [text.split() for text in column]
        lengths = np.array([len(one) for one in held], dtype=np.float64)
        lengths /= lengths[lengths > 0].mean()
        saturation = TERM_SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths)
        for weight, phrases in zip(weights, words, strict=True):
            times = np.zeros(len(rows))
            for phrase in phrases:
                times += [_times(phrase, one) for one in held]
            scores += weight * times * (TERM_SATURATION + 1) / (times + saturation)
    return np.array(kinds) == 1, scores


def _count(db: Connection, query: str) -> int:
    source = "word WHERE word MATCH ?" if db.engine == "sqlite" else "said WHERE words @@ ?::tsquery"
    found = db.value(f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT {MAX_CANDIDATES + 1}) AS found", (query,))
    return int(found)


def count_words(db: Connection, words: Sequence[str]) -> dict[str, int]:
    """Return how many items and captions hold each of some words; those that none holds are left out."""
    one_of_each = {word: [Phrase((word,))] for word in words}
    if not words or not _count(db, _query(db, list(one_of_each.values()), needs_all=False)):
        return {}
    counts = {word: _count(db, _query(db, [phrases], needs_all=True)) for word, phrases in one_of_each.items()}
    return {word: count for word, count in counts.items() if count}


def _times(phrase: Phrase, held: Sequence[str]) -> int:
    """Return how often a phrase stands in a text."""
    if len(phrase.tokens) == 1:
        (token,) = phrase.tokens
        return sum(one.startswith(token) for one in held) if phrase.is_prefix else held.count(token)
    text, sought = f" {' '.join(held)} ", f" {' '.join(phrase.tokens)}"
    return text.count(sought if phrase.is_prefix else f"{sought} ")


def _by_owner(owners: IntArray, is_caption: BoolArray, scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the items or captions of rows with their scores, best first; equal ones by id."""
    ids, which = np.unique(owners, return_inverse=True)
    own = np.zeros(len(ids))
    best = np.zeros(len(ids))
    np.add.at(own, which[~is_caption], scores[~is_caption])
    np.maximum.at(best, which[is_caption], scores[is_caption])
    order = np.lexsort((ids, -(own + best)))
    return ids[order], (own + best)[order]
