"""The experiments of Costa Pereira et al. (2014): which distance, which correlation, and do the two ideas add up?

The components of KCCA come one after another: those of a smaller number are the first of a larger one. So the kernel
problem, which takes nearly all the time, is solved once for all numbers and for CM and SCM alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.benchmark.published import DISTANCES, MapScore, Published, published_map
from diptych.benchmark.runner import Stage, silent_stage
from diptych.benchmark.tables import NOTHING, Table
from diptych.benchmark.task import DataTask
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import Encoder, LdaTopics, SiftWords, encode_splits
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import AP, ConfusionMatrix, InterpolatedPrecisionRecall, category_means
from diptych.models import CCA, CFA, KCCA, SM, CrossModalModel, Preprocessed
from diptych.protocols import EncodedRetrieval, HoldOut, Retrieval, TwoWayEvaluation, tune
from diptych.protocols.retrieval import relevance_labels
from diptych.space import DIRECTIONS, Direction, Space

# NCc, the normalised correlation of centred points, which the paper settles on for all three spaces. Of probabilities
# it means something; a correlation method leaves the sign of each direction open, and the mean over the components,
# which NCc subtracts, is then whatever the signs happen to be. NC asks for no signs, and the paper finds no difference
# between the two for CM on Wikipedia.
CENTRED_CORRELATION = "pearson"
CORRELATION = "cosine"
# Raw, ℓ2 or square-rooted rows; the paper does not say how features enter the linear methods.
_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
STRENGTHS = tuple(10.0**power for power in range(-1, 5))
"""Values of C of the classifiers."""


@dataclass(frozen=True)
class CorrelatedPairs:
    """Training pairs and asked pairs as points of a KCCA subspace."""

    train: Pairs
    asked: Pairs

    @classmethod
    def learn(cls, train: Pairs, asked: Pairs, *, n_components: int, kappa: float) -> CorrelatedPairs:
        """Fit KCCA on ``train``."""
        model = KCCA(n_components=n_components, kappa=kappa, metric=CORRELATION).fit(*train.aligned())
        return cls(_as_points(model, train), _as_points(model, asked))

    def first(self, n_components: int) -> CorrelatedPairs:
        """Return the subspace of the first components."""
        return CorrelatedPairs(_narrowed(self.train, n_components), _narrowed(self.asked, n_components))

    def correlation_matching(self) -> EncodedRetrieval:
        """Return the asked pairs in the subspace itself: CM, by a measure that no sign of a component changes."""
        asked = self.asked
        points: dict[Direction, AnyArray] = {
            "image_query": np.asarray(asked.images),
            "text_query": np.asarray(asked.texts),
        }
        truth = relevance_labels(asked, "label")
        return EncodedRetrieval(Space(CORRELATION), points, points, truth, truth)

    def semantic_correlation_matching(self, C: float) -> EncodedRetrieval:
        """Return the asked pairs as class probabilities learned from points of the subspace: SCM."""
        return encode_pairs(SM(C=C, metric=CENTRED_CORRELATION).fit(*self.train.aligned()), self.asked)


def encode_pairs(model: CrossModalModel, asked: Pairs) -> EncodedRetrieval:
    """Return the asked pairs as points of a fitted model, everything searched by everything."""
    return EncodedRetrieval.of(model, Retrieval(asked, asked))


def _as_points(model: CrossModalModel, pairs: Pairs) -> Pairs:
    return pairs.with_features(images=model.encode_images(pairs.images), texts=model.encode_texts(pairs.texts))


def _narrowed(pairs: Pairs, n_components: int) -> Pairs:
    images: FloatArray = np.asarray(pairs.images)[:, :n_components]
    texts: FloatArray = np.asarray(pairs.texts)[:, :n_components]
    return pairs.with_features(images=images, texts=texts)


@dataclass(frozen=True)
class TunedMethod:
    """A method in its best setting: the validation part in its space, and the same fitted on all training pairs."""

    setting: str
    encoded: EncodedRetrieval
    model: CrossModalModel


@dataclass(frozen=True)
class KernelChoice:
    """The best KCCA subspace on the validation part, with the strength of classifiers in it, None for CM.

    ``growth`` is how many times more pairs the fit in the end has: Costa Pereira et al. multiply the components by it.
    """

    kappa: float
    n_components: int
    C: float | None
    encoded: EncodedRetrieval
    growth: float

    def average(self) -> float:
        """Return MAP on the validation part, the mean of both directions."""
        return self.encoded.evaluate([AP()]).average(AP())

    @property
    def grown(self) -> int:
        """The components of the fit on all training pairs."""
        return math.floor(self.n_components * self.growth + 0.5)

    @property
    def setting(self) -> str:
        """What was chosen, in words."""
        strength = "" if self.C is None else f", C={self.C:g}"
        return f"kappa={self.kappa:g}, n_components={self.n_components} (refit: {self.grown}){strength}"


def tune_method(
    model: CrossModalModel,
    grid: Mapping[str, Sequence[Any]],
    splits: DatasetSplits,
    protocol: HoldOut,
    *,
    n_jobs: int = 1,
) -> TunedMethod:
    """Choose the scaling of rows and the parameters of ``grid`` on the validation part of the training pairs."""
    inner = {f"model__{name}": values for name, values in grid.items()}
    grids = [{"images": [images], "texts": [texts], **inner} for images, texts in _SCALINGS]
    tuning = tune(Preprocessed(model=model), splits.train, grids, protocol, n_jobs=n_jobs)
    train, validation = validation_split(splits.train, protocol)
    again: CrossModalModel = clone(tuning.model).fit(*train.aligned())
    chosen = tuning.best.parameters
    values = [f"{name.removeprefix('model__')}={value:g}" for name, value in chosen.items() if name in inner]
    return TunedMethod(", ".join([*values, f"{chosen['images']} rows"]), encode_pairs(again, validation), tuning.model)


def validation_split(train: Pairs, protocol: HoldOut) -> tuple[Pairs, Pairs]:
    """Return what is fitted and what is asked while choosing."""
    return next(iter(protocol.splits(train)))


def kernel_choices(
    splits: DatasetSplits, protocol: HoldOut, kappas: Sequence[float], components: Sequence[int]
) -> tuple[KernelChoice, KernelChoice]:
    """Return the best CM and the best SCM on KCCA, by their average MAP on the validation part."""
    train, validation = validation_split(splits.train, protocol)
    growth = splits.train.n_images / train.n_images
    matching: list[KernelChoice] = []
    semantic: list[KernelChoice] = []
    for kappa, n_components, points in _subspaces(train, validation, kappas, components):
        matching.append(KernelChoice(kappa, n_components, None, points.correlation_matching(), growth))
        semantic += [
            KernelChoice(kappa, n_components, C, points.semantic_correlation_matching(C), growth) for C in STRENGTHS
        ]
    return max(matching, key=KernelChoice.average), max(semantic, key=KernelChoice.average)


def refit_choices(choices: Mapping[str, KernelChoice], splits: DatasetSplits) -> dict[str, EncodedRetrieval]:
    """Return the test part in the spaces that were chosen, fitted on all training pairs."""
    encoded: dict[str, EncodedRetrieval] = {}
    for kappa in {choice.kappa for choice in choices.values()}:
        alike = {name: choice for name, choice in choices.items() if choice.kappa == kappa}
        most = max(choice.grown for choice in alike.values())
        points = CorrelatedPairs.learn(splits.train, splits.test, n_components=most, kappa=kappa)
        for name, choice in alike.items():
            narrow = points.first(choice.grown)
            encoded[name] = (
                narrow.correlation_matching() if choice.C is None else narrow.semantic_correlation_matching(choice.C)
            )
    return encoded


def _subspaces(
    train: Pairs, validation: Pairs, kappas: Sequence[float], components: Sequence[int]
) -> Iterator[tuple[float, int, CorrelatedPairs]]:
    for kappa in kappas:
        points = CorrelatedPairs.learn(train, validation, n_components=max(components), kappa=kappa)
        width = np.shape(points.asked.images)[1]
        for n_components in sorted({min(wanted, width) for wanted in components}):
            yield kappa, n_components, points.first(n_components)


_RIDGES = (1e-3, 1e-2, 0.1, 1.0)
_CURVE = InterpolatedPrecisionRecall()
_METHODS = ("SCM", "SM", "CM")
SIGN_PATTERNS = 64
"""How many random choices of signs a value is the mean of that depends on them."""


@dataclass(frozen=True)
class CostaPereiraTask(DataTask):
    """Data, features to choose from, settings to choose from, and which tables the paper prints.

    ``image_encoders`` and ``text_encoders`` are by what a table calls them, one of each to be chosen; none where the
    data set comes as features. ``kappas`` and ``components`` are those of KCCA, ``few_components`` those of CCA and
    CFA. ``tables`` holds the paper's numbers of the tables for ``correlation`` and ``test``; nothing where it has none.
    """

    image_encoders: Mapping[str, Encoder] = field(default_factory=dict)
    text_encoders: Mapping[str, Encoder] = field(default_factory=dict)
    kappas: Sequence[float] = (0.5,)
    components: Sequence[int] = (5, 10, 20, 40, 80, 160)
    few_components: Sequence[int] = (3, 5, 7, 9)
    tables: Mapping[str, str] = field(default_factory=dict)
    protocol: HoldOut = field(default_factory=lambda: HoldOut(repeats=1, share=0.2))

    def representations(self) -> Iterator[tuple[str, DatasetSplits]]:
        """Yield every choice of features, learned from the training part, with its name."""
        raw = self.load_items()
        if not self.image_encoders or not self.text_encoders:
            yield "as given", raw
            return
        for image_name, image_encoder in self.image_encoders.items():
            for text_name, text_encoder in self.text_encoders.items():
                yield f"{image_name}, {text_name}", encode_splits(raw, image_encoder, text_encoder)

    def published(self, table: str, method: str, regime: str | None = None) -> Published | None:
        """Return what the paper prints, or None where it has no such table or row."""
        if table not in self.tables:
            return None
        return published_map("004", self.tables[table], self.dataset, method, regime)


@dataclass(frozen=True)
class MapRow(MapScore):
    """MAP of one method in both directions, beside the printed one; ``detail`` is a distance, or what was chosen.

    Where the signs of components decide, the values are means over random signs, and ``sign_range`` has the least and
    the largest average.
    """

    method: str
    image_query: float
    text_query: float
    detail: str = ""
    published: Published | None = None
    sign_range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class MethodDetail:
    """What the figures show of one method on the test part.

    ``precision`` is interpolated at recall 0, 0.1, … 1; ``categories`` holds the MAP of each category, ``confusion``
    which class the rankings of each class speak for.
    """

    precision: dict[Direction, tuple[float, ...]]
    categories: dict[Direction, dict[str, float | None]]
    confusion: dict[Direction, ConfusionMatrix]


@dataclass(frozen=True, eq=False)
class CostaPereiraReport:
    """The tables of one data set, and what the figures show of each method.

    ``pairs`` counts the pairs of every category (Tables II and III).
    ``representations``, ``distances`` (Table IV) and ``correlation`` (Tables V and VI) are measured on the validation
    part, ``test`` (Tables VIII and IX) on the test part after a new fit on all training pairs.
    """

    task: str
    title: str
    n_train: int
    n_validation: int
    n_test: int
    pairs: dict[str, dict[str, int]]
    representations: tuple[MapRow, ...]
    distances: tuple[MapRow, ...]
    correlation: tuple[MapRow, ...]
    test: tuple[MapRow, ...]
    details: dict[str, MethodDetail]
    chance: MethodDetail
    seconds: float
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        tables = {
            table: [{**asdict(row), "average": row.average} for row in getattr(self, table)]
            for table in ("representations", "distances", "correlation", "test")
        }
        figures = {name: _detail_as_json(detail) for name, detail in (*self.details.items(), ("chance", self.chance))}
        plain = ("task", "title", "n_train", "n_validation", "n_test", "pairs", "seconds")
        return {**{name: getattr(self, name) for name in plain}, **tables, "figures": figures, "notes": [*self.notes]}


def _detail_as_json(detail: MethodDetail) -> dict[str, Any]:
    return {
        "precision": {way: [*detail.precision[way]] for way in DIRECTIONS},
        "categories": detail.categories,
        "confusion": {
            way: {"classes": matrix.classes.tolist(), "counts": matrix.counts.tolist()}
            for way, matrix in detail.confusion.items()
        },
    }


COSTA_PEREIRA = (
    CostaPereiraTask(
        name="wikipedia",
        title="Wikipedia, 2,173 training and 693 test pairs, 128 SIFT words and 10 LDA topics",
        dataset="wikipedia",
        # The regulariser that the paper prints for this data set.
        kappas=(0.5,),
        tables={"distances": "Table IV", "correlation": "Table VI", "test": "Table IX"},
        notes=(
            "The paper chose among codebooks of 128 to 8,192 words and 5 to 4,000 topics; the features given to the "
            "public are smaller, so its numbers stand there for orientation.",
        ),
    ),
    CostaPereiraTask(
        name="pascal",
        title="Pascal Sentence, 700 training and 300 test pairs, SIFT words and LDA topics learned here",
        dataset="pascal_sentence",
        options={"captions": "join"},
        image_encoders={f"{words} words": SiftWords(n_words=words) for words in (256, 1024)},
        text_encoders={f"{topics} topics": LdaTopics(n_topics=topics) for topics in (20, 50, 100)},
        kappas=(0.1, 0.5, 0.9),
        few_components=(5, 10, 20, 40),
        notes=("The paper has no such data set: its experiments on another one, from raw pictures and sentences.",),
    ),
    CostaPereiraTask(
        name="tvgraz",
        title="TVGraz, 1,558 training and 500 test pairs, features as supplied",
        dataset="tvgraz",
        kappas=(0.1,),
        few_components=(5, 10, 20, 40),
        tables={"distances": "Table IV", "correlation": "Table V", "test": "Table VIII"},
    ),
)
"""One task for each data set: the paper's two, and Pascal Sentence from raw pictures."""


