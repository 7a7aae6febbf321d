"""Exact and near duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from diptych.arrays import FloatArray, IntArray, row_blocks, unit_rows
from diptych.collection.catalogue import Catalogue
from diptych.collection.duplicate_group import DuplicateGroup

_BLOCK = 2048


def exact_groups(catalogue: Catalogue) -> list[DuplicateGroup]:
    """Return the groups of items with the same bytes."""
    return [
        DuplicateGroup(True, tuple(item.id for item in items), tuple(str(item.path) for item in items), 1.0)
        for items in catalogue.by_content.values()
        if len(items) > 1
    ]


def near_groups(
    catalogue: Catalogue, contents: Sequence[str], features: FloatArray, threshold: float
) -> list[DuplicateGroup]:
    """Return the groups of different contents linked by a cosine of at least ``threshold``.

    Blocks of rows meet blocks of rows, so memory stays bounded; the time grows with the square of the number.
    """
    links = list(_links(unit_rows(features), threshold))
    if not links:
        return []
    left, right, cosines = (np.concatenate(parts) for parts in zip(*links, strict=True))
    shape = (len(contents), len(contents))
    _, group_of = connected_components(coo_matrix((np.ones(len(left)), (left, right)), shape), directed=False)
    weakest = np.full(len(contents), np.inf)
    np.minimum.at(weakest, group_of[left], cosines)
    groups = []
    for group in np.unique(group_of[left]):
        items = [
            item for row in np.flatnonzero(group_of == group).tolist() for item in catalogue.by_content[contents[row]]
        ]
        ids, paths = tuple(item.id for item in items), tuple(str(item.path) for item in items)
        groups.append(DuplicateGroup(False, ids, paths, float(weakest[group])))
    return groups


def _links(features: FloatArray, threshold: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for rows in row_blocks(len(features), _BLOCK):
        for columns in row_blocks(rows.stop, _BLOCK):
            cosines = features[rows] @ features[columns].T
            left, right = np.nonzero(cosines >= threshold)
            pairs = left + rows.start > right + columns.start
            if pairs.any():
                left, right = left[pairs], right[pairs]
                yield left + rows.start, right + columns.start, cosines[left, right]
