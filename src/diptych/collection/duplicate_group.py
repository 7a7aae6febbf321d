"""Pictures that show the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DuplicateGroup:
    """Items whose pictures are the same: byte for byte (``exact``), or nearly, by the cosine of their features.

    ``similarity`` is the smallest cosine of a link that holds the group together; 1 for exact copies.
    """

    exact: bool
    ids: tuple[str, ...]
    paths: tuple[str, ...]
    similarity: float
