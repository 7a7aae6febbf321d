"""A query and how it is answered; the library, the command line and the service share it."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.collection.filter import Filter
from diptych.collection.retriever_protocol import Side
from diptych.collection.searching.options import RERANKINGS, SORTS, SearchOptions
from diptych.collection.searching.query import Query
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class SearchRequest(SearchOptions):
    """A query and how it is answered.

    ``offset`` answers are left out before the ``k`` that are wanted. ``hybrid`` is the weight of words in a ranking
    that joins them with similarity by reciprocal rank, True is 0.5, False leaves words out; None looks for those words
    alone that ask for something by its name.
    """

    query: Query
    k: int = 10
    offset: int = 0
    filter: Filter | None = None
    hybrid: float | bool | None = None

    def __post_init__(self) -> None:
        if self.k < 1 or self.offset < 0:
            raise InvalidInputError(f"k must be at least 1 and offset at least 0, got {self.k} and {self.offset}")
        if self.hybrid is not None and not 0 <= float(self.hybrid) <= 1:
            raise InvalidInputError(f"hybrid is the weight of the words, between 0 and 1, got {self.hybrid}")
        if self.hybrid not in (None, False) and not self.query.words:
            raise InvalidInputError("a hybrid search looks for words, but the query has none; add words")
        if self.rerank is not None and self.rerank < 1:
            raise InvalidInputError(
                f"rerank is how many of the nearest codes to score again, at least 1, got {self.rerank}"
            )
        if self.target not in ("images", "texts"):
            raise InvalidInputError(f"target must be 'images' or 'texts', got {self.target!r}")
        for name, known in (("rerank_by", RERANKINGS), ("sort", SORTS)):
            if (given := getattr(self, name)) not in known:
                raise InvalidInputError(f"{name} must be one of {', '.join(known)}, got {given!r}")

    @property
    def side(self) -> Side:
        """The side of the space that is searched."""
        return "image" if self.target == "images" else "text"

    @property
    def word_share(self) -> float | None:
        """The weight of words in a joined ranking, None where only those that name something are looked for."""
        return None if self.hybrid is None else 0.5 if self.hybrid is True else float(self.hybrid)
