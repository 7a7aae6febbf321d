"""Which items a map shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from diptych.collection import Item


def map_sample(items: Iterable[Item], costs: Mapping[str, int], most: int, seed: int) -> list[Item]:
    """Return items whose points, ``costs`` by id, are at most ``most`` together, in the order of addition.

    Where there are too many, labels take turns, so that a rare label is seen beside a common one; within a label items
    are drawn at random. Items without points are left out.
    """
    usable = [item for item in items if costs.get(item.id, 0) > 0]
    if sum(costs[item.id] for item in usable) <= most:
        return usable
    chosen: set[str] = set()
    left = most
    for item in _in_turns(usable, seed):
        if costs[item.id] <= left:
            chosen.add(item.id)
            left -= costs[item.id]
        if left <= 0:
            break
    return [item for item in usable if item.id in chosen]


def _in_turns(items: list[Item], seed: int) -> list[Item]:
    order = np.random.default_rng(seed).permutation(len(items))
    seen: dict[str, int] = {}
    turns = []
    for row in order.tolist():
        label = items[row].labels[0] if items[row].labels else ""
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], row))
    # The draw decides among those of one turn; sorting is stable.
    return [items[row] for _, row in sorted(turns, key=lambda turn: turn[0])]
