"""Ranking methods and networks, each fitted once and measured, beside the values that Zhang et al. (2017) print."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from joblib import delayed

from diptych import models
from diptych._version import __version__
from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.benchmark.published import published_scores
from diptych.benchmark.runner import (
    LACKS_LABELS,
    BenchmarkReport,
    Stage,
    measure_methods,
    select_methods,
    silent_stage,
    spread,
)
from diptych.benchmark.task import (
    NETWORK_ENCODERS,
    EncodedTask,
    MethodBase,
    labelled_only,
    one_line,
    with_settings,
)
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Measure, Precision, PrecisionScope, RecallAtK
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.preprocessed import RowScaling
from diptych.protocols import EncodedRetrieval
from diptych.protocols.journal import Journal, pairs_digest, run_noted, source_digest
from diptych.protocols.retrieval import encode_sides, relevance_labels
from diptych.space import DIRECTIONS, Direction, opposite

Reads = Literal["features", "words", "pixels"]

LABELLED: tuple[Measure, ...] = (AP(50, "retrieved"), AP(50, "total"), AP())
CAPTIONED: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10))
_NETWORKS = "Features: EfficientNet-Lite2 and MiniLM, rows of unit length; MNiL reads the captions' words."
_CAPTIONS = "Relevant: the query's own photo, or its five captions."
# As Zhang et al. call what ranks for one direction alone.
_ABLATIONS: tuple[tuple[str, str, str, Literal["both", "image_query", "text_query"]], ...] = (
    ("mnil-i-t", "MNiL(I→T)", "MNiL(I->T)", "image_query"),
    ("mnil-t-i", "MNiL(T→I)", "MNiL(T->I)", "text_query"),
    ("mnil", "MNiL", "MNiL", "both"),
)
# ResNet-50 fine-tuned on squares of 224 pixels, with the settings and the tower of words of mnil_flickr8k.py.
_PIXELS: dict[str, Any] = {
    "image_tower": "resnet50",
    "image_side": 252,
    "image_crop": 224,
    "flip": True,
    "n_components": 512,
    "word_size": 300,
    "hidden_size": 512,
    "dropout": 0.3,
    "min_texts": 3,
    "learning_rate": 1e-3,
    "map_factor": 1.0,
    "image_factor": 0.05,
    "weight_decay": 1e-2,
}
# Chosen on the development photos of Flickr8k, as bench/flickr8k_features.py does.
_FEATURES: dict[str, Any] = {
    "image_tower": "features",
    "image_hidden": 2048,
    "text_tower": "minilm",
    "max_words": 32,
    "n_components": 1024,
    "hidden_size": 1024,
    "dropout": 0.7,
    "margin": 0.1,
    "learning_rate": 3e-4,
    "map_factor": 1.0,
    "batch_size": 512,
}


@dataclass(frozen=True, eq=False)
class NeuralData:
    """The items as they came, and the features that encoders made of them."""

    items: DatasetSplits
    features: DatasetSplits

    def lacks(self, reads: Reads) -> str:
        """Return what methods that read items lack, empty where nothing is missing."""
        if reads != "features" and self.items.train.has_text_features:
            return "reads words, but the texts come as features"
        if reads == "pixels" and self.items.train.has_image_features:
            return "reads pixels, but the pictures come as features"
        return ""

    def parts(self, reads: Reads) -> tuple[Pairs, Pairs]:
        """Return what to learn from and what to ask: features, features of pictures and strings, or items."""
        if reads == "pixels":
            return self.items.train, self.items.test
        if reads == "features":
            return self.features.train, self.features.test
        raw, made = self.items, self.features
        return (
            raw.train.with_features(images=np.asarray(made.train.images)),
            raw.test.with_features(images=np.asarray(made.test.images)),
        )


@dataclass(frozen=True)
class NeuralTask(EncodedTask):
    """A data set, its features, and what is measured on it.

    With classes, an item is relevant that shares one with the query, and MAP is measured, as in table 1 of Zhang et al.
    (2017); without, it is the query's own picture or captions, and recall is measured, as in table 2. ``same_data``
    says that the paper's values were measured on this data set.
    """

    images: RowScaling = "l2"
    texts: RowScaling = "l2"
    has_classes: bool = True
    same_data: bool = False

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured in both directions; the first is what methods are ordered by."""
        return LABELLED if self.has_classes else CAPTIONED

    @property
    def published_table(self) -> str:
        """The table of the paper that measures the same."""
        return "Table 1" if self.has_classes else "Table 2"

    @property
    def published_data(self) -> str:
        """The data set of that table."""
        return "MSCOCO" if self.has_classes else "Flickr30K"

    def load(self) -> NeuralData:
        """Return the items and their features; pictures without any class are left out where there are classes."""
        items = self.load_items()
        if self.has_classes:
            items = labelled_only(items)
        return NeuralData(items, self.encode(replace(items, dev=None)))


