"""MAP of every hashing method at 16 bits on Wikipedia, Pascal Sentence and Flickr8k: the bars, and what is behind them.

    python -m bench.hashing_map [--data NAME ...] [--methods NAME ...] [--seeds N] [--jobs N]

Standard splits: codes are learned from the training part, and every test picture and text asks for the texts and
pictures of the test part (view codes: an item of the gallery is known by its other side alone). Wikipedia: 2,173 and
693 pairs with the features supplied; Pascal Sentence: 700 and 300 with EfficientNet-Lite2 and MiniLM; Flickr8k: 6,000
photos, seed k learning from caption k of each, and 1,000 photos with 5 captions, where relevant is what belongs to the
query's photo. Methods keep their defaults, except for the few parameters of GRIDS, which are chosen on three hold-outs
of the training part, never on test pairs. MAP divides by all relevant items, over the full ranking, ties by
expectation; the mean and standard deviation are those of five seeds.

Bars: every method is above chance in both directions; every method that learns from labels is above CVH, with a
randomisation test on the average precision of each query (mean of the seeds, both directions) giving p < 0.05.

On Wikipedia two more tables. SCM-orth: with one label for each pair it has one direction less than there are classes,
and what the published method puts into further bits is noise; MAP must fall from 9 bits to 32 there. And LSSH, CMFH and
SePH in the four conventions of the literature: the gallery is the test or the training part, with view or unified
codes. Tables of these papers have the training part as the gallery, and unified codes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from diptych.arrays import FloatArray
from diptych.benchmark.papers import declared_tasks
from diptych.benchmark.task import Task, find_by_name, with_settings
from diptych.data import DatasetSplits, Pairs, cache_folder
from diptych.metrics import AP, randomisation_test
from diptych.models import Preprocessed, method_name, model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols import HoldOut, Retrieval, TwoWayEvaluation, evaluate_retrieval, tune
from diptych.space import DIRECTIONS

DATA = ("wikipedia", "pascal", "flickr8k")
BITS = 16
LEVEL = 0.05
CONVENTIONS = (("test", "view"), ("test", "unified"), ("train", "view"), ("train", "unified"))
COMPARED = ("lssh", "cmfh", "seph-km")
LENGTHS = (4, 8, 9, 12, 16, 32)
N_WIKIPEDIA_CLASSES = 10
RIDGES = {"model__regularization": [0.1, 1.0, 3.0, 10.0, 30.0]}
GRIDS = {
    "cvh": RIDGES,
    "scm-orth": RIDGES,
    "scm-seq": RIDGES,
    "dcmh": {"model__eta": [0.02, 0.1], "model__weight_decay": [5e-4, 0.05]},
    "dlfh": {"model__hash_functions": ["ridge", "kernel"], "model__strength": [4.0, 8.0]},
}


@dataclass(frozen=True)
class HashingTask:
    """One data set with its standard split."""

    name: str
    task: Task
    has_classes: bool = True

    def train(self, splits: DatasetSplits, seed: int) -> Pairs:
        """Return what to learn from with a seed."""
        return splits.train if self.has_classes else self.task.fold(splits, seed).training.pairs

    def model(self, method: HashingModel, n_bits: int, seed: int) -> Preprocessed:
        """Return the unfitted method behind the scaling of the data set."""
        model = with_settings(method, n_bits=n_bits, random_state=seed)
        return Preprocessed(model=model, images="l2", texts="none" if self.name == "wikipedia" else "l2")


def hashing_task(name: str) -> HashingTask:
    """Return a data set by its short name."""
    setting = "captions" if name == "flickr8k" else "seen"
    task = find_by_name("task", f"hashing-{name}-{setting}", declared_tasks())
    return HashingTask(name, task, has_classes=setting == "seen")


def hashing_methods() -> dict[str, type[HashingModel]]:
    """Return the hashing methods by name."""
    return {method_name(cls): cls for cls in model_classes().values() if issubclass(cls, HashingModel)}


@dataclass(frozen=True)
class Score:
    """One method on one data set: MAP of each seed, and the average precision of every query."""

    model: str
    maps: FloatArray
    chances: FloatArray
    queries: FloatArray


def chosen(task: HashingTask, splits: DatasetSplits, name: str, jobs: int) -> HashingModel:
    """Return the method with the parameters that are best on hold-outs of the training part."""
    method = hashing_methods()[name]()
    if name not in GRIDS:
        return method
    train = task.train(splits, 0)
    tuning = tune(
        task.model(method, BITS, 0),
        train,
        GRIDS[name],
        HoldOut(repeats=3),
        folder=cache_folder() / "tuning",
        n_jobs=jobs,
    )
    best = {key.removeprefix("model__"): value for key, value in tuning.best.parameters.items()}
    return method.set_params(**best)


def fitted(task: HashingTask, splits: DatasetSplits, method: HashingModel, n_bits: int, seed: int) -> HashingModel:
    """Return the method behind the task's scaling, fitted on the training part."""
    train = task.train(splits, seed)
    with warnings.catch_warnings():
        # SCM-orth warns of bits beyond its rank, which is what is shown here.
        warnings.simplefilter("ignore", UserWarning)
        return task.model(method, n_bits, seed).fit(*train.aligned())


def asked(task: HashingTask, splits: DatasetSplits, method: HashingModel, seed: int) -> TwoWayEvaluation:
    """Return what test queries find in the test part."""
    model = fitted(task, splits, method, BITS, seed)
    return evaluate_retrieval(model, Retrieval(splits.test, splits.test))


