"""The tables of Zhang et al. by the paper's own protocol: ten random splits, five-fold choice and its rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.benchmark.methods import MNIL_ON_FEATURES, label_methods, pair_methods
from diptych.benchmark.papers.zhang import CAPTIONED, CITATION, LABELLED, MNIL_FROM_PIXELS
from diptych.benchmark.task import Features, Method, Task
from diptych.encoders import EfficientNetLite, MeanWordVectors, ResNet50, SentenceEncoder
from diptych.models import MNiL
from diptych.protocols import CrossValidation, RandomDraws

_PUBLISHED = Features(
    "ResNet-50 and mean word vectors, rows of unit length", ResNet50(), MeanWordVectors(), scaling=("l2", "l2")
)
_PACKAGED = Features(
    "EfficientNet-Lite2 and MiniLM, rows of unit length", EfficientNetLite(), SentenceEncoder(), scaling=("l2", "l2")
)
# Section 4.1: SGD with momentum 0.9, the maps learn ten times as fast as what lies below, and the other captions of a
# photo are the positives of a text, so that a batch holds all of them.
_RATES: Mapping[str, Any] = {"optimizer": "sgd", "map_factor": 10.0, "texts_per_picture": 5}
_COMPARED = "random bi-cmsrm pl-ranking ldsp cca gmlda lcfs lgcfl ml-cca"


def _methods(features: Features, *, classes: bool, max_words: int) -> tuple[Method, ...]:
    """Return the methods that the paper runs or names, with their grids, and MNiL at its rates."""
    listed = label_methods(features, (32, 64)) if classes else pair_methods(features, (64, 128))
    on_features = MNiL(**{**MNIL_ON_FEATURES, **_RATES, "learning_rate": 3e-3, "max_words": max_words})
    from_pixels = MNiL(**{**MNIL_FROM_PIXELS, **_RATES, "learning_rate": 1e-2, "max_words": max_words})
    return (
        *(method for method in listed if method.name in _COMPARED.split()),
        Method("mnil-sgd", "MNiL", on_features, reads="words"),
        Method("mnil-sgd-pixels", "MNiL, pixels", from_pixels, reads="items"),
    )


def _task(
    name: str, title: str, dataset: str, features: Features, *, classes: bool, max_words: int, **parts: Any
) -> Task:
    return Task(
        name=f"draws-{name}",
        title=f"{title}, ten random splits",
        dataset=dataset,
        features=features,
        protocol=RandomDraws(draws=10, hold_outs=CrossValidation(5)),
        methods=_methods(features, classes=classes, max_words=max_words),
        measures=LABELLED if classes else CAPTIONED,
        relevant="label" if classes else "instance",
        citation=CITATION,
        seeds_by_fold=True,
        **parts,
    )


ZHANG_SETTINGS = (
    _task(
        "coco-2014",
        "COCO 2014, 82,081 training and 5,000 test photos, a caption each, 80 classes",
        "coco_2014",
        _PUBLISHED,
        classes=True,
        max_words=20,
        options={"captions": 0},
        printed=("002", "Table 1", "MSCOCO"),
        notes=("Relevant: what shares a class. The paper's file of 81 labels has 80 columns with a photo.",),
    ),
    _task(
        "flickr30k",
        "Flickr30K, 29,783 training and 1,000 test photos with five captions",
        "flickr30k",
        _PUBLISHED,
        classes=False,
        max_words=15,
        options={"split": "entities"},
        printed=("002", "Table 2", "Flickr30K"),
    ),
    _task(
        "pascal",
        "Pascal Sentence, 700 training and 300 test photos with five captions, packaged networks",
        "pascal_sentence",
        _PACKAGED,
        classes=True,
        max_words=20,
    ),
)
"""The paper's two tables, and the same on data and networks that are at hand."""