def run_costa_pereira(task: CostaPereiraTask, *, n_jobs: int = 1, stage: Stage | None = None) -> CostaPereiraReport:
    """Repeat the paper's experiments on one data set.

    One random fifth of the training pairs is the validation part. On it are chosen, one after another, the features,
    the settings of semantic matching (SM), of correlation matching (CM) by CFA, CCA and KCCA, and of semantic
    correlation matching (SCM): SM and SCM with the distance NCc, CM with NC, which the arbitrary signs of components do
    not change. With these settings five distances are compared. Then everything is fitted once more on all training
    pairs, with as many more kernel components as there are more pairs, and the test part is asked once. The order of
    the steps is ours: the paper compares distances first.

    Codebooks and topics, which use no labels, are learned from the whole training part, so that the validation part has
    been seen by them. ``stage(title)`` is entered around each long step.

    Costa Pereira et al., "On the role of correlation and abstraction in cross-modal multimedia retrieval", TPAMI 2014,
    sections V and VI.
    """
    started = time.perf_counter()
    enter = stage or silent_stage
    with enter("loading and encoding"):
        representations = dict(task.representations())
    with enter("tuning SM on each choice of features"):
        compared = {name: _tune_semantic_matching(task, splits, n_jobs) for name, splits in representations.items()}
        best = max(compared, key=lambda name: compared[name].encoded.evaluate([AP()]).average(AP()))
        splits, semantic = representations[best], compared[best]
    with enter("tuning CCA and CFA"):
        few = {"n_components": [*task.few_components]}
        linear = {
            "CM-CCA": tune_method(
                CCA(weight_power=0.0, metric=CORRELATION),
                few | {"regularization": _RIDGES},
                splits,
                task.protocol,
                n_jobs=n_jobs,
            ),
            "CM-CFA": tune_method(CFA(metric=CORRELATION), few, splits, task.protocol, n_jobs=n_jobs),
        }
    with enter("choosing KCCA and SCM"):
        correlation, both = kernel_choices(splits, task.protocol, task.kappas, task.components)
    with enter("fitting again and asking the test part"):
        tested = {
            "SM": encode_pairs(semantic.model, splits.test),
            **refit_choices({"CM": correlation, "SCM": both}, splits),
        }
        results = {name: encoded.evaluate([AP(), _CURVE]) for name, encoded in tested.items()}
        chance = _all_scores_equal(tested["SM"]).evaluate([AP(), _CURVE])
    chosen: dict[str, TunedMethod | KernelChoice] = {"CM": correlation, "SM": semantic, "SCM": both}
    validation = validation_split(splits.train, task.protocol)[1]
    return CostaPereiraReport(
        task=task.name,
        title=task.title,
        n_train=splits.train.n_images,
        n_validation=validation.n_images,
        n_test=splits.test.n_images,
        pairs=_count_pairs(splits, validation),
        representations=tuple(_row("SM", one.encoded, detail=name) for name, one in compared.items()),
        distances=tuple(_distance_rows(task, {name: choice.encoded for name, choice in chosen.items()})),
        correlation=tuple(_correlation_rows(task, {"CM-KCCA": correlation, **linear})),
        test=(
            *(_result_row(task, name, results[name], chosen[name].setting) for name in _METHODS),
            _result_row(task, "Random", chance, "exact expectation"),
        ),
        details={name: _detail(results[name], splits.test, tested[name]) for name in _METHODS},
        chance=_detail(chance, splits.test, None),
        seconds=time.perf_counter() - started,
        notes=task.notes,
    )


