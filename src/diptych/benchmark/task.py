"""A task of the benchmark, declared: data, features, protocol, measures and methods; never how it runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.benchmark.results import FORMAT
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.encoders.feature_cache import Progress
from diptych.errors import MissingDataError, UnknownNameError
from diptych.estimators import clone
from diptych.metrics import AP, CMC, Measure
from diptych.models import CrossModalModel
from diptych.models.preprocessed import RowScaling
from diptych.protocols import Fold, HoldOut, Relevant, Retrieval, RetrievalProtocol, StandardSplit, Training

Reads = Literal["features", "words", "items"]
"""What a method takes: features of both sides, features of pictures and strings, or pictures and strings."""
QUICK_VALUES = 3
QUICK_REPEATS = 2
QUICK_FOLDS = 2
QUICK_EPOCHS = 2


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

    def of_splits(self, splits: DatasetSplits, progress: Progress | None = None) -> DatasetSplits:
        """Encode what can be encoded without learning anything; otherwise return the splits as they are."""
        return splits if self._learns(splits.train) else self._encoded(splits, progress)

    def of_fold(self, fold: Fold, splits: DatasetSplits) -> Fold:
        """Encode and reduce what is left to do, learning from the training pairs of the fold."""
        train, queries, gallery = fold.training.pairs, fold.retrieval.queries, fold.retrieval.gallery
        if train is None:
            return fold
        apart = gallery is not train and gallery is not queries
        parts = replace(splits, train=train, test=queries, dev=gallery if apart else None)
        parts = self._encoded(parts)
        if self.components is not None:
            parts = with_principal_components(parts, *self.components)
        same = parts.train if gallery is train else parts.test
        found = same if parts.dev is None else parts.dev
        hold_outs = fold.training.hold_outs
        if isinstance(hold_outs, AskedPairs):
            hold_outs = AskedPairs(parts.test)
        training = replace(fold.training, pairs=parts.train, hold_outs=hold_outs)
        return replace(fold, training=training, retrieval=Retrieval(parts.test, found))

    def of_pictures(self, splits: DatasetSplits, progress: Progress | None = None) -> DatasetSplits:
        """Encode the pictures, all components of them, and leave the texts as strings."""
        bare: Any = {
            name: pairs.with_features(texts=np.zeros((pairs.n_texts, 1))) for name, pairs in splits.parts.items()
        }
        encoded = self._encoded(replace(splits, **bare), progress).parts
        parts: Any = {
            name: pairs.with_features(images=np.asarray(encoded[name].images)) for name, pairs in splits.parts.items()
        }
        return replace(splits, **parts)

    def _encoded(self, splits: DatasetSplits, progress: Progress | None = None) -> DatasetSplits:
        return encode_splits(splits, self.image_encoder, self.text_encoder, progress=progress)

    def _learns(self, pairs: Pairs) -> bool:
        sides = (
            (pairs.has_image_features, self.image_encoder or ColourEdgeHistograms()),
            (pairs.has_text_features, self.text_encoder or TfidfTopics()),
        )
        return any(encoder.learns for is_encoded, encoder in sides if not is_encoded)


def one_line(model: CrossModalModel) -> str:
    """Return the expression that makes a model again, without line breaks."""
    return " ".join(repr(model).split())


def with_settings(model: CrossModalModel, **settings: Any) -> CrossModalModel:
    """Return an unfitted copy with those settings that the model or what it wraps has, except None."""
    known = model.get_params(deep=True)
    given = {
        full: value
        for name, value in settings.items()
        for full in (name, f"model__{name}")
        if full in known and value is not None
    }
    changed: CrossModalModel = clone(model).set_params(**given)
    return changed


@dataclass(frozen=True)
class Method:
    """A method of a task, and the settings to choose from.

    ``name`` is what people type and files are called, everywhere the same: the name of the class, what differs from its
    defaults, and the length of codes (``scm-seq-16``). ``title`` is what tables show; ``group`` is the heading it
    stands under. With ``own_classes`` a method that learns from labels takes each picture and its texts for one class
    where there are none. Parameters named in ``rescaled`` grow with the training pairs of the last fit (`tune`).
    """

    name: str
    title: str
    model: CrossModalModel
    grid: Sequence[Mapping[str, Sequence[Any]]] = field(default_factory=lambda: [{}])
    group: str = ""
    reads: Reads = "features"
    own_classes: bool = False
    rescaled: tuple[str, ...] = ()

    @property
    def method(self) -> CrossModalModel:
        """The model without what stands around it: scaling, or captions taken for clicks."""
        return getattr(self.model, "model", self.model) if not self.model.is_method else self.model

    @property
    def n_bits(self) -> int | None:
        """The length of the codes, None for a method with real-valued points."""
        return getattr(self.method, "n_bits", None)

    @property
    def needs_labels(self) -> bool:
        """Whether it cannot learn from pairs alone."""
        return "labels" in self.method.needs and not self.own_classes

    @property
    def is_random(self) -> bool:
        """Whether a second seed gives a second result."""
        return any(name.rpartition("__")[2] == "random_state" for name in self.model.get_params(deep=True))

    def seeded(self, seed: int) -> Method:
        """Return the method with another seed, if it has one."""
        return replace(self, model=with_settings(self.model, random_state=seed))

    def quick(self) -> Method:
        """Return the method with at most three values of each parameter, both ends among them, and few epochs."""
        grid = [{name: _thinned(values, QUICK_VALUES) for name, values in part.items()} for part in self.grid]
        return replace(self, grid=grid, model=with_settings(self.model, epochs=QUICK_EPOCHS))


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    return [values[round(step * (len(values) - 1) / (most - 1))] for step in range(most)]


@dataclass(frozen=True)
class Seeds:
    """The data set's own split once for every seed; fold k is seed k of the methods."""

    seeds: int = field(default=3, repr=False)
    split: StandardSplit = field(default_factory=StandardSplit)
    setting: ClassVar[str] = "seeds"

    @property
    def n_folds(self) -> int:
        """The number of seeds."""
        return self.seeds

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return the split."""
        return replace(self.split.fold(splits, 0), number=number)

    def redrawn(self, folds: int | None, seed: int) -> Seeds:
        """Return the split with so many seeds and other hold-outs."""
        return Seeds(folds or self.seeds, self.split.redrawn(None, seed))


@dataclass(frozen=True)
class CaptionFolds:
    """Fold k learns from the k-th caption of each training picture; all test pictures and captions ask."""

    folds: int = field(default=5, repr=False)
    hold_outs: HoldOut = field(default_factory=HoldOut)
    setting: ClassVar[str] = "captions"

    @property
    def n_folds(self) -> int:
        """The number of captions that are learned from in turn."""
        return self.folds

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold."""
        n_captions = splits.train.n_texts // splits.train.n_images
        train = splits.train.one_text_per_image(number % n_captions)
        return Fold(number, Training(train, self.hold_outs), Retrieval(splits.test, splits.test))

    def redrawn(self, folds: int | None, seed: int) -> CaptionFolds:
        """Return so many folds with other hold-outs."""
        return CaptionFolds(folds or self.folds, replace(self.hold_outs, seed=seed))


