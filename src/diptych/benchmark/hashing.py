"""Hashing methods compared at every length of code: their data, what they reach, and what they cost."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from typing import Any, Literal

import numpy as np
from joblib import delayed

from diptych._version import __version__
from diptych.arrays import AnyArray
from diptych.benchmark.runner import (
    LACKS_LABELS,
    BenchmarkReport,
    Stage,
    measure_methods,
    select_methods,
    silent_stage,
    spread,
)
from diptych.benchmark.task import NETWORK_ENCODERS, EncodedTask, one_line, with_settings
from diptych.codes import code_statistics, nearest_codes
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, CMC, HammingLookup, Measure
from diptych.models import Preprocessed, method_name, model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.preprocessed import RowScaling
from diptych.protocols import EncodedRetrieval, Extendable, Relevant, Retrieval, evaluate_retrieval
from diptych.protocols.journal import Journal, pairs_digest, run_noted, source_digest
from diptych.protocols.retrieval import encode_sides, relevance_labels
from diptych.space import DIRECTIONS, Direction, Space, opposite

Setting = Literal["seen", "unseen", "captions"]

SETTING_TITLES: Mapping[Setting, str] = {
    "seen": "classes that were learned",
    "unseen": "classes that were not learned",
    "captions": "the query's own photo or captions",
}
_NETWORKS = "Features: EfficientNet-Lite2 and MiniLM, rows of unit length."
MEASURES: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), CMC(50))
_RADIUS = 2
_QUERIES = 64
_NEAREST = 10
_REPEATS = 3


@dataclass(frozen=True)
class HashingTask(EncodedTask):
    """A data set whose items become codes, and how they are asked.

    With classes, fold k is a division of the classes by `Extendable`: codes are learned from one half of them and asked
    for that half, ``seen``, and for the other, ``unseen``. Without classes, fold k learns from the k-th caption of each
    training photo, and every test photo and caption asks for what belongs to it: ``captions``.
    """

    images: RowScaling = "l2"
    texts: RowScaling = "l2"
    has_classes: bool = True
    cmc_rank: int = 1

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Who is asked for."""
        return ("seen", "unseen") if self.has_classes else ("captions",)

    def load(self) -> DatasetSplits:
        """Return the training and test pairs as feature matrices."""
        return self.encode(self.load_items())

    def fold(self, splits: DatasetSplits, number: int) -> tuple[Pairs, dict[Setting, Retrieval]]:
        """Return what to learn from in fold ``number``, and what to ask in each setting."""
        if self.has_classes:
            fold = Extendable(folds=number + 1).class_fold(splits, number)
            return fold.train, {"seen": fold.seen, "unseen": fold.unseen}
        captions = splits.train.n_texts // splits.train.n_images
        return splits.train.one_text_per_image(number % captions), {"captions": Retrieval(splits.test, splits.test)}

    def model(self, method: HashingModel, n_bits: int, number: int) -> Preprocessed:
        """Return the unfitted method behind the task's scaling; fold ``number`` is its seed, where it has one."""
        model = with_settings(method, n_bits=n_bits, random_state=number)
        return Preprocessed(model=model, images=self.images, texts=self.texts)


HASHING_TASKS = (
    HashingTask(
        name="wikipedia",
        title="Wikipedia, half of 10 classes learned",
        dataset="wikipedia",
        texts="none",
        notes=("Features: 128 SIFT words, rows of unit length, and 10 LDA topics as supplied.",),
    ),
    HashingTask(
        name="pascal",
        title="Pascal Sentence, half of 20 classes learned",
        dataset="pascal_sentence",
        options={"captions": "join"},
        **NETWORK_ENCODERS,
        notes=(_NETWORKS,),
    ),
    HashingTask(
        name="flickr8k",
        title="Flickr8k, photos and their captions",
        dataset="flickr8k",
        **NETWORK_ENCODERS,
        has_classes=False,
        cmc_rank=10,
        notes=(
            _NETWORKS,
            "No classes: methods that learn from pairs alone; relevant is the query's own photo, or its five captions.",
        ),
    ),
)


