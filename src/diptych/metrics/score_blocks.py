"""Scores of a few queries at a time, from points of a space or from ready matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.space import Direction, Space

_SCORE_BYTES = 8
# Scoring a tile holds a few temporaries of its size and a few copies of its points.
_TILE_BYTES = 6 * _SCORE_BYTES


def check_points(queries: AnyArray, gallery: AnyArray, *, n_queries: int, n_gallery: int) -> None:
    """Raise an error unless the points are matrices with as many rows as the relevance has queries and items."""
    for name, points, expected in (("queries", queries, n_queries), ("gallery", gallery, n_gallery)):
        if points.ndim != 2:
            raise InvalidInputError(f"{name} must be a matrix, one point per row, got {points.ndim} dimensions")
        if not len(points):
            raise InvalidInputError(f"{name} is empty; there is nothing to rank")
        if len(points) != expected:
            raise InvalidInputError(f"{name} has {len(points)} points, but the relevance knows {expected}")


def point_blocks(
    queries: AnyArray, gallery: AnyArray, space: Space, direction: Direction, *, rows: int, memory: int
) -> Iterator[AnyArray]:
    """Yield the scores of ``rows`` queries at a time, scored in tiles whose temporaries stay below ``memory`` bytes."""
    for block in row_blocks(len(queries), rows):
        yield _score(queries[block], gallery, space, direction, memory)


def _score(queries: AnyArray, gallery: AnyArray, space: Space, direction: Direction, memory: int) -> AnyArray:
    width = gallery.shape[1]
    tile_rows = max(1, min(len(queries), memory // (4 * _TILE_BYTES * max(1, width))))
    columns = max(1, memory // (_TILE_BYTES * (tile_rows + width)))
    scores: AnyArray | None = None
    for row_tile in row_blocks(len(queries), tile_rows):
        for column_tile in row_blocks(len(gallery), columns):
            tile = space.compare(queries[row_tile], gallery[column_tile], direction)
            if tile.shape == (len(queries), len(gallery)):
                return tile
            if scores is None:
                scores = np.empty((len(queries), len(gallery)), dtype=tile.dtype)
            scores[row_tile, column_tile] = tile
    if scores is None:
        raise InvalidInputError("queries or gallery is empty; there is nothing to rank")
    return scores


def matrix_blocks(scores: ArrayLike | Iterable[ArrayLike], *, n_gallery: int, rows: int) -> Iterator[AnyArray]:
    """Yield ``rows`` queries at a time from a ready matrix of scores, or from an iterator over blocks of its rows."""
    given = scores if isinstance(scores, Iterator) else iter([scores])
    for part in given:
        matrix = np.asarray(part)
        _check_scores(matrix, n_gallery)
        for block in row_blocks(len(matrix), rows):
            yield matrix[block]


def _check_scores(matrix: AnyArray, n_gallery: int) -> None:
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"scores must be a matrix, queries × gallery, got {matrix.ndim} dimensions; pass iter(blocks) for blocks"
        )
    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(f"scores must be real numbers, got dtype {matrix.dtype}")
    if matrix.shape[1] == 0:
        raise InvalidInputError("the gallery is empty; there is nothing to rank")
    if matrix.shape[1] != n_gallery:
        raise InvalidInputError(f"scores have {matrix.shape[1]} columns, but the relevance knows {n_gallery} items")