@dataclass(frozen=True)
class AskedPairs:
    """Hold out these pairs beside all that is learned from, so that parameters are chosen on what is asked."""

    asked: Pairs = field(repr=False)

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield all pairs and those that are asked."""
        yield pairs, self.asked


@dataclass(frozen=True)
class ValidationPart:
    """Ask the part of the training pairs that parameters are chosen on; the test part plays no part.

    Costa Pereira et al. (2014) print their tables of distances, correlations and features of it.
    """

    hold_out: HoldOut
    setting: ClassVar[str] = "validation"
    n_folds: ClassVar[int] = 1

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return the only fold."""
        train, asked = next(self.hold_out.splits(splits.train))
        return Fold(0, Training(train, AskedPairs(asked)), Retrieval(asked, asked))

    def redrawn(self, folds: int | None, seed: int) -> ValidationPart:
        """Return the part drawn with another seed."""
        return ValidationPart(replace(self.hold_out, seed=seed))


def labelled_only(splits: DatasetSplits) -> DatasetSplits:
    """Return training and test pairs without the pictures that have none of several labels, and no other part."""
    return replace(splits, train=_with_label(splits.train), test=_with_label(splits.test), dev=None)


def _with_label(pairs: Pairs) -> Pairs:
    kept = np.asarray(pairs.labels).any(axis=1) if pairs.is_multi_label else np.ones(1, dtype=bool)
    return pairs if kept.all() else pairs.select(kept)


