"""A benchmark, declared: data and the matrices made of it, methods with their settings, protocol, what is varied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.benchmark.published import Published, PublishedTraining, published_map, published_training
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import (
    ColourEdgeHistograms,
    EfficientNetLite,
    Encoder,
    SentenceEncoder,
    TfidfTopics,
    encode_splits,
)
from diptych.errors import UnknownNameError
from diptych.estimators import clone
from diptych.metrics import AP
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.preprocessed import RowScaling
from diptych.protocols import Fold, HoldOut, Retrieval, Training, evaluate_model
from diptych.space import DIRECTIONS, Direction

NETWORK_ENCODERS: Mapping[str, Any] = {"image_encoder": EfficientNetLite(), "text_encoder": SentenceEncoder()}
_QUICK_VALUES = 3
_QUICK_REPEATS = 2
_QUICK = "QUICK LOOK: at most 3 values of each parameter, 2 hold-outs"


def with_principal_components(splits: DatasetSplits, n_image: int, n_text: int) -> DatasetSplits:
    """Replace a side that is wider than asked for by its principal components, learned from the training part.

    Menon et al. (2015, section 7.1) reduce pictures to 128 and texts to 10 features before anything else; training
    times leave this step out, as theirs do.
    """
    parts: dict[str, Any] = dict(splits.parts)
    for side, wanted in (("images", n_image), ("texts", n_text)):
        rows = np.asarray(getattr(splits.train, side))
        if rows.shape[1] > wanted:
            mean, axes = _principal_axes(rows, wanted)
            parts = {
                name: pairs.with_features(**{side: ((getattr(pairs, side) - mean) @ axes).astype(rows.dtype)})
                for name, pairs in parts.items()
            }
    return replace(splits, **parts)


def _principal_axes(rows: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    width = rows.shape[1]
    _, axes = eigh(centred.T @ centred, subset_by_index=(width - wanted, width - 1))
    axes = axes[:, ::-1]
    # An axis and its opposite serve alike; one of them is taken, so that every machine has the same features.
    return mean, axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(wanted)])


@dataclass(frozen=True)
class Features:
    """How raw items become the rows of two matrices.

    Encoders that learn nothing encode a data set once. Those that learn, and principal components, learn from the
    training pairs of a fold alone, anew for every fold, so that nothing of the classes that are asked for later is in
    the features. ``scaling`` of pictures and texts happens inside the methods.
    """

    label: str
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    components: tuple[int, int] | None = None
    scaling: tuple[RowScaling, RowScaling] = ("none", "none")

    @property
    def declaration(self) -> str:
        """Everything that shapes the features, in words."""
        encoders = [encoder.identity if encoder else "" for encoder in (self.image_encoder, self.text_encoder)]
        return f"{encoders} {self.components} {self.scaling}"

    def of_splits(self, splits: DatasetSplits) -> DatasetSplits:
        """Encode what can be encoded without learning anything; otherwise return the splits as they are."""
        return splits if self._learns(splits.train) else self._encoded(splits)

    def of_fold(self, fold: Fold, splits: DatasetSplits) -> Fold:
        """Encode and reduce what is left to do, learning from the training pairs of the fold."""
        train, queries, gallery = fold.training.pairs, fold.retrieval.queries, fold.retrieval.gallery
        apart = gallery is not train and gallery is not queries
        parts = replace(splits, train=train, test=queries, dev=gallery if apart else None)
        parts = self._encoded(parts)
        if self.components is not None:
            parts = with_principal_components(parts, *self.components)
        same = parts.train if gallery is train else parts.test
        found = same if parts.dev is None else parts.dev
        training = Training(parts.train, fold.training.hold_outs)
        return replace(fold, training=training, retrieval=Retrieval(parts.test, found))

    def _encoded(self, splits: DatasetSplits) -> DatasetSplits:
        return encode_splits(splits, self.image_encoder, self.text_encoder)

    def _learns(self, pairs: Pairs) -> bool:
        sides = (
            (pairs.has_image_features, self.image_encoder or ColourEdgeHistograms()),
            (pairs.has_text_features, self.text_encoder or TfidfTopics()),
        )
        return any(encoder.learns for is_encoded, encoder in sides if not is_encoded)


@dataclass(frozen=True)
class Reference:
    """Where a paper prints the same method's result, and whether it was measured on the features we have."""

    paper: str
    table: str
    dataset: str
    method: str
    same_features: bool = True

    def look_up(self) -> Published:
        """Return the printed numbers."""
        return published_map(self.paper, self.table, self.dataset, self.method)

    def look_up_training(self) -> PublishedTraining | None:
        """Return the printed training time and parameters, where the table has them."""
        return published_training(self.paper, self.table, self.dataset, self.method)


