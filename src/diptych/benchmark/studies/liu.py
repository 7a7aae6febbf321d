"""The tasks of `bench run`, declared: Liu et al. on seen and unseen classes, the standard splits, Flickr8k and COCO."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diptych.benchmark.results import FORMAT
from diptych.benchmark.studies.method_entries import all_methods, label_methods, pair_methods
from diptych.benchmark.task import BenchmarkTask, Features, Method, labelled_only
from diptych.data import DatasetSplits, find_dataset
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.errors import UnknownNameError
from diptych.metrics import AP, CMC, Measure, MedianRank, RecallAtK
from diptych.protocols import Fold, HoldOut, Relevant, RetrievalProtocol, SeenClasses, StandardSplit, UnseenClasses

_LIU = "Liu et al., A new evaluation protocol and benchmarking results for extendable cross-media retrieval"
_WIKIPEDIA = Features("SIFT words and LDA topics, square-rooted", scaling=("hellinger", "hellinger"))
_NETWORKS = Features(
    "EfficientNet-Lite2 and MiniLM, 128 and 64 principal components",
    EfficientNetLite(),
    SentenceEncoder(),
    components=(128, 64),
)
_CAPTIONS = Features(
    "EfficientNet-Lite2 and MiniLM, 256 principal components", EfficientNetLite(), SentenceEncoder(), (256, 256)
)
_SCENES = Features("colour and edge histograms and TF-IDF topics, 32 and 16 principal components", components=(32, 16))


@dataclass(frozen=True)
class RetrievalTask(BenchmarkTask):
    """Data set × features × protocol × measures × citation, and the methods that take part; never how they run.

    The first measure is the main one: parameters are chosen by it. ``source`` is a data set that is not registered,
    and ``data_digest`` tells its contents apart.
    """

    features: Features
    protocol: RetrievalProtocol
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), CMC(20), CMC(50))
    relevant: Relevant = "auto"
    citation: str = ""
    data_digest: str = ""

    def load(self) -> DatasetSplits:
        """Return the data set, encoded where encoders learn nothing; where labels decide, only pictures with one."""
        items = self.load_items()
        return self.features.of_splits(labelled_only(items) if self.relevant == "label" else items)

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold of what `load` returned, as features."""
        return self.features.of_fold(self.protocol.fold(splits, number), splits)

    def method(self, key: str) -> Method:
        """Return the method called ``key``."""
        by_key = {entry.key: entry for entry in self.methods}
        if key not in by_key:
            raise UnknownNameError(f"method of {self.name}", key, by_key)
        return by_key[key]

    def fingerprint(self, entry: Method) -> str:
        """Return a digest of the declaration; results under another one answer another question.

        The number of folds is not in it, because a fold does not depend on how many there are.
        """
        model = sorted((name, repr(value)) for name, value in entry.model.get_params().items())
        shape = (
            FORMAT,
            self.dataset,
            self.data_digest,
            sorted(self.options.items()),
            self.features.declaration,
            repr(self.protocol),
            self.measures,
            self.relevant,
            type(entry.model).__name__,
            model,
            [sorted((name, list(values)) for name, values in part.items()) for part in entry.grid],
        )
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:32]


def _extendable(
    dataset: str,
    short: str,
    title: str,
    features: Features,
    n_components: tuple[int, ...],
    rank: int,
    options: Mapping[str, Any] | None = None,
) -> list[RetrievalTask]:
    methods = all_methods(features, n_components, rank)
    return [
        RetrievalTask(
            name=f"extendable-{short}-{protocol.setting}",
            title=f"{title}, {protocol.setting} classes",
            dataset=dataset,
            features=features,
            protocol=protocol,
            methods=methods,
            citation=_LIU,
            options=options or {},
        )
        for protocol in (SeenClasses(), UnseenClasses())
    ]


def _standard(
    dataset: str, short: str, title: str, features: Features, n_components: tuple[int, ...], rank: int
) -> RetrievalTask:
    return RetrievalTask(
        name=f"standard-{short}",
        title=f"{title}, all classes",
        dataset=dataset,
        features=features,
        protocol=StandardSplit(HoldOut(repeats=3)),
        methods=all_methods(features, n_components, rank),
        citation=find_dataset(dataset).citation,
        options={"captions": "join"} if dataset == "pascal_sentence" else {},
    )


_TASKS = (
    *_extendable("wikipedia", "wikipedia", "Wikipedia", _WIKIPEDIA, (5, 9), 200),
    # Forty of fifty photographs of a class are its database, as in the paper.
    *_extendable(
        "pascal_sentence",
        "pascal",
        "Pascal Sentence",
        _NETWORKS,
        (10, 40),
        200,
        {"captions": "join", "test_size": 200},
    ),
    *_extendable(
        "scenes",
        "scenes",
        "Generated scenes",
        _SCENES,
        (5, 10),
        50,
        {"n_train": 240, "n_test": 120, "size": 32, "captions": "join"},
    ),
    _standard("wikipedia", "wikipedia", "Wikipedia", _WIKIPEDIA, (9,), 300),
    _standard("pascal_sentence", "pascal", "Pascal Sentence", _NETWORKS, (20, 40), 300),
    RetrievalTask(
        name="flickr8k",
        title="Flickr8k, captions and photographs of one another",
        dataset="flickr8k",
        features=_CAPTIONS,
        protocol=StandardSplit(HoldOut(repeats=1, share=0.1)),
        methods=pair_methods(_CAPTIONS, (64, 128)),
        measures=(AP(), RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank()),
        relevant="instance",
        citation=find_dataset("flickr8k").citation,
    ),
    # Table 1 of Zhang et al. (2017), as far as the data go: relevant is what shares one of the paper's labels.
    RetrievalTask(
        name="coco-pairs",
        title="COCO, photographs and captions that share a label",
        dataset="coco_pairs",
        features=_NETWORKS,
        protocol=StandardSplit(HoldOut(repeats=1, share=0.1)),
        methods=label_methods(_NETWORKS, (32, 64)),
        measures=(AP(50, "retrieved"), AP(50, "total"), AP(), CMC(1)),
        relevant="label",
        citation=find_dataset("coco_pairs").citation,
        options={"label": "category"},
    ),
)


def retrieval_tasks() -> tuple[RetrievalTask, ...]:
    """Return every task of ``diptych bench run``."""
    return _TASKS
