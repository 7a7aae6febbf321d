"""Does learning from clicks help, and only where there is something to learn?

A collection of generated scenes answers a simulated person with the default retriever. She asks short queries from a
limited vocabulary, some far more often than others, looks at position r with probability 1/r, clicks what she wanted
nine times in ten, and what she did not want one time in ten. The collection grows meanwhile, so that items change their
positions. Then `Learning` learns from what was shown and clicked. What it promotes is compared with what was there by
the truth about the scenes, on queries that were never asked. Two kinds of clicks must promote nothing: clicks
shuffled among what was shown at the same position, which tell no wanted items at all, and clicks of a person with
whims, who wants items drawn at random for each query: some items are clearly wanted then, but no model can tell which
for a query that it has not seen.

    python benchmarks/click_loop.py --scenes 2000 --searches 20000 --shuffles 20
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from diptych import Retriever
from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection import Collection
from diptych.collection.learning import Impressions, Learning, LearningReport
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS, Scene, make_scene, write_folder
from diptych.metrics import AP, NDCG, GradedRelevance, evaluate_scores, randomisation_test

SHOWN = 20
STAGES = (0.4, 0.6, 0.8, 1.0)
WANTED, UNWANTED = 0.9, 0.1
ZIPF = 0.7


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


def vocabulary() -> list[Wish]:
    """Return every kind alone, with every colour, and in every place."""
    coloured = [Wish(kind, colour=colour) for kind, colour in product(CLASS_NAMES, COLOURS)]
    placed = [Wish(kind, place=place) for kind, place in product(CLASS_NAMES, BACKGROUNDS)]
    return [*map(Wish, CLASS_NAMES), *coloured, *placed]


@dataclass(frozen=True, eq=False)
class World:
    """Wishes, the items of a collection in the order of addition, and which item meets which wish."""

    wishes: list[Wish]
    items: list[str]
    met: BoolArray
    asked: BoolArray

    @classmethod
    def of(cls, collection: Collection, wishes: list[Wish], *, never_asked: float = 0.25, seed: int = 0) -> World:
        """Read a collection of scenes; wishes that fewer than three scenes meet are left out."""
        items = [item for item in collection if item.path is not None]
        scenes = [make_scene(int(Path(str(item.path)).stem.rpartition("-")[2])) for item in items]
        met = np.array([[wish.is_met(scene) for scene in scenes] for wish in wishes])
        useful = np.flatnonzero(met.sum(axis=1) >= 3)
        asked = np.random.default_rng(seed).random(len(useful)) >= never_asked
        return cls([wishes[row] for row in useful], [item.id for item in items], met[useful], asked)


def whimsical(world: World, seed: int) -> World:
    """Return a world whose wishes are met by items drawn at random, as many as before: nothing can be learned of it."""
    met = np.random.default_rng(seed).permuted(world.met, axis=1)
    return World(world.wishes, world.items, met, world.asked)


class SimulatedUser:
    """Asks, looks and clicks as the module says."""

    def __init__(self, world: World, seed: int = 0) -> None:
        self._world = world
        self._rng = np.random.default_rng(seed)

    def impressions(self, collection: Collection, n_searches: int) -> Impressions:
        """Return what a collection shows her in so many searches, and what she clicks."""
        world, asked = self._world, np.flatnonzero(self._world.asked)
        scores = scored(collection, world)[asked]
        popularity = (1.0 + self._rng.permutation(len(asked))) ** -ZIPF
        rows: list[tuple[str, str, int, int, int]] = []
        for share in STAGES:
            there = round(share * len(world.items))
            times = self._rng.multinomial(n_searches // len(STAGES), popularity / popularity.sum())
            order = np.argsort(-scores[:, :there], axis=1, kind="stable")[:, :SHOWN]
            wanted = np.take_along_axis(world.met[asked], order, axis=1)
            looks = 1.0 / np.arange(1, order.shape[1] + 1)
            clicked = self._rng.binomial(times[:, None], looks * np.where(wanted, WANTED, UNWANTED))
            rows += self._rows(asked, order, times, clicked)
        return Impressions.from_rows(rows)

    def _rows(
        self, asked: IntArray, order: IntArray, times: IntArray, clicked: IntArray
    ) -> list[tuple[str, str, int, int, int]]:
        return [
            (self._world.wishes[asked[row]].words, self._world.items[item], place + 1, int(times[row]), int(count))
            for row in np.flatnonzero(times).tolist()
            for place, (item, count) in enumerate(zip(order[row], clicked[row], strict=True))
        ]


def shuffled(seen: Impressions, seed: int) -> Impressions:
    """Return the same clicks on other items: those at each position are dealt anew among all that was shown there."""
    rng = np.random.default_rng(seed)
    clicked = np.zeros(len(seen))
    for position in np.unique(seen.positions):
        rows = np.flatnonzero(seen.positions == position)
        shown, total = seen.shown[rows].astype(np.int64), int(seen.clicked[rows].sum())
        clicked[rows] = rng.multivariate_hypergeometric(shown, total, method="marginals")
    return Impressions(seen.queries, seen.items, seen.query_ids, seen.item_ids, seen.positions, seen.shown, clicked)


def scored(collection: Collection, world: World, retriever: Retriever | None = None) -> FloatArray:
    """Return the scores of all items for all wishes, as a search would compare them."""
    chosen = collection.retriever if retriever is None else retriever
    _, features = collection.features("image", world.items)
    asked = chosen.encode_texts([wish.words for wish in world.wishes])
    return chosen.space.compare(asked, chosen.images_to_points(features), "text_query")


def true_values(collection: Collection, world: World, retriever: Retriever) -> dict[str, FloatArray]:
    """Return MAP and NDCG of the queries that were never asked, by the truth about the scenes."""
    rows = np.flatnonzero(~world.asked)
    relevance = GradedRelevance(world.met[rows].astype(float))
    measures = [AP(), NDCG(25, "ideal")]
    found = evaluate_scores(scored(collection, world, retriever)[rows], relevance, measures)
    return {measure.label: found.values[measure] for measure in measures}


def scenes_collection(
    folder: Path, n_scenes: int, retriever: Retriever | None = None, *, size: int = 128
) -> Collection:
    """Paint scenes and index them."""
    write_folder(folder / "scenes", n_scenes, size=size)
    collection = Collection.create(folder / "collection", retriever, root=folder)
    collection.add(folder / "scenes")
    return collection


def told(title: str, report: LearningReport, seconds: float) -> None:
    """Print one comparison."""
    record = report.record
    numbers = "" if record.old is None else f"{record.old:.4f} -> {record.new:.4f}, p = {record.p_value:.2g}, "
    print(f"{title}: {numbers}{record.reason} ({seconds:.1f} s)", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the loop once with real clicks and several times with shuffled ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenes", type=int, default=2000)
    parser.add_argument("--searches", type=int, default=20_000)
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="keep the collection here, and use it again")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        start = time.perf_counter()
        is_there = (folder / "collection" / "collection.json").exists()
        collection = Collection.open(folder / "collection") if is_there else scenes_collection(folder, options.scenes)
        print(f"{len(collection):,} scenes indexed ({time.perf_counter() - start:.1f} s)", flush=True)
        before = collection.retriever
        world = World.of(collection, vocabulary(), seed=options.seed)
        seen = SimulatedUser(world, options.seed).impressions(collection, options.searches)
        print(
            f"{len(world.wishes)} queries, {int(world.asked.sum())} of them asked in {options.searches:,} searches: "
            f"{len(seen):,} rows, {seen.n_clicks:,.0f} clicks"
        )
        for title in ("shuffled clicks", "clicks at a whim"):
            promoted = 0
            for seed in range(options.shuffles):
                if title == "shuffled clicks":
                    clicks = shuffled(seen, seed)
                else:
                    clicks = SimulatedUser(whimsical(world, seed), seed).impressions(collection, options.searches)
                start = time.perf_counter()
                report = Learning(collection, seed=options.seed).compare(clicks)
                promoted += report.is_better
                told(f"{title} {seed}", report, time.perf_counter() - start)
            print(f"promoted with {title}: {promoted} of {options.shuffles}")
        start = time.perf_counter()
        report = Learning(collection, seed=options.seed).compare(seen)
        told("clicks", report, time.perf_counter() - start)
        print(json.dumps(report.record.parts))
        positions = report.positions
        if positions is not None:
            print("propensities:", np.round(positions.propensities_[:10], 3).tolist())
        if report.retriever is not None:
            old, new = (true_values(collection, world, each) for each in (before, report.retriever))
            for label in old:
                test = randomisation_test(new[label], old[label])
                print(
                    f"truth on {test.n_queries} queries never asked, {label}: "
                    f"{old[label].mean():.4f} -> {new[label].mean():.4f}, p = {test.p_value:.2g}"
                )


if __name__ == "__main__":
    main()