NEURAL_TASKS = (
    NeuralTask(
        name="wikipedia",
        title="Wikipedia, 2,173 training and 693 test pairs, 10 classes",
        dataset="wikipedia",
        texts="none",
        notes=("Features: 128 SIFT words, rows of unit length, and 10 LDA topics as supplied; there are no words.",),
    ),
    NeuralTask(
        name="pascal",
        title="Pascal Sentence, 700 training and 300 test photos with five captions, 20 classes",
        dataset="pascal_sentence",
        **NETWORK_ENCODERS,
        notes=(_NETWORKS, "Every caption is a text of its own: 3,500 to learn from, 1,498 to ask and to find."),
    ),
    NeuralTask(
        name="flickr8k",
        title="Flickr8k, 6,000 training and 1,000 test photos with five captions",
        dataset="flickr8k",
        **NETWORK_ENCODERS,
        has_classes=False,
        notes=(_NETWORKS, _CAPTIONS),
    ),
    NeuralTask(
        name="flickr30k",
        title="Flickr30K, 29,783 training and 1,000 test photos with five captions",
        dataset="flickr30k",
        options={"split": "entities"},
        **NETWORK_ENCODERS,
        has_classes=False,
        same_data=True,
        notes=(_NETWORKS, _CAPTIONS, "The split of Flickr30k Entities; the paper draws ten splits of these sizes."),
    ),
    NeuralTask(
        name="coco",
        title="COCO val2017, 4,000 training and 1,000 test photos with five captions, 80 classes",
        dataset="coco",
        **NETWORK_ENCODERS,
        notes=(_NETWORKS, "Relevant: what shares a class. The paper learns from 82,081 photos of 2014."),
    ),
    NeuralTask(
        name="coco-pairs",
        title="COCO val2014, 15,819 training and 987 test photos with one caption, the paper's 81 labels",
        dataset="coco_pairs",
        options={"label": "category"},
        **NETWORK_ENCODERS,
        notes=(
            _NETWORKS,
            "Relevant: what shares a label, by the paper's own file. Its 82,081 training, 5,000 development and 5,000 "
            "query pairs, scaled to the 18,000 photos at hand; photos without a label are left out.",
        ),
    ),
)


@dataclass(frozen=True)
class NeuralMethod(MethodBase):
    """A method, what it reads, and under which name Zhang et al. (2017) print it.

    ``key`` is what people type, ``name`` what tables show; ``published`` is empty where the paper prints nothing. With
    ``own_classes`` a method that learns from classes takes each picture and its texts for one where there are none.
    """

    key: str
    name: str
    model: CrossModalModel
    reads: Reads = "features"
    published: str = ""
    own_classes: bool = False

    @property
    def has_seed(self) -> bool:
        """Whether a second seed gives a second result."""
        return "random_state" in self.model.get_params(deep=False)

    def build(
        self, images: RowScaling, texts: RowScaling, *, seed: int = 0, epochs: int | None = None
    ) -> CrossModalModel:
        """Return the unfitted model; features are scaled in front of it, ``epochs`` replaces its own number."""
        model = with_settings(self.model, random_state=seed, epochs=epochs)
        return Preprocessed(model=model, images=images, texts=texts) if self.reads == "features" else model


