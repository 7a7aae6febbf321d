"""Items whose pictures are the same, byte for byte or nearly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.collection.store.dialect import Connection
from diptych.errors import InvalidInputError

NEIGHBOURS = 20
CONTENTS_AT_ONCE = 1000
Neighbours = Callable[[IntArray], tuple[IntArray, FloatArray]]
"""Gives, for some contents, the contents that are most similar (−1 for none), and the cosines."""


@dataclass(frozen=True)
class DuplicateGroup:
    """Items whose pictures are the same: byte for byte (``exact``), or nearly, by the cosine of their features.

    ``similarity`` is the smallest cosine of a link that holds the group together; 1 for exact copies.
    """

    exact: bool
    ids: tuple[str, ...]
    paths: tuple[str, ...]
    similarity: float


def exact_duplicates(db: Connection) -> list[DuplicateGroup]:
    """Return the groups of items that have the same picture, those of the earliest items first."""
    rows = db.rows(
        "SELECT content FROM item WHERE content IS NOT NULL GROUP BY content HAVING count(*) > 1 ORDER BY min(id)"
    )
    return _groups(db, [[content] for (content,) in rows], None)


def near_duplicates(db: Connection, nearest: Neighbours, threshold: float) -> list[DuplicateGroup]:
    """Return the groups of different pictures linked by a cosine of at least ``threshold``.

    Each picture is compared with its nearest neighbours, so a larger group is linked from one to the next.
    """
    if not -1 <= threshold <= 1:
        raise InvalidInputError(f"threshold is a cosine between -1 and 1, got {threshold}")
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    contents = db.ids("SELECT DISTINCT content FROM item WHERE content IS NOT NULL ORDER BY content")
    lefts, rights, cosines = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for start in range(0, len(contents), CONTENTS_AT_ONCE):
        some = contents[start : start + CONTENTS_AT_ONCE]
        found, scores = nearest(some)
        rows, columns = np.nonzero((scores >= threshold) & (found != some[:, None]) & np.isin(found, contents))
        lefts.append(rows + start)
        rights.append(np.searchsorted(contents, found[rows, columns]))
        cosines.append(scores[rows, columns])
    left, right, weights = np.concatenate(lefts), np.concatenate(rights), np.concatenate(cosines)
    n_contents = len(contents)
    links = coo_matrix((np.ones(len(left)), (left, right)), (n_contents, n_contents))
    n_groups, group_of = connected_components(links, directed=False)
    weakest = np.full(n_groups, np.inf)
    np.minimum.at(weakest, group_of[left], weights)
    order = np.argsort(group_of, kind="stable")
    groups = np.split(contents[order], np.cumsum(np.bincount(group_of, minlength=n_groups))[:-1])
    linked = [number for number in range(n_groups) if len(groups[number]) > 1]
    return _groups(db, [groups[number].tolist() for number in linked], [float(weakest[number]) for number in linked])


def _groups(
    db: Connection, groups: Sequence[Sequence[int]], similarities: Sequence[float] | None
) -> list[DuplicateGroup]:
    condition, values = db.among("content", [content for group in groups for content in group])
    items: dict[int, list[tuple[str, str]]] = {}
    for content, name, path in db.rows(f"SELECT content, name, path FROM item WHERE {condition} ORDER BY id", values):
        items.setdefault(content, []).append((name, str(path)))
    made = []
    for number, group in enumerate(groups):
        alike = [item for content in group for item in items.get(content, ())]
        ids, paths = tuple(name for name, _ in alike), tuple(path for _, path in alike)
        made.append(
            DuplicateGroup(similarities is None, ids, paths, 1.0 if similarities is None else similarities[number])
        )
    return made