def _count_pairs(splits: DatasetSplits, validation: Pairs) -> dict[str, dict[str, int]]:
    """Return the training, validation, test and all pairs of every category, then of all together."""
    parts = {"n_training": splits.train, "n_validation_within_training": validation, "n_test": splits.test}
    classes = {name: pairs.image_classes() for name, pairs in parts.items()}
    counts = {
        str(category): {name: int((found == category).sum()) for name, found in classes.items()}
        for category in np.unique(np.concatenate([*classes.values()]))
    }
    counts["total"] = {name: len(found) for name, found in classes.items()}
    return {category: {**found, "n_total": found["n_training"] + found["n_test"]} for category, found in counts.items()}


def _tune_semantic_matching(task: CostaPereiraTask, splits: DatasetSplits, n_jobs: int) -> TunedMethod:
    if splits.train.labels is None or splits.train.is_multi_label:
        raise InvalidInputError(f"SM and SCM learn from one label per picture, which {task.dataset} does not have")
    return tune_method(SM(metric=CENTRED_CORRELATION), {"C": STRENGTHS}, splits, task.protocol, n_jobs=n_jobs)


def _row(method: str, encoded: EncodedRetrieval, *, detail: str = "", published: Published | None = None) -> MapRow:
    found = encoded.evaluate([AP()])
    return MapRow(method, found.image_query[AP()], found.text_query[AP()], detail, published)


