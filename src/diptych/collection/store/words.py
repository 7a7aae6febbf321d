"""Words that items are found by: how texts are cut, the word index of each engine, and ranking by BM25."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from diptych.collection.search.sought_words import FILE_NAME, LABEL, PICTURE, said_fields
from diptych.collection.storage.item import Item
from diptych.collection.store.dialect import Connection
from diptych.encoders.image.picture_parts import PictureText

SAID_COLUMNS = ("kind", "name", "label", "field", "picture", "caption_words")
"""What :func:`said_rows` gives; the ids of the item and of the caption come from who writes them."""

MAX_TOKENS = 16_383
"""How many positions a text may have in PostgreSQL."""
MAX_TOKEN_LETTERS = 255
LOOKED_AT = 10_000
MOST_LOOKED_AT = 160_000
RANKED = 1_000

_ASCII_WORD = re.compile(r"[a-z0-9]+")
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
_OLD = ", ".join(f"old.{name}" for name in _SAID_TEXTS)
_NEW = ", ".join(f"new.{name}" for name in _SAID_TEXTS)
_FORGET = f"INSERT INTO word (word, rowid, {_LISTED}) VALUES ('delete', old.id, {_OLD});"
_LEARN = f"INSERT INTO word (rowid, {_LISTED}) VALUES (new.id, {_NEW});"
# FTS5 goes by the texts in ``said``, so only triggers may write to it: they give it the exact former values.
_SQLITE_INDEX = (
    f"CREATE VIRTUAL TABLE word USING fts5({_LISTED}, content='said', content_rowid='id', tokenize='ascii')",
    f"CREATE TRIGGER said_added AFTER INSERT ON said BEGIN {_LEARN} END",
    f"CREATE TRIGGER said_removed AFTER DELETE ON said BEGIN {_FORGET} END",
    f"CREATE TRIGGER said_changed AFTER UPDATE ON said BEGIN {_FORGET} {_LEARN} END",
)
# Columns have a place between them, so that no phrase reaches from one into the next.
_POSTGRES_INDEX = (
    """
    CREATE FUNCTION said_words(texts text[]) RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
        SELECT coalesce(string_agg(quote_literal(token) || ':' || place, ' '), '')::tsvector
        FROM unnest(string_to_array(array_to_string(texts, '  '), ' ')) WITH ORDINALITY AS said (token, place)
        WHERE token <> ''
    $$
    """,
    f"ALTER TABLE said ADD COLUMN words tsvector GENERATED ALWAYS AS (said_words(ARRAY[{_LISTED}])) STORED",
    "CREATE INDEX said_words_index ON said USING gin (words) WITH (fastupdate = off)",
)


def tokens(text: str) -> list[str]:
    """Return the words of a text as they are indexed: without capitals, accents and whatever is no letter or digit.

    Where words are written without spaces, each two signs that stand together are a token, and the last one by itself.

    >>> tokens("Café-Bar, IMG_2034"), tokens("一只狗"), tokens("हिन्दी")
    (['cafe', 'bar', 'img', '2034'], ['一只', '只狗', '狗'], ['हिनदी'])
    """
    if text.isascii():
        return [word[:MAX_TOKEN_LETTERS] for word in _ASCII_WORD.findall(text.lower())[:MAX_TOKENS]]
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    # Folded letters may come apart once more, as İ does.
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", decomposed) if not unicodedata.combining(sign))
    composed = unicodedata.normalize("NFC", plain)
    spaced = "".join(sign if sign.isalnum() or unicodedata.category(sign)[0] == "M" else " " for sign in composed)
    return [token for word in spaced.split() for run in _RUN.findall(word) for token in _cut(run)][:MAX_TOKENS]


def _cut(run: str) -> list[str]:
    if not _IS_UNSPACED.match(run):
        return [run[:MAX_TOKEN_LETTERS]]
    return [run[start : start + 2] for start in range(len(run))]


def create_word_index(db: Connection) -> None:
    """Make the word index over ``said``, which the engine keeps up to date from then on."""
    statements = _SQLITE_INDEX if db.engine == "sqlite" else _POSTGRES_INDEX
    for statement in statements:
        db.run(statement)


def said_rows(item: Item, picture_text: str | None) -> list[tuple[int, str, str, str, str, str]]:
    """Return the rows of ``said`` of an item, in ``SAID_COLUMNS``: its own and then one for each of its captions."""
    said: dict[str, list[str]] = {FILE_NAME: [], LABEL: [], PICTURE: [], "": []}
    own = replace(item, captions=())
    for name, text in said_fields(own, None if picture_text is None else PictureText(picture_text)):
        said[name if name in said else ""] += tokens(text)
    left = MAX_TOKENS
    columns = []
    for name in (FILE_NAME, LABEL, "", PICTURE):
        # Columns that follow each other in PostgreSQL have a place between them.
        columns.append(" ".join(said[name][: max(0, left)]))
        left -= len(said[name]) + 1
    captions = [(1, "", "", "", "", " ".join(tokens(caption))) for caption in item.captions]
    return [(0, columns[0], columns[1], columns[2], columns[3], ""), *captions]
