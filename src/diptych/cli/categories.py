"""Mean average precision, category by category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data import Pairs
from diptych.metrics import AP
from diptych.protocols import TwoWayEvaluation
from diptych.space import DIRECTIONS, Direction


@dataclass(frozen=True)
class Category:
    """MAP of the queries of one category; None where no query of it has a relevant item."""

    name: str
    n_images: int
    n_texts: int
    value: dict[Direction, float | None]
    chance: dict[Direction, float | None]


def by_category(evaluation: TwoWayEvaluation, chance: TwoWayEvaluation, pairs: Pairs) -> tuple[Category, ...]:
    """Return one row for each category that occurs in ``pairs``; a query with several labels counts in each."""
    return tuple(
        Category(
            name=name,
            n_images=int(images.sum()),
            n_texts=int(images[pairs.owners].sum()),
            value=_both_ways(evaluation, images, pairs),
            chance=_both_ways(chance, images, pairs),
        )
        for name, images in _members(pairs).items()
    )


def label_names(pairs: Pairs) -> AnyArray | None:
    """Return the name of each image's class, or None when there is not exactly one class per image."""
    labels = pairs.labels
    if labels is None or labels.ndim != 1:
        return None
    if labels.dtype.kind == "U":
        return labels
    return np.array(pairs.class_names)[labels] if pairs.class_names else labels.astype(str)


def _members(pairs: Pairs) -> dict[str, BoolArray]:
    """Return, in the data set's own order, which images belong to each category that occurs."""
    names = label_names(pairs)
    if names is None:
        if pairs.labels is None:
            return {}
        members = {name: pairs.labels[:, column] == 1 for column, name in enumerate(pairs.class_names)}
    else:
        order = pairs.class_names or tuple(np.unique(names).tolist())
        members = {name: names == name for name in order}
    return {name: images for name, images in members.items() if images.any()}


def _both_ways(evaluation: TwoWayEvaluation, images: BoolArray, pairs: Pairs) -> dict[Direction, float | None]:
    asked = {"image_query": images, "text_query": images[pairs.owners]}
    return {way: _mean(evaluation[way].values[AP()][asked[way]]) for way in DIRECTIONS}


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