def neural_methods(*, pixels: bool = False) -> dict[str, NeuralMethod]:
    """Return the methods by what people type: those of the paper's tables in their order, then others.

    Zhang et al. name GMA, LCFS, LGCFL and ml-CCA but print no result of them. With ``pixels`` MNiL also learns from
    the pictures themselves, which takes a graphics card for more than a try.
    """
    printed = [
        NeuralMethod("bi-cmsrm", "Bi-CMSRM", models.BiCMSRM(), published="Bi-CMSRM"),
        NeuralMethod("pl-ranking", "PL-ranking", models.PLRanking(), published="PL-ranking", own_classes=True),
        NeuralMethod("ldsp", "LDSP", models.LDSP(), published="LDSP"),
        *(
            NeuralMethod(key, name, models.MNiL(direction=way, **_FEATURES), "words", published)
            for key, name, published, way in _ABLATIONS
        ),
    ]
    from_pixels = [
        NeuralMethod(f"{key}-pixels", f"{name}, pixels", models.MNiL(direction=way, **_PIXELS), "pixels", published)
        for key, name, published, way in _ABLATIONS
    ]
    others = [
        NeuralMethod("cca", "CCA", models.CCA()),
        NeuralMethod("warp", "WARP", models.WARP()),
        NeuralMethod("scm", "SCM", models.SCM()),
        NeuralMethod("deep-sm", "deep-SM", models.DeepSM()),
        NeuralMethod("gmlda", "GMA (GMLDA)", models.GMLDA()),
        NeuralMethod("lcfs", "LCFS", models.LCFS()),
        NeuralMethod("lgcfl", "LGCFL", models.LGCFL()),
        NeuralMethod("ml-cca", "ml-CCA", models.MLCCA()),
    ]
    return {method.key: method for method in (*printed, *(from_pixels if pixels else ()), *others)}


ByDirection = dict[Direction, float]

SCOPES = (10, 20, 50, *range(100, 1001, 100))
_MAX_CLASSES = 6
_MAX_ITEMS = 300
# Everything that a number of the journal depends on, besides the features.
_SOURCES = (
    "arrays.py",
    "space.py",
    "metrics",
    "models",
    "protocols",
    "benchmark/task.py",
    "benchmark/neural.py",
)


@dataclass(frozen=True)
class NeuralResult:
    """Measures and chance in both directions, keyed by the label of the measure, and precision at each scope.

    ``relevant_share`` is the chance level of precision at any scope.
    """

    method: str
    seed: int
    measures: dict[str, ByDirection]
    chance: dict[str, ByDirection]
    scopes: list[int]
    precision: dict[Direction, list[float]]
    relevant_share: ByDirection
    fit_seconds: float
    encode_seconds: float
    model: str


def fit_method(
    task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int, epochs: int | None
) -> CrossModalModel:
    """Return the method, learned from the training part."""
    train, _ = data.parts(method.reads)
    images, texts, labels = train.aligned()
    if labels is None and method.own_classes:
        labels = train.owners
    return method.build(task.images, task.texts, seed=seed, epochs=epochs).fit(images, texts, labels)


def encode_test_part(model: CrossModalModel, pairs: Pairs, *, has_classes: bool) -> EncodedRetrieval:
    """Return the points of queries and gallery, features or items alike, and what makes answers right."""
    points, truth = encode_sides(model, pairs), relevance_labels(pairs, "auto" if has_classes else "instance")
    return EncodedRetrieval(model.space, points, points, truth, truth)


def measure_fit(
    task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int = 0, epochs: int | None = None
) -> NeuralResult:
    """Learn a method with one seed and measure it on the test part."""
    start = time.perf_counter()
    model = fit_method(task, data, method, seed, epochs)
    learned = time.perf_counter()
    _, test = data.parts(method.reads)
    asked = encode_test_part(model, test, has_classes=task.has_classes)
    ready = time.perf_counter()
    scopes = tuple(scope for scope in SCOPES if scope <= min(test.n_images, test.n_texts)) or (1,)
    curve, first = PrecisionScope(scopes), Precision(1)
    evaluation = asked.evaluate([*task.measures, first, curve])
    return NeuralResult(
        method=method.key,
        seed=seed,
        measures={m.label: {way: evaluation[way].mean[m] for way in DIRECTIONS} for m in task.measures},
        chance={m.label: {way: evaluation[way].chance[m] for way in DIRECTIONS} for m in task.measures},
        scopes=list(scopes),
        precision={way: [float(value) for value in evaluation[way].curves[curve].y] for way in DIRECTIONS},
        relevant_share={way: evaluation[way].chance[first] for way in DIRECTIONS},
        fit_seconds=learned - start,
        encode_seconds=ready - learned,
        model=one_line(model),
    )