def scores(task: HashingTask, splits: DatasetSplits, methods: list[str], seeds: int, jobs: int) -> dict[str, Score]:
    """Return the score of every method over the seeds."""
    found: dict[str, Score] = {}
    for name in methods:
        method = chosen(task, splits, name, jobs)
        results = Parallel(n_jobs=jobs)(delayed(asked)(task, splits, method, seed) for seed in range(seeds))
        maps = np.array([[result[way].mean[AP()] for way in DIRECTIONS] for result in results])
        chances = np.array([results[0][way].chance[AP()] for way in DIRECTIONS])
        per_seed = [np.concatenate([result[way].values[AP()] for way in DIRECTIONS]) for result in results]
        found[name] = Score(
            f"{' '.join(repr(method).split())}",
            maps,
            chances,
            np.mean(per_seed, axis=0),
        )
    return found


def spread(values: FloatArray) -> str:
    """Return mean ± standard deviation."""
    return f"{values.mean():.4f} ± {values.std(ddof=1) if len(values) > 1 else 0:.4f}"


def bars(task: HashingTask, splits: DatasetSplits, names: list[str], seeds: int, jobs: int) -> bool:
    """Print every method of one data set and return whether the bars are met."""
    known = hashing_methods()
    names = [name for name in names if task.has_classes or "labels" not in known[name].needs]
    found = scores(task, splits, list(dict.fromkeys(["cvh", *names])), seeds, jobs)
    print(f"\n{task.name}: {splits.train.describe()}; test {splits.test.describe()}; {BITS} bits")
    print(
        f"{'method':<11}{'image query':>18}{'text query':>18}{'average':>9}{'to CVH':>9}{'p':>10}  learns from  model"
    )
    met = True
    for name, score in found.items():
        supervised = "labels" in known[name].needs
        test = randomisation_test(score.queries, found["cvh"].queries)
        good = bool((score.maps.mean(axis=0) > score.chances).all())
        good &= not supervised or (test.difference > 0 and test.p_value < LEVEL)
        met &= good
        print(
            f"{name:<11}{spread(score.maps[:, 0]):>18}{spread(score.maps[:, 1]):>18}{score.maps.mean():>9.4f}"
            f"{test.difference:>+9.4f}{test.p_value:>10.5f}  {'labels' if supervised else 'pairs':<11}"
            f"  {score.model}{'' if good else '  MISSED'}",
            flush=True,
        )
    chance = found["cvh"].chances
    print(f"{'chance':<11}{chance[0]:>18.4f}{chance[1]:>18.4f}{chance.mean():>9.4f}")
    return met


def orthogonal_bits(task: HashingTask, splits: DatasetSplits) -> bool:
    """Print SCM-orth by the number of bits and return whether noise beyond its rank costs MAP."""
    method = hashing_methods()["scm-orth"]
    averages = {}
    print(
        f"\nSCM-orth on {task.name}, {N_WIKIPEDIA_CLASSES} classes: {N_WIKIPEDIA_CLASSES - 1} directions; average MAP"
    )
    print(f"{'bits beyond them':<34}" + "".join(f"{bits:>9}" for bits in LENGTHS))
    for fill, words in (("null", "noise, as published"), ("mixtures", "mixtures of the good ones, ours")):
        for bits in LENGTHS:
            model = fitted(task, splits, method(fill=fill), bits, 0)
            averages[fill, bits] = evaluate_retrieval(model, Retrieval(splits.test, splits.test)).average(AP())
        print(f"{words:<34}" + "".join(f"{averages[fill, bits]:>9.4f}" for bits in LENGTHS), flush=True)
    return averages["null", LENGTHS[-1]] < averages["null", N_WIKIPEDIA_CLASSES - 1]


def conventions(task: HashingTask, splits: DatasetSplits, names: list[str], seeds: int) -> None:
    """Print the methods whose papers use unified codes, in each convention."""
    print(
        f"\n{task.name}, {BITS} bits: gallery and codes of its items; image query / text query, mean of {seeds} seeds"
    )
    headings = [f"{part}, {codes}" for part, codes in CONVENTIONS]
    print(f"{'method':<11}" + "".join(f"{heading:>20}" for heading in headings))
    for name in (name for name in COMPARED if name in names):
        cells = np.zeros((len(CONVENTIONS), len(DIRECTIONS)))
        for seed in range(seeds):
            model = fitted(task, splits, hashing_methods()[name](), BITS, seed)
            for number, (part, codes) in enumerate(CONVENTIONS):
                retrieval = Retrieval(splits.test, splits.parts[part])
                result = evaluate_retrieval(model, retrieval, gallery=codes)
                cells[number] += [result[way].mean[AP()] / seeds for way in DIRECTIONS]
        shown = "".join(f"{f'{image:.4f} / {text:.4f}':>20}" for image, text in cells)
        print(f"{name:<11}{shown}", flush=True)


def main() -> int:
    """Print all tables and whether the bars are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--methods", nargs="+", default=list(hashing_methods()), choices=list(hashing_methods()))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    met = {}
    for name in options.data:
        task = hashing_task(name)
        splits = task.task.load()
        met[name] = bars(task, splits, options.methods, options.seeds, options.jobs)
        if name == "wikipedia" and "scm-orth" in options.methods:
            met["SCM-orth falls"] = orthogonal_bits(task, splits)
        if name == "wikipedia":
            conventions(task, splits, options.methods, options.seeds)
    print("\nbars: " + ", ".join(f"{name} {'met' if good else 'MISSED'}" for name, good in met.items()))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
