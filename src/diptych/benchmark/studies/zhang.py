"""The comparison of Zhang et al. (2017), declared: the data, and the ranking methods and networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from diptych.benchmark.task import NETWORK_ENCODERS, EncodedTask, MethodBase, find_by_name, labelled_only, with_settings
from diptych.data import DatasetSplits, Pairs
from diptych.metrics import AP, Measure, RecallAtK
from diptych.models import (
    CCA,
    GMLDA,
    LCFS,
    LDSP,
    LGCFL,
    MLCCA,
    SCM,
    WARP,
    BiCMSRM,
    CrossModalModel,
    DeepSM,
    MNiL,
    PLRanking,
    Preprocessed,
)
from diptych.models.preprocessed import RowScaling

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
# Chosen on the development photos of Flickr8k, as bench/mnil_features.py does.
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
    """The items as they came, and the features that encoders made of them.

    >>> from diptych.benchmark.neural import NeuralData
    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics, encode_splits
    >>> items = load_dataset("scenes", n_train=20, n_test=5, size=32)
    >>> features = encode_splits(items, ColourEdgeHistograms(size=32), TfidfTopics(n_components=4), cache=False)
    >>> train, test = NeuralData(items, features).parts("words")
    >>> train.has_image_features, test.texts == items.test.texts
    (True, True)
    """

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


_TASKS = (
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


def neural_task_names() -> tuple[str, ...]:
    """Return the names of the data sets of this comparison.

    >>> from diptych.benchmark.neural import neural_task_names
    >>> neural_task_names()
    ('wikipedia', 'pascal', 'flickr8k', 'flickr30k', 'coco', 'coco-pairs')
    """
    return tuple(task.name for task in _TASKS)


def find_neural_task(name: str) -> NeuralTask:
    """Return the task called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark.neural import find_neural_task
    >>> [measure.label for measure in find_neural_task("flickr8k").measures]
    ['R@1', 'R@5', 'R@10']
    """
    return find_by_name("data set of the comparison of networks", name, _TASKS)


@dataclass(frozen=True)
class NeuralMethod(MethodBase):
    """A method, what it reads, and under which name Zhang et al. (2017) print it.

    ``key`` is what people type, ``name`` what tables show; ``published`` is empty where the paper prints nothing. With
    ``own_classes`` a method that learns from classes takes each picture and its texts for one where there are none.

    >>> from diptych.benchmark.neural import NeuralMethod
    >>> from diptych.models import CCA, LDSP
    >>> NeuralMethod("cca", "CCA", CCA()).has_seed, NeuralMethod("ldsp", "LDSP", LDSP()).has_seed
    (False, True)
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

    >>> from diptych.benchmark.neural import neural_methods
    >>> [method.name for method in neural_methods().values() if method.published]
    ['Bi-CMSRM', 'PL-ranking', 'LDSP', 'MNiL(I→T)', 'MNiL(T→I)', 'MNiL']
    """
    printed = [
        NeuralMethod("bi-cmsrm", "Bi-CMSRM", BiCMSRM(), published="Bi-CMSRM"),
        NeuralMethod("pl-ranking", "PL-ranking", PLRanking(), published="PL-ranking", own_classes=True),
        NeuralMethod("ldsp", "LDSP", LDSP(), published="LDSP"),
        *(
            NeuralMethod(key, name, MNiL(direction=way, **_FEATURES), "words", published)
            for key, name, published, way in _ABLATIONS
        ),
    ]
    from_pixels = [
        NeuralMethod(f"{key}-pixels", f"{name}, pixels", MNiL(direction=way, **_PIXELS), "pixels", published)
        for key, name, published, way in _ABLATIONS
    ]
    others = [
        NeuralMethod("cca", "CCA", CCA()),
        NeuralMethod("warp", "WARP", WARP()),
        NeuralMethod("scm", "SCM", SCM()),
        NeuralMethod("deep-sm", "deep-SM", DeepSM()),
        NeuralMethod("gmlda", "GMA (GMLDA)", GMLDA()),
        NeuralMethod("lcfs", "LCFS", LCFS()),
        NeuralMethod("lgcfl", "LGCFL", LGCFL()),
        NeuralMethod("ml-cca", "ml-CCA", MLCCA()),
    ]
    return {method.key: method for method in (*printed, *(from_pixels if pixels else ()), *others)}