Points = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Illustration:
    """A method learned once, and the test items as points of its space."""

    method: NeuralMethod
    model: CrossModalModel
    pairs: Pairs
    points: EncodedRetrieval
    features: Pairs

    @classmethod
    def of(
        cls, task: NeuralTask, data: NeuralData, method: NeuralMethod, *, seed: int = 0, epochs: int | None = None
    ) -> Illustration:
        """Learn the method as `run_neural` does and encode the test part."""
        model = fit_method(task, data, method, seed, epochs)
        _, test = data.parts(method.reads)
        points = encode_test_part(model, test, has_classes=task.has_classes)
        return cls(method, model, data.items.test, points, data.features.test)

    def map_rows(self, seed: int = 0) -> tuple[IntArray, AnyArray]:
        """Return picture rows for a map, those of one class among the six commonest, and their classes by name.

        At most 300 rows are drawn.
        """
        names = np.array([""]) if self.pairs.labels is None else self.pairs.image_classes()
        if self.pairs.is_multi_label:
            names = np.where(np.asarray(self.pairs.labels).sum(axis=1) == 1, names, "")
        known, counts = np.unique(names[names != ""], return_counts=True)
        commonest = known[np.argsort(-counts, kind="stable")[:_MAX_CLASSES]]
        rows = np.flatnonzero(np.isin(names, commonest))
        if len(rows) > _MAX_ITEMS:
            rows = np.sort(np.random.default_rng(seed).permutation(rows)[:_MAX_ITEMS])
        return rows, names[rows]

    def stages(self, rows: IntArray, seed: int = 0) -> dict[str, Points]:
        """Return the points of pictures and of their first texts, before learning and after.

        Before, there are only features: each side is centred and mapped to the same dimensions at random.
        """
        texts = np.unique(self.pairs.owners, return_index=True)[1][rows]
        images, words = np.asarray(self.features.images), np.asarray(self.features.texts)
        width = min(images.shape[1], words.shape[1])
        rng = np.random.default_rng(seed)
        before = (_mapped(images, rows, width, rng), _mapped(words, texts, width, rng))
        learned = self.points.queries
        return {
            "before: features, random maps": before,
            f"after: {self.method.name}": (learned["image_query"][rows], learned["text_query"][texts]),
        }

    def answers(self, way: Direction, row: int, k: int = 4) -> tuple[IntArray, AnyArray]:
        """Return the first ``k`` answers to a query, as rows of the other side, and whether each is right."""
        images, texts = self.points.queries["image_query"], self.points.queries["text_query"]
        if way == "image_query":
            scores = self.points.space.compare(images[row : row + 1], texts)[0]
        else:
            scores = self.points.space.compare(images, texts[row : row + 1])[:, 0]
        found = np.argsort(-scores, kind="stable")[:k].astype(np.int64)
        asked, carried = self.points.query_truth[way][row], self.points.gallery_truth[opposite(way)][found]
        right = carried == asked if carried.ndim == 1 else (carried * asked).any(axis=1)
        return found, np.asarray(right)


def _mapped(features: FloatArray, rows: IntArray, width: int, rng: np.random.Generator) -> FloatArray:
    centred = features - features.mean(axis=0)
    return np.asarray(centred[rows] @ rng.normal(size=(features.shape[1], width)))


