"""Items whose pictures are the same, byte for byte or nearly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray, IntArray, unit_rows
from diptych.collection.packages import search_package
from diptych.collection.store.dialect import Connection
from diptych.collection.store.points import read_features
from diptych.errors import InvalidInputError

MAX_EXACT = 50_000
NEIGHBOURS = 20
ROWS_PER_LIST = 40
LISTS_SEARCHED = 16
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


def duplicates(db: Connection, encoder: int | None, threshold: float | None) -> list[DuplicateGroup]:
    """Return groups of items with the same picture: exact ones, and near ones by the features of an encoder."""
    if threshold is not None and not -1 <= threshold <= 1:
        raise InvalidInputError(f"threshold is a cosine between -1 and 1, got {threshold}")
    groups = exact_duplicates(db)
    if threshold is None or encoder is None:
        return groups
    there = "SELECT content FROM item WHERE content IS NOT NULL"
    contents = db.ids(
        f"SELECT content FROM feature WHERE encoder = ? AND content IN ({there}) ORDER BY content", (encoder,)
    )
    return groups + near_duplicates(db, contents, feature_neighbours(db, encoder, contents), threshold)


def feature_neighbours(db: Connection, encoder: int, contents: IntArray) -> Neighbours:
    """Return a function that finds the nearest neighbours of contents by the cosine of their features.

    Above 50,000 contents these are found by an inverted file and float16.
    """
    faiss = search_package("faiss")

    width = int(db.value("SELECT width FROM encoder WHERE id = ?", (encoder,)) or 0)
    n_lists = int(2 * len(contents) ** 0.5)
    form = "Flat" if len(contents) <= MAX_EXACT else f"IVF{n_lists},SQfp16"
    index = faiss.index_factory(width, form, faiss.METRIC_INNER_PRODUCT)
    if len(contents) > MAX_EXACT:
        sample = np.random.default_rng(0).choice(contents, min(len(contents), ROWS_PER_LIST * n_lists), replace=False)
        index.train(unit_rows(read_features(db, encoder, sample)[1]))
        index.nprobe = LISTS_SEARCHED
    for start in range(0, len(contents), CONTENTS_AT_ONCE):
        index.add(unit_rows(read_features(db, encoder, contents[start : start + CONTENTS_AT_ONCE])[1]))

    def nearest(some: IntArray) -> tuple[IntArray, FloatArray]:
        # A picture is its own nearest neighbour.
        scores, places = index.search(
            unit_rows(read_features(db, encoder, some)[1]), min(NEIGHBOURS + 1, len(contents))
        )
        return np.where(places < 0, -1, contents[places]), scores

    return nearest


def near_duplicates(db: Connection, contents: IntArray, nearest: Neighbours, threshold: float) -> list[DuplicateGroup]:
    """Return the groups of different pictures, out of some in order, linked by a cosine of at least ``threshold``.

    Each picture is compared with its nearest neighbours, so a larger group is linked from one to the next.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    lefts: list[IntArray] = [np.zeros(0, np.int64)]
    rights: list[IntArray] = [np.zeros(0, np.int64)]
    cosines: list[FloatArray] = [np.zeros(0)]
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
