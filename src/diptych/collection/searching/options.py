"""The options of a search, declared once for the library, the command line and the REST API.

Imported by ``diptych search --help``, so it needs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

Target = Literal["images", "texts"]
RerankBy = Literal["codes", "features"]
Sort = Literal["relevance", "taken", "added", "name"]

RERANKINGS: tuple[str, ...] = ("codes", "features")
SORTS: tuple[str, ...] = ("relevance", "taken", "added", "name")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a query is answered: what the command line, the REST API and saved searches take and pass on as it is.

    A new option is a field here and what it does in a search; its metadata are what help and the API say of it, and
    the bounds of numbers (``ge``, ``le``).
    """

    target: Target = field(default="images", metadata={"description": "What to find: pictures or texts."})
    exact: bool | None = field(
        default=None,
        metadata={"description": "Compare everything (true), use the index (false), or decide by size (null)."},
    )
    min_probability: float | None = field(
        default=None, metadata={"description": "Leave out answers that are less likely relevant.", "ge": 0, "le": 1}
    )
    retriever: str | None = field(
        default=None,
        metadata={"description": "The name of a search model (retriever); by default the active one."},
    )
    regions: bool = field(
        default=True, metadata={"description": "Whether parts of pictures are compared too, where they have been read."}
    )
    rerank: int | None = field(
        default=None,
        metadata={"description": "How many of the nearest hash codes are scored again.", "ge": 1, "le": 10_000},
    )
    rerank_by: RerankBy = field(
        default="codes", metadata={"description": "Score these again by their codes, or by their stored features."}
    )
    sort: Sort = field(
        default="relevance",
        metadata={
            "description": "The order of the good answers, the best thousand at most: relevance, taken or added (the "
            "latest first), or name. The click log remembers only searches by relevance."
        },
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options by name, without what a class adds to them."""
        return {one.name: getattr(self, one.name) for one in fields(SearchOptions)}