def one_line(model: CrossModalModel) -> str:
    """Return the expression that makes a model again, without line breaks."""
    return " ".join(repr(model).split())


class MethodBase:
    """What the methods of all comparisons have: a name for tables, and an unfitted model, perhaps behind a scaling."""

    name: str
    model: CrossModalModel

    @property
    def method(self) -> CrossModalModel:
        """The model without the scaling in front of it."""
        return self.model.model if isinstance(self.model, Preprocessed) else self.model

    @property
    def n_bits(self) -> int | None:
        """The length of the codes, None for a method with real-valued points."""
        return getattr(self.method, "n_bits", None)

    @property
    def needs_labels(self) -> bool:
        """Whether it cannot learn from pairs alone."""
        return "labels" in self.method.needs


def with_settings(model: CrossModalModel, **settings: Any) -> CrossModalModel:
    """Return an unfitted copy that has those of the settings that the model knows and that are not None."""
    known = model.get_params(deep=False)
    given = {name: value for name, value in settings.items() if name in known and value is not None}
    changed: CrossModalModel = clone(model).set_params(**given)
    return changed


@dataclass(frozen=True)
class Method(MethodBase):
    """A method, the settings to choose from, and the printed result to stand beside it.

    ``group`` is the heading it stands under, such as a paper's "Ground truth".
    """

    name: str
    model: CrossModalModel
    grid: Sequence[Mapping[str, Sequence[Any]]] = field(default_factory=lambda: [{}])
    reference: Reference | None = None
    distances: bool = False
    group: str = ""

    @property
    def key(self) -> str:
        """The name as people type it and files are called: ``SCM-seq, 16 bits`` is ``scm-seq-16``."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().removesuffix(" bits")).strip("-")

    def coarser(self, most: int) -> Method:
        """Return the method with at most ``most`` values of each parameter, evenly taken and with both ends."""
        grid = [{name: _thinned(values, most) for name, values in part.items()} for part in self.grid]
        return replace(self, grid=grid)


Entry = Method
"""The name that `Method` has in studies of Menon et al., whose tasks call their methods entries."""


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    return [values[round(step * (len(values) - 1) / (most - 1))] for step in range(most)]


@dataclass(frozen=True)
class SensitivityCurve:
    """Test MAP at each value of a parameter: the mean and deviation of several random draws, for each direction."""

    entry: str
    parameter: str
    label: str
    values: tuple[float, ...]
    means: dict[Direction, tuple[float, ...]]
    deviations: dict[Direction, tuple[float, ...]]


@dataclass(frozen=True)
class Sensitivity:
    """A parameter to vary around the chosen setting of an entry, as in figures 5 and 6 of Menon et al. (2015).

    ``seed`` is the parameter that redraws whatever is random, ``draws`` times. Like the paper's, the curve is one of
    test scores; nothing is chosen by it.
    """

    entry: str
    parameter: str
    label: str
    values: Sequence[float]
    seed: str = "model__random_state"
    draws: int = 5

    def measure(self, model: CrossModalModel, splits: DatasetSplits, n_jobs: int = 1) -> SensitivityCurve:
        """Fit a copy of ``model`` for every value and draw, and ask the test pairs."""
        settings = [{self.parameter: value, self.seed: draw} for value in self.values for draw in range(self.draws)]
        scores = Parallel(n_jobs=n_jobs)(
            delayed(_test_scores)(clone(model).set_params(**setting), splits) for setting in settings
        )
        table = np.array(scores).reshape(len(self.values), self.draws, len(DIRECTIONS))
        means, deviations = (
            {way: tuple(map(float, part[:, column])) for column, way in enumerate(DIRECTIONS)}
            for part in (table.mean(axis=1), table.std(axis=1))
        )
        return SensitivityCurve(self.entry, self.parameter, self.label, tuple(self.values), means, deviations)


def _test_scores(model: CrossModalModel, splits: DatasetSplits) -> list[float]:
    result = evaluate_model(model.fit(*splits.train.aligned()), splits.test)
    return [result[way].mean[AP()] for way in DIRECTIONS]


@dataclass(frozen=True)
class BenchmarkTask:
    """What the tasks of all comparisons declare: the data and what a reader must know of them; never how they run.

    ``options`` go to the data set's loader; ``source`` declares a data set that is not registered.
    """

    name: str
    title: str
    dataset: str
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Dataset | None = None
    notes: tuple[str, ...] = ()

    @property
    def data(self) -> Dataset:
        """The declaration of the data set."""
        return find_dataset(self.dataset) if self.source is None else self.source

    def load_items(self) -> DatasetSplits:
        """Return the training and test pairs as the data set has them."""
        return self.data.load(**self.options)


def labelled_only(splits: DatasetSplits) -> DatasetSplits:
    """Return training and test pairs without the pictures that have none of several labels, and no other part."""
    return replace(splits, train=_with_label(splits.train), test=_with_label(splits.test), dev=None)


def _with_label(pairs: Pairs) -> Pairs:
    kept = np.asarray(pairs.labels).any(axis=1) if pairs.is_multi_label else np.ones(1, dtype=bool)
    return pairs if kept.all() else pairs.select(kept)


@dataclass(frozen=True)
class EncodedTask(BenchmarkTask):
    """A task whose raw items become features by one encoder for each side."""

    _: KW_ONLY
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None

    def encode(self, items: DatasetSplits) -> DatasetSplits:
        """Return what the encoders make of raw items; features stay as they are."""
        return encode_splits(items, self.image_encoder, self.text_encoder)


AnyTask = TypeVar("AnyTask", bound=BenchmarkTask)


def find_by_name(kind: str, name: str, tasks: Iterable[AnyTask]) -> AnyTask:
    """Return the task called ``name``; a typo gets a suggestion."""
    known = {task.name: task for task in tasks}
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]


@dataclass(frozen=True)
class Task(EncodedTask):
    """Methods whose settings are chosen on hold-outs of the training pairs, and the test pairs that they are asked.

    Features are reduced to ``components`` (pictures, texts) where they are wider. ``published_distances`` says that a
    paper prints a table of distance measures for this data set.
    """

    entries: tuple[Method, ...]
    protocol: HoldOut = field(default_factory=HoldOut)
    published_distances: bool = False
    components: tuple[int, int] | None = None
    sensitivities: tuple[Sensitivity, ...] = ()

    def load(self) -> DatasetSplits:
        """Return the training and test pairs as feature matrices."""
        splits = self.encode(self.load_items())
        return splits if self.components is None else with_principal_components(splits, *self.components)

    def coarser(self) -> Task:
        """Return the task with coarser grids and fewer hold-outs, for a first look; its title says so."""
        return replace(
            self,
            title=f"{self.title}; {_QUICK}",
            entries=tuple(entry.coarser(_QUICK_VALUES) for entry in self.entries),
            protocol=replace(self.protocol, repeats=_QUICK_REPEATS),
            sensitivities=tuple(replace(curve, draws=1) for curve in self.sensitivities),
        )
