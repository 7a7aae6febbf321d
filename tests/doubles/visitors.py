"""Simulated visitors, who search and click, and the truth about what they were shown.

They click in several ways (``CLICK_MODELS``): by position (looked at with probability rank^−η for η of 0, 1 and 2),
as a cascade (down to the first click), with satisfaction and fatigue (a dynamic Bayesian network), with trust (what is
at the top is clicked even if it is not wanted), with noise, and with interests that drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych import Retriever
from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.collection import Collection
from diptych.collection.learning import SearchLog
from diptych.data import load_dataset
from diptych.data.datasets.scenes import Scene, make_scene, write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.metrics import AP, GradedRelevance, evaluate_scores
from diptych.models import CCA

SHOWN = 20
STAGES = (0.4, 0.6, 0.8, 1.0)
NEVER_ASKED = 0.22
ZIPF = 0.7
CLICK_MODELS: dict[str, dict[str, float]] = {
    "positions, η = 0": {"eta": 0.0},
    "positions, η = 1": {"eta": 1.0},
    "positions, η = 2": {"eta": 2.0},
    "cascade": {"stops": 1.0},
    "satisfaction and fatigue": {"stops": 0.7, "unwanted_stops": 0.1, "goes_on": 0.9},
    "trust in the top": {"eta": 1.0, "trust": 0.3},
    "noise of 30 %": {"eta": 1.0, "unwanted": 0.3},
    "drifting interests": {"eta": 1.0, "drift": 1.0},
}


@dataclass(frozen=True, eq=False)
class World:
    """Queries, items, which item is wanted for which query, which queries are asked, and a caption of each item."""

    queries: list[str]
    items: list[str]
    wanted: BoolArray
    asked: BoolArray
    captions: tuple[tuple[str, int], ...] = ()

    def dealt(self, seed: int) -> World:
        """Return the world with other queries among those that are asked."""
        asked = np.random.default_rng(seed).random(len(self.queries)) >= NEVER_ASKED
        return replace(self, asked=asked)

    def at_a_whim(self, seed: int) -> World:
        """Return a world in which random items are wanted, as many as before: nothing that is seen explains them."""
        return replace(self, wanted=np.random.default_rng(seed).permuted(self.wanted, axis=1))


@dataclass(frozen=True)
class Wish:
    """Something to look for: a kind of thing, of a colour, in a place; what is None does not matter."""

    kind: str | None = None
    colour: str | None = None
    place: str | None = None

    @property
    def words(self) -> str:
        """The query."""
        return " ".join(word for word in (self.colour, self.kind, self.place) if word is not None)

    def is_met(self, scene: Scene) -> bool:
        """Say whether a scene shows it."""
        things = [thing for thing in scene.objects if self.kind in (None, thing.kind)]
        return self.place in (None, scene.background) and any(self.colour in (None, thing.colour) for thing in things)


def scenes_world(collection: Collection, wishes: Sequence[Wish]) -> World:
    """Read a collection of scenes; wishes that fewer than three scenes meet are left out."""
    items = [item for item in collection if item.path is not None]
    scenes = [make_scene(int(Path(str(item.path)).stem.rpartition("-")[2])) for item in items]
    met = np.array([[wish.is_met(scene) for scene in scenes] for wish in wishes])
    useful = np.flatnonzero(met.sum(axis=1) >= 3)
    queries = [wishes[row].words for row in useful]
    return World(queries, [item.id for item in items], met[useful], np.ones(len(useful), dtype=bool))


def scenes_collection(
    folder: Path, n_scenes: int, retriever: Retriever | None = None, *, size: int = 128
) -> Collection:
    """Paint scenes and index them."""
    write_folder(folder / "scenes", n_scenes, size=size)
    collection = Collection.create(folder / "collection", retriever, root=folder)
    collection.add(folder / "scenes")
    return collection


def weak_retriever(n_components: int = 8, *, size: int) -> Retriever:
    """Return a retriever that has learned little from a few scenes, by encoders that need no weights."""
    pairs = load_dataset("scenes", n_train=60, n_test=1, size=size).train
    encoders: dict[str, Any] = {
        "image_encoder": ColourEdgeHistograms(size=size),
        "text_encoder": TfidfTopics(min_documents=1),
    }
    return Retriever(model=CCA(n_components=n_components, regularization=0.1), cache=False, **encoders).fit(
        pairs, baseline=None
    )


class Visitors:
    """People who search and click; see the module for how. ``spam`` is the share of the searches of one of them."""

    def __init__(
        self,
        world: World,
        seed: int,
        *,
        eta: float = 0.0,
        stops: float = 0.0,
        unwanted_stops: float | None = None,
        goes_on: float = 1.0,
        trust: float = 0.0,
        wanted: float = 0.9,
        unwanted: float = 0.1,
        drift: float = 0.0,
        spam: float = 0.0,
        n_visitors: int = 2000,
    ) -> None:
        self._world = world
        self._rng = np.random.default_rng(seed)
        self._looks = np.arange(1.0, SHOWN + 1) ** -eta
        self._stops = (stops if unwanted_stops is None else unwanted_stops, stops)
        self._goes_on = goes_on
        self._rates = (np.minimum(unwanted + trust / np.arange(1, SHOWN + 1), wanted), np.full(SHOWN, wanted))
        self._drift = drift
        self._spam = spam
        self._n_visitors = self.spammer = n_visitors
        self.kind = world.wanted[self._rng.integers(len(world.queries))]

    def log(self, scores: FloatArray, n_searches: int, *, grows: bool = True) -> SearchLog:
        """Return what the collection, which grows meanwhile, shows them by its scores, and what they click."""
        stages = STAGES if grows else STAGES[-1:] * len(STAGES)
        world, rng, asked = self._world, self._rng, np.flatnonzero(self._world.asked)
        ranks = rng.permutation(len(asked))
        grown = rng.permutation(len(world.items))
        found: list[tuple[AnyArray, AnyArray, AnyArray, AnyArray]] = []
        for number, share in enumerate(stages):
            there = np.zeros(len(world.items), dtype=bool)
            there[grown[: round(share * len(there))]] = True
            shown = np.argsort(-np.where(there, scores[asked], -np.inf), axis=1, kind="stable")[:, :SHOWN]
            turn = round(self._drift * number * len(ranks) / len(stages))
            popularity = (1.0 + np.roll(ranks, turn)) ** -ZIPF
            query = rng.choice(len(asked), n_searches // len(stages), p=popularity / popularity.sum())
            found.append((asked[query], self._who(len(query)), shown[query], self._clicks(asked[query], shown[query])))
        query_ids, visitors, items, clicked = (np.concatenate(column) for column in zip(*found, strict=True))
        is_spam = rng.random(len(query_ids)) < self._spam
        clicked = np.where(is_spam[:, None], self.kind[items], clicked)
        visitors = np.where(is_spam, self.spammer, visitors)
        times = np.arange(len(query_ids), dtype=np.float64)
        searches, places = np.indices(items.shape).reshape(2, -1)
        columns = (query_ids, visitors, times, searches, items.reshape(-1), places + 1, clicked.reshape(-1))
        return SearchLog(tuple(world.queries), tuple(world.items), *columns)

    def _who(self, count: int) -> AnyArray:
        activity = self._rng.gamma(1.0, 1.0, self._n_visitors) + 0.2
        return self._rng.choice(self._n_visitors, count, p=activity / activity.sum())

    def _clicks(self, query: AnyArray, items: AnyArray) -> BoolArray:
        rng, wanted = self._rng, self._world.wanted[query[:, None], items].astype(int)
        likes = rng.random(items.shape) < np.choose(wanted, self._rates) * self._looks[: items.shape[1]]
        clicked, reads = np.zeros(items.shape, dtype=bool), np.ones(len(items), dtype=bool)
        for place in range(items.shape[1]):
            clicked[:, place] = reads & likes[:, place]
            stop = np.choose(wanted[:, place], self._stops)
            reads &= ~(clicked[:, place] & (rng.random(len(items)) < stop)) & (rng.random(len(items)) < self._goes_on)
        return clicked


def shuffled(log: SearchLog, seed: int) -> SearchLog:
    """Return the same clicks on other items: those at each position are dealt anew among all that was shown there."""
    rng, clicked = np.random.default_rng(seed), log.clicked.copy()
    for position in np.unique(log.positions):
        rows = np.flatnonzero(log.positions == position)
        clicked[rows] = rng.permutation(clicked[rows])
    return replace(log, clicked=clicked)


class Truth:
    """What is right about a world: the scores of retrievers on all its items, and measures of them."""

    def __init__(self, collection: Collection, world: World) -> None:
        self._world = world
        found, features = collection.features("image", world.items)
        row_of = {item: row for row, item in enumerate(found)}
        self._features = features[[row_of[item] for item in world.items]]
        # Of the retriever that is there from the beginning, which every log is compared with.
        self._known: dict[str, tuple[FloatArray, AnyArray]] = {
            collection.retriever.fingerprint: (
                self._query_scores(collection.retriever),
                self._caption_ranks(collection.retriever),
            )
        }

    def scores(self, retriever: Retriever) -> FloatArray:
        """Return the scores of all items for all queries, as a search would compare them."""
        known = self._known.get(retriever.fingerprint)
        return self._query_scores(retriever) if known is None else known[0]

    def values(self, retriever: Retriever, world: World) -> dict[str, float]:
        """Return MAP of the queries that were asked and that were not, and recall of whole captions."""
        relevance = GradedRelevance(world.wanted.astype(float))
        precision = evaluate_scores(self.scores(retriever), relevance, [AP()]).values[AP()]
        found = {"asked": float(precision[world.asked].mean()), "never asked": float(precision[~world.asked].mean())}
        known = self._known.get(retriever.fingerprint)
        ranks = self._caption_ranks(retriever) if known is None else known[1]
        return found | {f"captions R@{depth}": float((ranks < depth).mean()) for depth in (1, 10) if len(ranks)}

    def with_right_clicks_first(self, log: SearchLog, world: World) -> float:
        """Return MAP of the asked queries if the wanted items that were clicked were known, and stood first."""
        scores = next(iter(self._known.values()))[0]
        clicked = np.zeros(scores.shape, dtype=bool)
        clicked[log.query_ids[log.searches[log.clicked]], log.item_ids[log.clicked]] = True
        lead = 2 * np.abs(scores).max() * (clicked & world.wanted)
        found = evaluate_scores(scores + lead, GradedRelevance(world.wanted.astype(float)), [AP()]).values[AP()]
        return float(found[world.asked].mean())

    def share_of(self, kind: BoolArray, retriever: Retriever, world: World) -> float:
        """Return the share of a kind among the first ten answers to what was asked."""
        best = np.argsort(-self.scores(retriever)[world.asked], axis=1, kind="stable")[:, :10]
        return float(kind[best].mean())

    def _query_scores(self, retriever: Retriever) -> FloatArray:
        # A search reads "dog" in more than one form, which a caption is not.
        texts = retriever.texts_to_points(retriever.query_features(self._world.queries))
        return self._scores(retriever, texts)

    def _scores(self, retriever: Retriever, texts: AnyArray) -> FloatArray:
        return retriever.space.compare(texts, retriever.images_to_points(self._features), "text_query")

    def _caption_ranks(self, retriever: Retriever) -> AnyArray:
        ranks: list[AnyArray] = []
        for start in range(0, len(self._world.captions), 1000):
            texts, own = zip(*self._world.captions[start : start + 1000], strict=True)
            # Whole captions are read as they stand, and those of the retriever beneath are in the cache.
            scores = self._scores(retriever, retriever.encode_texts(list(texts)))
            ranks.append((scores > scores[np.arange(len(own)), own][:, None]).sum(axis=1))
        return np.concatenate(ranks) if ranks else np.zeros(0)