def _row_over_signs(
    method: str, encoded: EncodedRetrieval, *, detail: str = "", published: Published | None = None
) -> MapRow:
    """Return the mean over random signs of the components, which a correlation method leaves open, and the range."""
    n_components = encoded.queries["image_query"].shape[1]
    patterns = np.random.default_rng(0).choice([-1.0, 1.0], size=(SIGN_PATTERNS, n_components))
    rows = [_row(method, _with_signs(encoded, signs)) for signs in patterns]
    image_query, text_query = (float(np.mean([getattr(row, way) for row in rows])) for way in DIRECTIONS)
    averages = [row.average for row in rows]
    return MapRow(method, image_query, text_query, detail, published, (min(averages), max(averages)))


def _with_signs(encoded: EncodedRetrieval, signs: FloatArray) -> EncodedRetrieval:
    queries = {way: points * signs for way, points in encoded.queries.items()}
    gallery = {way: points * signs for way, points in encoded.gallery.items()}
    return replace(encoded, queries=queries, gallery=gallery)


def _distance_rows(task: CostaPereiraTask, encoded: Mapping[str, EncodedRetrieval]) -> Iterator[MapRow]:
    """Yield the five distances of each space; points of CM are no probabilities, so that KL is not defined for it."""
    for method, points in encoded.items():
        for metric, printed in DISTANCES.items():
            if method == "CM" and metric == "kl":
                continue
            compared = replace(points, space=Space(metric))
            row = _row_over_signs if method == "CM" and metric == CENTRED_CORRELATION else _row
            published = task.published("distances", method, f"validation set; distance {printed}")
            yield row(method, compared, detail=metric, published=published)