ByDirection = dict[Direction, float]


@dataclass(frozen=True)
class CodeResult:
    """Measures in both directions, what a lookup finds, and how good the codes of the gallery are as codes.

    ``measures`` and ``chance`` are keyed by the label of the measure, such as ``MAP``; the gallery has codes of the
    other side alone. ``unified_map`` is MAP where every item of the gallery has one code of both sides.
    ``precision_radius_2`` counts queries that find nothing as zero, and ``unanswered_radius_2`` is their share.
    ``lookup_recall`` and ``lookup_precision`` have a point for each radius, all queries thrown together.
    ``statistics`` are those of the gallery's picture and text codes. ``encoded_per_second`` counts queries of both
    sides.
    """

    method: str
    n_bits: int
    fold: int
    setting: str
    measures: dict[str, ByDirection]
    chance: dict[str, ByDirection]
    unified_map: ByDirection
    precision_radius_2: ByDirection
    unanswered_radius_2: ByDirection
    lookup_recall: dict[Direction, list[float]]
    lookup_precision: dict[Direction, list[float]]
    statistics: dict[str, dict[str, Any]]
    fit_seconds: float
    encoded_per_second: float
    model: str


Codes = dict[Direction, AnyArray]


def look_up(
    queries: Codes, gallery: Codes, retrieval: Retrieval, n_bits: int, relevant: Relevant = "auto"
) -> dict[Direction, HammingLookup]:
    """Return what lies within each radius, for both directions; ``relevant`` as in `evaluate_retrieval`."""
    truth = (relevance_labels(pairs, relevant) for pairs in (retrieval.queries, retrieval.gallery))
    encoded = EncodedRetrieval(Space("hamming"), queries, gallery, *truth)
    return {
        way: HammingLookup.from_codes(queries[way], gallery[opposite(way)], encoded.relevance(way), n_bits=n_bits)
        for way in DIRECTIONS
    }


def measure_fold(
    task: HashingTask, splits: DatasetSplits, method: HashingModel, n_bits: int, fold: int
) -> list[CodeResult]:
    """Learn codes of ``n_bits`` in one fold and measure them in every setting of the task."""
    train, asked = task.fold(splits, fold)
    model = task.model(method, n_bits, fold)
    start = time.perf_counter()
    model.fit(*train.aligned())
    seconds = time.perf_counter() - start
    return [_result(model, n_bits, fold, setting, retrieval, seconds) for setting, retrieval in asked.items()]


def _result(
    model: Preprocessed, n_bits: int, fold: int, setting: str, retrieval: Retrieval, fit_seconds: float
) -> CodeResult:
    start = time.perf_counter()
    codes = encode_sides(model, retrieval.queries)
    encode_seconds = time.perf_counter() - start
    found = codes if retrieval.gallery is retrieval.queries else encode_sides(model, retrieval.gallery)
    evaluation = evaluate_retrieval(model, retrieval, MEASURES)
    unified = evaluate_retrieval(model, retrieval, (AP(),), gallery="unified")
    lookups = look_up(codes, found, retrieval, n_bits)
    return CodeResult(
        method=method_name(type(model.model)),
        n_bits=n_bits,
        fold=fold,
        setting=setting,
        measures={measure.label: {way: evaluation[way].mean[measure] for way in DIRECTIONS} for measure in MEASURES},
        chance={measure.label: {way: evaluation[way].chance[measure] for way in DIRECTIONS} for measure in MEASURES},
        unified_map={way: unified[way].mean[AP()] for way in DIRECTIONS},
        precision_radius_2={way: lookup.precision(min(_RADIUS, n_bits)) for way, lookup in lookups.items()},
        unanswered_radius_2={way: lookup.unanswered(min(_RADIUS, n_bits)) for way, lookup in lookups.items()},
        lookup_recall={way: _rounded(lookup.micro_curve().x) for way, lookup in lookups.items()},
        lookup_precision={way: _rounded(lookup.micro_curve().y) for way, lookup in lookups.items()},
        statistics={
            "images": asdict(code_statistics(found["image_query"], n_bits)),
            "texts": asdict(code_statistics(found["text_query"], n_bits)),
        },
        fit_seconds=fit_seconds,
        encoded_per_second=(retrieval.queries.n_images + retrieval.queries.n_texts) / encode_seconds,
        model=one_line(model),
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 6) for value in values]


