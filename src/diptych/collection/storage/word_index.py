"""The words of captions: how the engine's full-text index cuts them, and how it is asked for them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

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
_KOREAN_WORD = re.compile(r"[가-힣]+")
_PARTICLES = ("", *"은는이가을를에의와과도로만", "에서", "에게", "으로", "까지", "부터")


def index_words(captions: Any) -> bool:
    """Let the engine find captions by their words; say whether there was anything to do.

    What is not indexed yet, the engine reads besides. An index that cuts words in another way is made again.
    """
    for index in captions.list_indices():
        if "text" in index.columns and _CUTTING.items() <= (index.index_details or {}).items():
            return False
    config = search_package("lancedb.index").FTS(with_position=False, **_CUTTING)
    captions.create_index("text", config=config)
    return True


def word_query(words: str) -> Any:
    """Return the query for the captions with the most of some words."""
    composed = unicodedata.normalize("NFC", words)
    return search_package("lancedb.query").MatchQuery(_KOREAN_WORD.sub(_with_particles, composed), "text")


def lacks_words(table: Any) -> bool:
    """Say whether many texts are in no full-text index yet, so that every search by words reads them."""
    names = [index.name for index in table.list_indices() if index.index_type == "FTS"]
    return any(table.index_stats(name).num_unindexed_rows >= _MANY_UNINDEXED for name in names)


def _with_particles(match: re.Match[str]) -> str:
    """Return a Korean word as it is written alone and before each of the particles that are joined to nouns.

    Whether the end of a word is such a particle or belongs to it only a dictionary knows, so both are asked for.
    """
    stems = {match[0], *(match[0].removesuffix(end) for end in _PARTICLES if match[0] != end)}
    return " ".join(stem + end for stem in sorted(stems) for end in _PARTICLES)