@dataclass(frozen=True)
class DataTask:
    """Data under a name, and what a reader must know of them: the part that every kind of task shares.

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


AnyTask = TypeVar("AnyTask", bound=DataTask)


def find_by_name(kind: str, name: str, tasks: Iterable[AnyTask]) -> AnyTask:
    """Return the task called ``name``; a typo gets a suggestion."""
    known = {task.name: task for task in tasks}
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]


@dataclass(frozen=True)
class Task(DataTask):
    """Data set × features × protocol × measures, and the methods that take part.

    The first measure is the main one: parameters are chosen by it. ``printed`` names the paper, the table and the data
    whose printed values stand beside ours. ``seeds_by_fold`` gives fold k's number to the methods as their seed. With
    ``describes_codes`` records have the MAP of unified codes and what lies within each Hamming radius; ``is_brief``
    ones have no curves, and of single queries the main measure alone. ``data_digest`` tells the contents of a
    ``source`` apart.
    """

    features: Features
    protocol: RetrievalProtocol
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), CMC(20), CMC(50))
    relevant: Relevant = "auto"
    citation: str = ""
    printed: tuple[str, str, str] | None = None
    seeds_by_fold: bool = False
    describes_codes: bool = False
    is_brief: bool = False
    data_digest: str = ""

    def labelled_items(self) -> DatasetSplits:
        """Return the data set as it is; where labels decide, only pictures with one."""
        items = self.load_items()
        return labelled_only(items) if self.relevant == "label" else items

    def load(self, reads: Reads = "features", progress: Progress | None = None) -> DatasetSplits:
        """Return the data set, encoded where encoders learn nothing; where labels decide, only pictures with one."""
        splits = self.labelled_items()
        if reads == "features":
            return self.features.of_splits(splits, progress)
        if splits.train.has_text_features or (reads == "items" and splits.train.has_image_features):
            what = "texts" if splits.train.has_text_features else "pictures"
            raise MissingDataError(f"{self.name} has its {what} as features, and this method reads them raw")
        return self.features.of_pictures(splits, progress) if reads == "words" else splits

    def fold(self, splits: DatasetSplits, number: int, reads: Reads = "features") -> Fold:
        """Return one fold of what `load` returned, as the methods read it."""
        fold = self.protocol.fold(splits, number)
        return self.features.of_fold(fold, splits) if reads == "features" else fold

    @property
    def data_key(self) -> str:
        """What decides the encoded data: tasks with one key share them."""
        data = self.dataset, self.data_digest, sorted(self.options.items()), self.relevant
        return f"{data} {self.features.declaration}"

    def method(self, name: str) -> Method:
        """Return the method called ``name``."""
        by_name = {method.name: method for method in self.methods}
        if name not in by_name:
            raise UnknownNameError(f"method of {self.name}", name, by_name)
        return by_name[name]

    def folds_of(self, method: Method) -> range:
        """Return the folds that a method runs on; one without a seed gives the same for every seed."""
        once = isinstance(self.protocol, Seeds) and not method.is_random
        return range(1 if once else self.protocol.n_folds)

    def quick(self) -> Task:
        """Return the task with coarser grids, fewer hold-outs and epochs, for a first look; its title says so."""
        protocol: Any = self.protocol
        hold_outs = getattr(protocol, "hold_outs", None)
        if hold_outs is not None and hold_outs.repeats > QUICK_REPEATS:
            protocol = replace(protocol, hold_outs=replace(hold_outs, repeats=QUICK_REPEATS))
        methods = tuple(method.quick() for method in self.methods)
        return replace(self, title=f"{self.title}; QUICK LOOK", protocol=protocol, methods=methods)

    def fingerprint(self, method: Method) -> str:
        """Return a digest of the declaration; results under another one answer another question.

        The number of folds is not in it, because a fold does not depend on how many there are.
        """
        model = sorted((name, repr(value)) for name, value in method.model.get_params().items())
        shape: tuple[object, ...] = (
            FORMAT,
            self.dataset,
            self.data_digest,
            sorted(self.options.items()),
            self.features.declaration,
            repr(self.protocol),
            self.measures,
            self.relevant,
            type(method.model).__name__,
            model,
            [sorted((name, list(values)) for name, values in part.items()) for part in method.grid],
        )
        if method.reads != "features" or self.seeds_by_fold:
            shape = (*shape, method.reads, self.seeds_by_fold)
        if method.rescaled:
            shape = (*shape, method.rescaled)
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:32]


def name_of_title(title: str) -> str:
    """Return a title as a name: ``SCM-seq, 16 bits`` is ``scm-seq-16``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower().removesuffix(" bits")).strip("-")