@dataclass(frozen=True)
class NeuralReport(BenchmarkReport):
    """The results of every method and seed on one data set, beside those of the paper.

    ``methods`` are all that there are, measured or not; ``left_out`` says why one of those asked for is not measured.
    """

    task: NeuralTask
    methods: Mapping[str, NeuralMethod]
    results: tuple[NeuralResult, ...]
    left_out: dict[str, str]
    epochs: int | None = None

    @property
    def measured(self) -> tuple[str, ...]:
        """The methods with results, in the order of ``methods``."""
        return tuple(key for key in self.methods if self.select(key))

    @property
    def shown(self) -> tuple[NeuralMethod, ...]:
        """The methods with results and those that the paper prints."""
        return tuple(method for key, method in self.methods.items() if method.published or self.select(key))

    def select(self, method: str) -> list[NeuralResult]:
        """Return the results of a method, one for each seed."""
        return [result for result in self.results if result.method == method]

    def score(self, method: str, label: str, way: Direction) -> tuple[float, float] | None:
        """Return mean and standard deviation over seeds, None where the method was not measured."""
        values = [result.measures[label][way] for result in self.select(method)]
        return spread(values) if values else None

    def published(self, method: NeuralMethod, label: str, way: Direction) -> float | None:
        """Return what the paper prints, on its own data, or None."""
        return published_scores(self.task.published_table).get(method.published, {}).get(label, {}).get(way)

    def chance(self, label: str, way: Direction) -> float:
        """Return the value of a ranking that prefers nothing."""
        return self.results[0].chance[label][way]

    def best(self) -> str:
        """Return the method with the best mean of both directions by the first measure."""
        label = self.task.measures[0].label

        def both(method: str) -> float:
            return float(np.mean([result.measures[label][way] for result in self.select(method) for way in DIRECTIONS]))

        return max(self.measured, key=both)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with means and deviations over the seeds."""
        return {
            "format": "diptych-neural-benchmark",
            "task": self.task.name,
            "title": self.task.title,
            "notes": list(self.task.notes),
            "published": {
                "paper": 'Zhang et al., "Multi-networks joint learning for large-scale cross-modal retrieval", 2017',
                "table": self.task.published_table,
                "data": self.task.published_data,
                "same_data": self.task.same_data,
            },
            "epochs": self.epochs,
            "methods": [self._row(method) for method in self.shown],
            "left_out": self.left_out,
            "results": [asdict(result) for result in self.results],
            "diptych": __version__,
        }

    def _row(self, method: NeuralMethod) -> dict[str, Any]:
        results = self.select(method.key)
        return {
            "method": method.key,
            "name": method.name,
            "reads": method.reads,
            "seeds": [result.seed for result in results],
            "fit_seconds": [result.fit_seconds for result in results],
            "measures": {
                measure.label: {way: self._cell(method, measure.label, way) for way in DIRECTIONS}
                for measure in self.task.measures
            },
        }

    def _cell(self, method: NeuralMethod, label: str, way: Direction) -> dict[str, float | None]:
        score = self.score(method.key, label, way)
        return {
            "mean": None if score is None else score[0],
            "deviation": None if score is None else score[1],
            "chance": self.chance(label, way) if self.results else None,
            "published": self.published(method, label, way),
        }


def neural_journal(folder: str | PathLike[str], task: NeuralTask, data: NeuralData) -> Journal[NeuralResult]:
    """Return the journal of a task: its name is a digest of the data and of the code that measures them."""
    reads: Reads = "features" if data.lacks("words") else "words"
    parts = (*data.parts("features"), *data.parts(reads))
    return Journal(
        folder,
        (source_digest(*_SOURCES), task.name, task.images, task.texts, *map(pairs_digest, parts)),
        read=lambda value: NeuralResult(**value),
        write=asdict,
        prefix=f"{task.name}-",
    )


def fit_key(method: NeuralMethod, seed: int, epochs: int | None) -> str:
    """Return what tells one fit of a task from another."""
    parameters = {name: repr(value) for name, value in method.model.get_params().items() if name != "random_state"}
    return json.dumps([method.key, type(method.model).__name__, parameters, seed, epochs], sort_keys=True)


def run_neural(
    task: NeuralTask,
    *,
    methods: Collection[str] | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    pixels: bool = False,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
    data: NeuralData | None = None,
) -> NeuralReport:
    """Measure methods on a task with the seeds 0, 1, …; methods without a seed are fitted once.

    Methods keep their defaults, so that nothing is chosen on test data; ``epochs`` replaces the number of passes of
    those that have one. Those that learn from labels are left out where there are none, those that read words where
    texts come as features, and those whose packages are not installed; the report says why. In ``folder`` every fit is
    noted, so that a run that was stopped goes on. ``stage(title)`` is entered around each long step and gives a
    function (done, total) to call. ``data`` are those of the task, where they are loaded already.
    """
    if seeds < 1:
        raise InvalidInputError(f"seeds must be at least 1, got {seeds}")
    if epochs is not None and epochs < 1:
        raise InvalidInputError(f"epochs must be at least 1, got {epochs}")
    known = neural_methods(pixels=pixels or any(name.endswith("-pixels") for name in methods or ()))
    chosen = select_methods("method of the comparison of networks", known, methods, as_declared=True)
    stage = stage or silent_stage
    if data is None:
        with stage(f"loading {task.name}"):
            data = task.load()
    loaded = data
    journal = None if folder is None else neural_journal(folder, task, loaded)

    def measure(_: str, method: NeuralMethod) -> list[NeuralResult]:
        calls = [
            (fit_key(method, seed, epochs), delayed(measure_fit)(task, loaded, method, seed, epochs))
            for seed in range(seeds if method.has_seed else 1)
        ]
        with stage(f"{task.name}: {method.name}") as progress:
            return run_noted(calls, journal, progress=progress)

    def why_not(method: NeuralMethod) -> str:
        lacks_labels = method.needs_labels and not task.has_classes and not method.own_classes
        return LACKS_LABELS if lacks_labels else loaded.lacks(method.reads)

    results, left_out = measure_methods(chosen, measure, why_not)
    return NeuralReport(task, known, results, left_out, epochs)
