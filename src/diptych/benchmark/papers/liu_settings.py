"""The comparison of Liu et al. in the paper's own settings, and its outlook: learn on one data set, ask another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.benchmark.methods import BITS, all_methods, pair_methods
from diptych.benchmark.papers.liu import CAPTIONS, LIU_CITATION, WIKIPEDIA_FEATURES
from diptych.benchmark.task import Features, Method, Task
from diptych.data import Dataset, DatasetSplits, load_dataset
from diptych.encoders import EfficientNetLite, WordVectorCodebook
from diptych.metrics import AP, CMC
from diptych.protocols import HoldOut, SeenClasses, StandardSplit, UnseenClasses

# What section III-C compares; those with codes have 8, 16 and 32 bits.
_COMPARED = (
    "random cca sm scm pls blm gmmfa gmlda cca-3v lcfs deep-sm ts deep-ts cvh scm-seq scm-orth cmfh lssh seph-km imh "
    "mm-nn"
)
_CODEWORDS = Features(
    "EfficientNet-Lite2 and 1,024 groups of word vectors, rows of unit length",
    EfficientNetLite(),
    WordVectorCodebook(n_words=1024),
    scaling=("l2", "l2"),
)
_TAGS = Features("SIFT words and tags, rows of unit length", scaling=("l2", "l2"))


def _compared(features: Features, n_classes: int) -> tuple[Method, ...]:
    """Return the methods of the paper, in as many dimensions as there are training classes (section III-C)."""
    compared = _COMPARED.split()
    names = {*compared, *(f"{name}-{bits}" for name in compared for bits in BITS)}
    return tuple(method for method in all_methods(features, (n_classes,), 200) if method.name in names)


def _published(
    dataset: str, short: str, title: str, features: Features, n_classes: int, options: Mapping[str, Any]
) -> list[Task]:
    return [
        Task(
            name=f"published-{short}-{protocol.setting}",
            title=f"{title}, {protocol.setting} classes, methods and dimensions of Liu et al.",
            dataset=dataset,
            features=features,
            protocol=protocol,
            methods=_compared(features, n_classes),
            citation=LIU_CITATION,
            options=options,
        )
        for protocol in (SeenClasses(), UnseenClasses())
    ]


def _captions_to_classes() -> DatasetSplits:
    """Return Flickr8k's training photos to learn from, and 900 photos of Pascal Sentence to ask."""
    return DatasetSplits(
        train=load_dataset("flickr8k").train,
        test=load_dataset("pascal_sentence", test_size=900).test,
        name="flickr8k_pascal",
    )


_FLICKR8K_TO_PASCAL = Dataset(
    name="flickr8k_pascal",
    summary="Flickr8k's training photos to learn from, Pascal Sentence's to ask",
    homepage="",
    citation="",
    licence="",
    splits="6,000 training photos of Flickr8k, 900 photos of Pascal Sentence to ask and to find",
    loader=_captions_to_classes,
)

PUBLISHED_SETTINGS = (
    *_published("wikipedia", "wikipedia", "Wikipedia", WIKIPEDIA_FEATURES, 5, {}),
    *_published("pascal_sentence", "pascal", "Pascal Sentence", _CODEWORDS, 10, {"captions": "join", "test_size": 200}),
    *_published("nus_wide", "nus-wide", "NUS-WIDE", _TAGS, 5, {}),
    Task(
        name="transfer-flickr8k-pascal",
        title="Learned on Flickr8k, asked on Pascal Sentence",
        dataset="flickr8k_pascal",
        source=_FLICKR8K_TO_PASCAL,
        features=CAPTIONS,
        protocol=StandardSplit(HoldOut(repeats=1, share=0.1)),
        methods=pair_methods(CAPTIONS, (64, 128)),
        measures=(AP(), CMC(1), CMC(5), CMC(10)),
        relevant="label",
        citation=LIU_CITATION,
        notes=("Relevant is what shares a class of Pascal Sentence, none of which was learned.",),
    ),
)
"""One task for each data set and setting of the paper, and one across data sets, which its section IV asks for."""
