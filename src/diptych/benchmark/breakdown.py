"""An evaluation in detail: by category, against chance, and by the hash codes of a hashing method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.benchmark.hashing import codes_of, look_up
from diptych.codes import CodeStatistics, code_statistics
from diptych.data import Pairs
from diptych.metrics import AP, HammingLookup
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.base import Need
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import Targets
from diptych.protocols import Relevant, Retrieval, TwoWayEvaluation
from diptych.space import DIRECTIONS, Direction, Space


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
    return None if pairs.labels is None or pairs.is_multi_label else pairs.image_classes()


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


class AllTied(CrossModalModel):
    """Gives every pair the same score.

    Ties are resolved by expectation over all orders, so this scores exactly what a random ranking does: the chance
    level of every curve and of every category.

    >>> import numpy as np
    >>> AllTied().fit(np.eye(2), np.eye(2)).similarity(np.eye(2), np.eye(2))
    array([[0., 0.],
           [0., 0.]])
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "To draw chance levels."

    @property
    def space(self) -> Space:
        """Inner product."""
        return Space("dot")

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        """Learn nothing."""

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return np.zeros((len(images), 1))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return np.zeros((len(texts), 1))


@dataclass(frozen=True)
class HashCodeFacts:
    """Statistics of the codes of both sides of the test part, and what lies within each radius of a query."""

    images: CodeStatistics
    texts: CodeStatistics
    lookups: Mapping[Direction, HammingLookup]

    @property
    def radius(self) -> int:
        """2, as in most of the literature, or all bits where there are fewer."""
        return min(2, self.images.n_bits)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "statistics": {"images": asdict(self.images), "texts": asdict(self.texts)},
            "lookup": {way: self._lookup(way) for way in DIRECTIONS},
        }

    def _lookup(self, way: Direction) -> dict[str, Any]:
        lookup = self.lookups[way]
        micro, mean = lookup.micro_curve(), lookup.mean_curve()
        return {
            "radius": self.radius,
            "precision, nothing found is zero": lookup.precision(self.radius),
            "queries that find nothing": lookup.unanswered(self.radius),
            "all queries together": {"recall": micro.x.tolist(), "precision": micro.y.tolist()},
            "mean of queries": {"recall": mean.x.tolist(), "precision": mean.y.tolist()},
        }


def hash_code_facts(model: CrossModalModel, test: Pairs, relevant: Relevant) -> HashCodeFacts | None:
    """Return the facts about the codes of a hashing method, behind its scaling or not; None for other methods."""
    method = model.model if isinstance(model, Preprocessed) else model
    if not isinstance(method, HashingModel):
        return None
    codes = codes_of(model, test)
    return HashCodeFacts(
        code_statistics(codes["image_query"], method.n_bits),
        code_statistics(codes["text_query"], method.n_bits),
        look_up(codes, codes, Retrieval(test, test), method.n_bits, relevant),
    )
