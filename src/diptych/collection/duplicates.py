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

    Blocks of rows meet blocks of rows, and the links of each are taken into the groups at once, so memory stays
    bounded; the time grows with the square of the number.
    """
    group_of: IntArray = np.arange(len(contents))
    weakest = np.full(len(contents), np.inf)
    for left, right, cosines in _links(unit_rows(features), threshold):
        np.minimum.at(weakest, left, cosines)
        group_of = _joined(group_of, group_of[left], group_of[right])
    groups = []
    by_group = np.argsort(group_of, kind="stable")
    for rows in np.split(by_group, np.flatnonzero(np.diff(group_of[by_group])) + 1):
        if len(rows) < 2:
            continue
        items = [item for row in rows.tolist() for item in catalogue.by_content[contents[row]]]
        ids, paths = tuple(item.id for item in items), tuple(str(item.path) for item in items)
        groups.append(DuplicateGroup(False, ids, paths, float(weakest[rows].min())))
    return groups


def _joined(group_of: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return the groups after those on the left are one with those on the right, in the order of their first rows."""
    apart = left != right
    if not apart.any():
        return group_of
    shape = (len(group_of), len(group_of))
    links = coo_matrix((np.ones(np.count_nonzero(apart)), (left[apart], right[apart])), shape)
    return np.asarray(connected_components(links, directed=False)[1][group_of])


def _links(features: FloatArray, threshold: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for rows in row_blocks(len(features), _BLOCK):
        for columns in row_blocks(rows.stop, _BLOCK):
            cosines = features[rows] @ features[columns].T
            left, right = np.nonzero(cosines >= threshold)
            pairs = left + rows.start > right + columns.start
            if pairs.any():
                left, right = left[pairs], right[pairs]
                yield left + rows.start, right + columns.start, cosines[left, right]