@dataclass(frozen=True)
class CodeStorage:
    """Storage of codes of a length, and exact searches for the ten nearest of ``n_items`` random codes in a second."""

    n_bits: int
    n_items: int
    queries_per_second: float

    @property
    def bytes_per_item(self) -> int:
        """Whole bytes of a packed code."""
        return -(-self.n_bits // 8)

    @property
    def megabytes_per_million(self) -> float:
        """Megabytes (10⁶ bytes) that a million items take."""
        return float(self.bytes_per_item)


def measure_storage(n_bits: int, n_items: int = 1_000_000, seed: int = 0) -> CodeStorage:
    """Time exact search among ``n_items`` random codes; the best of three batches of 64 queries counts."""
    rng = np.random.default_rng(seed)
    width = -(-n_bits // 8)
    gallery = rng.integers(0, 256, size=(n_items, width), dtype=np.uint8)
    queries = rng.integers(0, 256, size=(_QUERIES, width), dtype=np.uint8)
    # Bits beyond the length are zero in every code, as they are when signs are packed.
    padding = np.uint8(0xFF << (8 * width - n_bits) & 0xFF)
    gallery[:, -1] &= padding
    queries[:, -1] &= padding
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        nearest_codes(queries, gallery, min(_NEAREST, n_items))
        seconds.append(time.perf_counter() - start)
    return CodeStorage(n_bits, n_items, _QUERIES / min(seconds))


# Everything that a number of the journal depends on.
_SOURCES = (
    "arrays.py",
    "space.py",
    "codes",
    "data",
    "metrics",
    "models",
    "protocols",
    "benchmark/task.py",
    "benchmark/hashing.py",
)
BITS = (4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class BitBudgetReport(BenchmarkReport):
    """The results of every method, length and fold on one data set, and what codes of each length cost.

    ``supervised`` names the methods that learn from labels; ``left_out`` says why a method is not here.
    """

    task: HashingTask
    results: tuple[CodeResult, ...]
    storage: tuple[CodeStorage, ...]
    supervised: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they were measured."""
        return tuple(dict.fromkeys(result.method for result in self.results))

    @property
    def bits(self) -> tuple[int, ...]:
        """The lengths of the codes, ascending."""
        return tuple(sorted({result.n_bits for result in self.results}))

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len({result.fold for result in self.results})

    def select(self, setting: str, method: str | None = None, n_bits: int | None = None) -> list[CodeResult]:
        """Return the results of a setting, of one method and length where they are given."""
        return [
            result
            for result in self.results
            if result.setting == setting and method in (None, result.method) and n_bits in (None, result.n_bits)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with means and deviations over the folds."""
        return {
            "task": self.task.name,
            "title": self.task.title,
            "notes": list(self.task.notes),
            "ties": "expected",
            "gallery": "view codes; unified_map has one code of both sides for every item of the gallery",
            "denominator": "all relevant items",
            "folds": self.n_folds,
            "supervised": list(self.supervised),
            "left_out": self.left_out,
            "means": [
                self._mean(setting, method, bits)
                for setting in self.task.settings
                for method in self.methods
                for bits in self.bits
            ],
            "storage": [
                asdict(cost)
                | {"bytes_per_item": cost.bytes_per_item, "megabytes_per_million": cost.megabytes_per_million}
                for cost in self.storage
            ],
            "results": [asdict(result) for result in self.results],
            "diptych": __version__,
        }

    def _mean(self, setting: str, method: str, n_bits: int) -> dict[str, Any]:
        chosen = self.select(setting, method, n_bits)
        values: dict[str, Any] = {"setting": setting, "method": method, "n_bits": n_bits, "folds": len(chosen)}
        for way in DIRECTIONS:
            mean, deviation = spread([result.measures[AP().label][way] for result in chosen])
            chance, _ = spread([result.chance[AP().label][way] for result in chosen])
            values[way] = {"map": mean, "deviation": deviation, "chance": chance}
        return values


def code_journal(folder: str | PathLike[str], task: HashingTask, splits: DatasetSplits) -> Journal[list[CodeResult]]:
    """Return the journal of a task: its name is a digest of the features and of the code that measures them."""
    features = (task.name, task.images, task.texts, pairs_digest(splits.train), pairs_digest(splits.test))
    return Journal(
        folder,
        (source_digest(*_SOURCES), *features),
        read=lambda value: [CodeResult(**values) for values in value],
        write=lambda results: [asdict(result) for result in results],
        prefix=f"{task.name}-",
    )


def fit_key(method: HashingModel, n_bits: int, fold: int) -> str:
    """Return what tells one fit of a task from another."""
    given_by_fold = ("n_bits", "random_state")
    chosen = method.get_params().items()
    parameters = {name: repr(value) for name, value in chosen if name not in given_by_fold}
    return json.dumps([type(method).__name__, parameters, n_bits, fold], sort_keys=True)


def hashing_methods() -> dict[str, type[HashingModel]]:
    """Return every public hashing method by its command-line name."""
    return {name: cls for name, cls in model_classes().items() if issubclass(cls, HashingModel)}


def run_bit_budget(
    task: HashingTask,
    *,
    bits: Sequence[int] = BITS,
    methods: Collection[str] | None = None,
    folds: int = 5,
    n_jobs: int = 1,
    n_searched: int = 1_000_000,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
) -> BitBudgetReport:
    """Measure every hashing method at every length and fold of a task.

    Methods keep their default parameters, so that nothing is chosen on test data. Methods that learn from labels are
    left out where there are none, and so are those whose packages are not installed; the report says why.
    ``n_searched`` random codes are searched to time each length. In ``folder`` every fit is noted, so that a run that
    was stopped goes on. ``stage(title)`` is entered around each long step and gives a function (done, total) to call.
    """
    if not bits or min(bits) < 1:
        raise InvalidInputError(f"bits must be lengths of at least 1, got {list(bits)}")
    if folds < 1:
        raise InvalidInputError(f"folds must be at least 1, got {folds}")
    chosen = select_methods("hashing method", hashing_methods(), methods)
    lengths = sorted(set(bits))
    stage = stage or silent_stage
    with stage(f"loading {task.name}"):
        splits = task.load()
    journal = None if folder is None else code_journal(folder, task, splits)

    def measure(name: str, cls: type[HashingModel]) -> list[CodeResult]:
        method = cls()
        calls = [
            (fit_key(method, length, fold), delayed(measure_fold)(task, splits, method, length, fold))
            for length in lengths
            for fold in range(folds)
        ]
        with stage(f"{task.name}: {name}") as progress:
            fits = run_noted(calls, journal, n_jobs=n_jobs, progress=progress)
        return list(chain.from_iterable(fits))

    supervised = tuple(name for name, cls in chosen.items() if "labels" in cls.needs)
    results, left_out = measure_methods(
        chosen, measure, lambda cls: LACKS_LABELS if "labels" in cls.needs and not task.has_classes else ""
    )
    with stage("timing searches"):
        storage = tuple(measure_storage(length, n_searched) for length in lengths)
    return BitBudgetReport(task, results, storage, supervised, left_out)