def _correlation_rows(task: CostaPereiraTask, choices: Mapping[str, TunedMethod | KernelChoice]) -> Iterator[MapRow]:
    for method, choice in choices.items():
        published = task.published("correlation", method, "validation set; CM")
        yield _row(method, choice.encoded, detail=choice.setting, published=published)


def _result_row(task: CostaPereiraTask, method: str, result: TwoWayEvaluation, setting: str) -> MapRow:
    published = task.published("test", method, "test set")
    return MapRow(method, result.image_query[AP()], result.text_query[AP()], setting, published)


def _all_scores_equal(encoded: EncodedRetrieval) -> EncodedRetrieval:
    """Return the same questions where every answer scores the same, so that measures take their chance level."""
    queries = {way: np.zeros_like(points) for way, points in encoded.queries.items()}
    gallery = {way: np.zeros_like(points) for way, points in encoded.gallery.items()}
    return replace(encoded, space=Space("dot"), queries=queries, gallery=gallery)


def _detail(result: TwoWayEvaluation, test: Pairs, encoded: EncodedRetrieval | None) -> MethodDetail:
    truth = {"image_query": np.asarray(test.labels), "text_query": np.asarray(test.text_labels)}
    categories = {way: category_means(result[way].values[AP()], truth[way]) for way in DIRECTIONS}
    return MethodDetail(
        precision={way: tuple(result[way][_CURVE].y.tolist()) for way in DIRECTIONS},
        categories={way: {str(name): mean for name, mean in means.items()} for way, means in categories.items()},
        confusion={} if encoded is None else {way: encoded.confusion(way) for way in DIRECTIONS},
    )


