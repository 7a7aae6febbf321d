"""Does learning from clicks help people, and only where there is something to learn?

    python -m bench.click_loop --world flickr8k|pascal|scenes [--searches N] [--seeds N] [--meaningless N]
        [--retriever NAME|FOLDER] [--stays] [--clicks NAME ...]

A collection answers simulated visitors with the default retriever, or with another one, the clicks are learned from,
and the truth, which the method never sees, says what became of the answers. In ``flickr8k`` and ``pascal``
photographs are asked for by one and two words, and a photograph is wanted if two of its captions hold every word; in
``scenes``, generated pictures, by kinds, colours and places. A part of the queries is never asked. Visitors click in
several ways: by position (looked at with probability rank^−η for η of 0, 1 and 2), as a cascade (down to the first
click), with satisfaction and fatigue (a dynamic Bayesian network), with trust (what is at the top is clicked even if
it is not wanted), with noise, with interests that drift, and with one who clicks one kind of picture whatever he
asked. Logs without meaning must promote nothing: clicks dealt anew among what
was shown at the same positions, whims (random items are wanted for each query), and nothing but noise beside one
obsessed visitor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np

from diptych import Retriever
from diptych.arrays import BoolArray
from diptych.cli.arguments import load_retriever
from diptych.collection import Collection
from diptych.collection.learning import Learning, LearningReport
from diptych.data import Pairs, load_dataset
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS
from diptych.encoders.text.word_pipeline import clean_query
from tests.doubles.visitors import CLICK_MODELS, Truth, Visitors, Wish, World, scenes_collection, scenes_world, shuffled


def word_queries(captions: Sequence[Sequence[str]], *, most: int, seed: int = 0) -> tuple[list[str], BoolArray]:
    """Return queries of one and two words, and which picture two captions of which hold every word."""
    words = [[set(clean_query(caption)) for caption in own] for own in captions]
    counts: Counter[tuple[str, ...]] = Counter()
    for own in words:
        singles = {(word,) for caption in own for word in caption}
        counts.update(singles | {pair for caption in own for pair in combinations(sorted(caption), 2)})
    rng, chosen = np.random.default_rng(seed), []
    for length in (1, 2):
        often = sorted(key for key, count in counts.items() if len(key) == length and count >= 20)
        wanted = {key: _holders(words, set(key)) for key in often}
        useful = [key for key in often if 10 <= wanted[key].sum() <= 300]
        drawn = rng.choice(len(useful), min(most, len(useful)), replace=False)
        chosen += [(" ".join(useful[row]), wanted[useful[row]]) for row in sorted(drawn)]
    return [query for query, _ in chosen], np.array([held for _, held in chosen])


def _holders(words: Sequence[Sequence[set[str]]], key: set[str]) -> BoolArray:
    return np.array([sum(key <= caption for caption in own) >= 2 for own in words])


def photograph_world(
    name: str, folder: Path, retriever: Retriever | None = None, *, most: int = 110, seed: int = 0
) -> tuple[Collection, World]:
    """Index photographs that the default retriever never learned from, and ask for them by words of their captions."""
    splits = load_dataset({"pascal": "pascal_sentence"}.get(name, name))
    parts = [splits.test, splits.train if name == "pascal" else splits.dev]
    images, captions = _captioned([part for part in parts if part is not None])
    collection = Collection.create(folder / "collection", retriever, root=Path(images[0]).parent)
    collection.add([Path(image) for image in images])
    ids = [collection[str(image)].id for image in images]
    queries, wanted = word_queries(captions, most=most, seed=seed)
    whole = tuple((own[row % len(own)], row) for row, own in enumerate(captions))
    return collection, World(queries, ids, wanted, np.ones(len(queries), dtype=bool), whole)


def _captioned(parts: Sequence[Pairs]) -> tuple[list[str], list[list[str]]]:
    images: list[str] = []
    captions: list[list[str]] = []
    for part in parts:
        own: list[list[str]] = [[] for _ in range(part.n_images)]
        for text, owner in zip(part.texts, part.owners, strict=True):
            own[owner].append(str(text))
        images += [str(image) for image in part.images]
        captions += own
    return images, captions


def vocabulary() -> list[Wish]:
    """Return every kind alone, with every colour, and in every place."""
    coloured = [Wish(kind, colour=colour) for kind, colour in product(CLASS_NAMES, COLOURS)]
    placed = [Wish(kind, place=place) for kind, place in product(CLASS_NAMES, BACKGROUNDS)]
    return [*map(Wish, CLASS_NAMES), *coloured, *placed]


def told(title: str, report: LearningReport, *numbers: str) -> None:
    """Print a row of the table."""
    record = report.record
    p_value = "" if record.p_value is None else f"{record.p_value:.2g}"
    print("|", " | ".join((title, "yes" if report.is_better else "no", p_value, *numbers)), "|", flush=True)


def honest(
    collection: Collection, truth: Truth, world: World, seed: int, name: str, n_searches: int, grows: bool
) -> bool:
    """Learn from one log of honest visitors, and print what the truth says; return whether it was promoted."""
    old = collection.retriever
    log = Visitors(world, seed, **CLICK_MODELS[name]).log(truth.scores(old), n_searches, grows=grows)
    report = Learning(collection).compare(log)
    before, after = (truth.values(each, world) for each in (old, report.retriever or old))
    changes = (f"{before[each]:.3f} → {after[each]:.3f}" for each in before)
    told(f"{name} | {seed}", report, *changes, f"{truth.with_right_clicks_first(log, world):.3f}")
    return report.is_better


def spammed(collection: Collection, truth: Truth, world: World, spam: float, seed: int, n_searches: int) -> None:
    """Learn from a log with one visitor who clicks a kind of picture, and print what became of that kind."""
    visitors = Visitors(world, seed, eta=1.0, spam=spam)
    log = visitors.log(truth.scores(collection.retriever), n_searches)
    report = Learning(collection).compare(log)
    used = report.retriever or collection.retriever
    values, share = truth.values(used, world), truth.share_of(visitors.kind, used, world)
    told(f"{spam:.0%} | {seed}", report, f"{values['asked']:.3f}", f"{share:.4f}")


def meaningless(collection: Collection, truth: Truth, world: World, kind: str, seed: int, n_searches: int) -> bool:
    """Learn from a log without meaning, and return whether it was promoted."""
    scores = truth.scores(collection.retriever)
    if kind == "shuffled":
        log = shuffled(Visitors(world, seed, eta=1.0).log(scores, n_searches), seed)
    elif kind == "whims":
        log = Visitors(world.at_a_whim(seed), seed, eta=1.0).log(scores, n_searches)
    else:
        nothing = replace(world, wanted=np.zeros_like(world.wanted))
        visitors = Visitors(nothing, seed, eta=1.0, spam=0.2)
        visitors.kind = world.wanted[seed % len(world.queries)]
        log = visitors.log(scores, n_searches)
    report = Learning(collection).compare(log)
    told(f"{kind} | {seed}", report, report.record.reason)
    return report.is_better


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of a world."""
    options = _options(arguments)
    retriever = load_retriever(options.retriever)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with tempfile.TemporaryDirectory() as scratch:
        start = time.perf_counter()
        if options.world == "scenes":
            collection = scenes_collection(Path(scratch), options.scenes, retriever)
            world = scenes_world(collection, vocabulary())
        else:
            collection, world = photograph_world(options.world, Path(scratch), retriever)
        truth = Truth(collection, world)
        print(f"{len(world.items):,} items, {len(world.queries)} queries ({time.perf_counter() - start:.0f} s)")
        captions = ["captions R@1", "captions R@10"] if world.captions else []
        columns = ["asked, MAP", "never asked, MAP", *captions, "asked, right clicks first"]
        print("\n| clicks | seed | promoted | p |", " | ".join(columns), "|")
        for name in options.clicks or CLICK_MODELS:
            settings = name, options.searches, not options.stays
            taken = [honest(collection, truth, world.dealt(seed), seed, *settings) for seed in seeds]
            print(f"{name}: {sum(taken)} of {len(taken)} promoted")
        if not options.clicks:
            _other_tables(collection, truth, world, seeds, options)
        collection.close()


