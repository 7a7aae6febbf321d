"""The tasks of `diptych bench run`: Liu et al. on seen and unseen classes, the standard splits, Flickr8k and COCO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.benchmark.features import Features
from diptych.benchmark.studies.method_entries import all_methods, label_methods, pair_methods
from diptych.benchmark.studies.retrieval_task import RetrievalTask
from diptych.benchmark.task import find_by_name
from diptych.data import find_dataset
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.metrics import AP, CMC, MedianRank, RecallAtK
from diptych.protocols import HoldOut, SeenClasses, StandardSplit, UnseenClasses

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
    """Return every task of ``diptych bench run``.

    >>> from diptych.benchmark.running import retrieval_tasks
    >>> [task.name for task in retrieval_tasks()][:2]
    ['extendable-wikipedia-seen', 'extendable-wikipedia-unseen']
    """
    return _TASKS


def find_retrieval_task(name: str) -> RetrievalTask:
    """Return the task called ``name``; a typo gets a suggestion."""
    return find_by_name("task", name, _TASKS)