_DISTANCE_NAMES = {"euclidean": "ℓ2", "l1": "ℓ1", "kl": "KL", "cosine": "NC", "pearson": "NCc"}


def costa_pereira_tables(document: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of one data set, in the order of the paper, from what `CostaPereiraReport.as_json` gives."""
    title = document["title"].partition(",")[0]
    tables = {}
    if len(document["representations"]) > 1:
        heading = f"{title}: features, MAP of SM on the {document['n_validation']} validation pairs"
        tables["representations"] = _map_table(heading, document["representations"], "features")
    counts = tuple((name, *(f"{count:,}" for count in found.values())) for name, found in document["pairs"].items())
    headings = ("category", "training", "of them for validation", "test", "all")
    tables["pairs"] = Table(f"{title}: pairs of each category (Tables II and III)", headings, counts)
    distances = [{**row, "detail": _DISTANCE_NAMES[row["detail"]]} for row in document["distances"]]
    notes = [
        f"{row['method']} under {row['detail']} depends on the signs of the components, which nothing determines: mean "
        f"over random signs; their averages lie between {row['sign_range'][0]:.4f} and {row['sign_range'][1]:.4f}."
        for row in distances
        if row["sign_range"]
    ]
    heading = f"{title}: distances (Table IV), MAP on the validation part"
    tables["distances"] = _map_table(heading, distances, "distance", notes)
    heading = f"{title}: correlation methods (Tables V and VI) by NC, MAP on the validation part"
    tables["correlation"] = _map_table(heading, document["correlation"], "chosen")
    rows = document["test"]
    best = next(row["average"] for row in rows if row["method"] == "SCM")
    gains = (f"{row['method']} {100 * (best / row['average'] - 1):+.1f} %" for row in rows if row["method"] != "SCM")
    notes = [f"SCM's average beside that of the others: {', '.join(gains)}.", *document["notes"]]
    heading = f"{title}: test part (Tables VIII and IX), MAP of {document['n_test']} pairs"
    tables["test"] = _map_table(heading, rows, "chosen", notes)
    return tables


def _map_table(title: str, rows: Sequence[Mapping[str, Any]], detail: str, notes: Sequence[str] = ()) -> Table:
    beside = any(row["published"] for row in rows)
    cells = []
    for row in rows:
        values = [row["image_query"], row["text_query"], row["average"]]
        printed: list[float | None] = [None] * len(values)
        if row["published"]:
            ways = [row["published"][way] for way in DIRECTIONS]
            printed = [*ways, sum(ways) / len(ways)]
        numbers = []
        for ours, theirs in zip(values, printed, strict=True):
            numbers += [f"{ours:.4f}", *([NOTHING if theirs is None else f"{theirs:.3f}"] if beside else [])]
        cells.append((row["method"], row["detail"], *numbers))
    headings = [part for name in ("image query", "text query", "average") for part in (name, *["paper"] * beside)]
    return Table(title, ("method", detail, *headings), tuple(cells), n_names=2, notes=tuple(notes))