def _other_tables(
    collection: Collection, truth: Truth, world: World, seeds: Sequence[int], options: argparse.Namespace
) -> None:
    print("\n| spam | seed | promoted | p | asked, MAP | its share of the first ten |")
    for spam, seed in product((0.0, 0.01, 0.05, 0.2), seeds):
        spammed(collection, truth, world.dealt(seed), spam, seed, options.searches)
    print("\n| without meaning | seed | promoted | p | why |")
    for kind in ("shuffled", "whims", "one obsessed visitor"):
        taken = [
            meaningless(collection, truth, world.dealt(seed), kind, seed, options.searches)
            for seed in range(options.meaningless)
        ]
        print(f"{kind}: {sum(taken)} of {len(taken)} promoted")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--world", choices=("flickr8k", "pascal", "scenes"), default="scenes")
    parser.add_argument("--searches", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--meaningless", type=int, default=20, help="logs of each kind")
    parser.add_argument("--scenes", type=int, default=2000)
    parser.add_argument("--stays", action="store_true", help="the collection does not grow: no item ever moves")
    parser.add_argument(
        "--retriever",
        default="default",
        help="who answers: default, strong, or a saved one's folder",
    )
    parser.add_argument(
        "--clicks", nargs="+", choices=CLICK_MODELS, help="only these kinds of honest clicks, no other table"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
