"""The tasks of Liu et al.: seen and unseen classes, codes of every length, the standard splits, Flickr8k and COCO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.benchmark.methods import all_methods, label_methods, pair_methods, word_methods
from diptych.benchmark.task import CaptionFolds, Features, Method, Task, with_settings
from diptych.data import find_dataset
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.metrics import AP, CMC, MedianRank, RecallAtK
from diptych.models import Preprocessed, model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols import HoldOut, RetrievalProtocol, SeenClasses, StandardSplit, UnseenClasses

LIU_CITATION = "Liu et al., A new evaluation protocol and benchmarking results for extendable cross-media retrieval"
WIKIPEDIA_FEATURES = Features("SIFT words and LDA topics, square-rooted", scaling=("hellinger", "hellinger"))
_NETWORKS = Features(
    "EfficientNet-Lite2 and MiniLM, 128 and 64 principal components",
    EfficientNetLite(),
    SentenceEncoder(),
    components=(128, 64),
)
CAPTIONS = Features(
    "EfficientNet-Lite2 and MiniLM, 256 principal components", EfficientNetLite(), SentenceEncoder(), (256, 256)
)
_SCENES = Features("colour and edge histograms and TF-IDF topics, 32 and 16 principal components", components=(32, 16))


def _reading_words(dataset: str) -> tuple[Method, ...]:
    """Return the methods that read words, where the data set has any."""
    return () if dataset == "wikipedia" else word_methods()


def _extendable(
    dataset: str,
    short: str,
    title: str,
    features: Features,
    n_components: tuple[int, ...],
    rank: int,
    options: Mapping[str, Any] | None = None,
) -> list[Task]:
    methods = (*all_methods(features, n_components, rank), *_reading_words(dataset))
    return [
        Task(
            name=f"extendable-{short}-{protocol.setting}",
            title=f"{title}, {protocol.setting} classes",
            dataset=dataset,
            features=features,
            protocol=protocol,
            methods=methods,
            citation=LIU_CITATION,
            options=options or {},
        )
        for protocol in (SeenClasses(), UnseenClasses())
    ]


def _standard(
    dataset: str, short: str, title: str, features: Features, n_components: tuple[int, ...], rank: int
) -> Task:
    return Task(
        name=f"standard-{short}",
        title=f"{title}, all classes",
        dataset=dataset,
        features=features,
        protocol=StandardSplit(HoldOut(repeats=3)),
        methods=(*all_methods(features, n_components, rank), *_reading_words(dataset)),
        citation=find_dataset(dataset).citation,
        options={"captions": "join"} if dataset == "pascal_sentence" else {},
    )


_TASKS = (
    *_extendable("wikipedia", "wikipedia", "Wikipedia", WIKIPEDIA_FEATURES, (5, 9), 200),
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
    _standard("wikipedia", "wikipedia", "Wikipedia", WIKIPEDIA_FEATURES, (9,), 300),
    _standard("pascal_sentence", "pascal", "Pascal Sentence", _NETWORKS, (20, 40), 300),
    Task(
        name="flickr8k",
        title="Flickr8k, captions and photographs of one another",
        dataset="flickr8k",
        features=CAPTIONS,
        protocol=StandardSplit(HoldOut(repeats=1, share=0.1)),
        methods=(*pair_methods(CAPTIONS, (64, 128)), *word_methods()),
        measures=(AP(), RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank()),
        relevant="instance",
        citation=find_dataset("flickr8k").citation,
    ),
    # Table 1 of Zhang et al. (2017), as far as the data go: relevant is what shares one of the paper's labels.
    Task(
        name="coco-pairs",
        title="COCO, photographs and captions that share a label",
        dataset="coco_pairs",
        features=_NETWORKS,
        protocol=StandardSplit(HoldOut(repeats=1, share=0.1)),
        methods=(*label_methods(_NETWORKS, (32, 64)), *word_methods()),
        measures=(AP(50, "retrieved"), AP(50, "total"), AP(), CMC(1)),
        relevant="label",
        citation=find_dataset("coco_pairs").citation,
        options={"label": "category"},
    ),
)

_BITS = (4, 8, 16, 32, 64, 128)
_UNIT_ROWS = Features("EfficientNet-Lite2 and MiniLM, rows of unit length", EfficientNetLite(), SentenceEncoder())


def _hashing_methods(*, labels: bool, texts: str = "l2") -> tuple[Method, ...]:
    """Return every hashing method at every length, with its defaults, so that nothing is chosen."""
    return tuple(
        Method(
            f"{name}-{bits}",
            f"{cls.title}, {bits} bits",
            Preprocessed(model=with_settings(cls(), n_bits=bits), images="l2", texts=texts),  # type: ignore[arg-type]
            group="hashing",
        )
        for name, cls in model_classes().items()
        if issubclass(cls, HashingModel) and (labels or "labels" not in cls.needs)
        for bits in _BITS
    )


def _hashing(short: str, title: str, features: Features, protocol: RetrievalProtocol, **parts: Any) -> Task:
    """Return the comparison of codes by their length; fold k is the seed of the methods, too."""
    return Task(
        name=f"hashing-{short}-{protocol.setting}",
        title=f"{title}, {protocol.setting} classes" if protocol.setting != "captions" else title,
        features=features,
        protocol=protocol,
        citation=LIU_CITATION,
        seeds_by_fold=True,
        describes_codes=True,
        **parts,
    )


_WORDS_AND_TOPICS = Features("SIFT words, rows of unit length, and LDA topics")
_HASHING = (
    *(
        _hashing(
            "wikipedia",
            "Wikipedia",
            _WORDS_AND_TOPICS,
            protocol,
            dataset="wikipedia",
            methods=_hashing_methods(labels=True, texts="none"),
        )
        for protocol in (SeenClasses(), UnseenClasses())
    ),
    *(
        _hashing(
            "pascal",
            "Pascal Sentence",
            _UNIT_ROWS,
            protocol,
            dataset="pascal_sentence",
            options={"captions": "join"},
            methods=_hashing_methods(labels=True),
        )
        for protocol in (SeenClasses(), UnseenClasses())
    ),
    _hashing(
        "flickr8k",
        "Flickr8k, photographs and captions of one another",
        _UNIT_ROWS,
        CaptionFolds(),
        dataset="flickr8k",
        methods=_hashing_methods(labels=False),
    ),
)
LIU = (*_TASKS, *_HASHING)
"""Every task under the protocols of Liu et al., and those that take the same methods through other splits."""
