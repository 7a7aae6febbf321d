"""Two frozen towers and few captions: budgets of pairs, with and without unpaired rows, over several tower pairs.

No paper: the methods are those of papers since 2023 that compare each other on towers and splits of their own. Here all
of them get the same features, draws, development photographs and questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from diptych import models
from diptych.benchmark.task import Features, Method, Reads, Task
from diptych.data import DatasetSplits, Pairs, find_dataset
from diptych.encoders import (
    Concatenated,
    EfficientNetLite,
    Encoder,
    ResNet50,
    SentenceEncoder,
    UniversalSentenceEncoder,
)
from diptych.encoders.feature_cache import Progress
from diptych.metrics import FOSCTTM, Measure, MedianRank, RecallAtK
from diptych.models import CrossModalModel, QueryBankNormalized
from diptych.protocols import FewPairs, Fold, Retrieval
from diptych.protocols.folds import joined

BUDGETS = (0, 20, 100, 300, 1000, 3000, 6000)
"""Pairs of Flickr8k; a pair is a photograph with the first of its captions."""
MEASURES: tuple[Measure, ...] = (RecallAtK(10), RecallAtK(1), RecallAtK(5), MedianRank(), FOSCTTM())
"""The first decides among settings and methods, on the development photographs."""
MAIN = "lite2-minilm-use"
"""The tower pair that all methods are compared on."""
_COCO_BUDGETS = (0, 20, 100, 1000, 6000, 16000)
OTHER_BUDGETS = (0, 20, 100, 1000, 6000)
"""Those of the other tower pairs."""
ELSEWHERE = ("Pascal", "class names", "COCO")
"""What models of the main tower pair are asked besides their own test part."""
_SPOKEN = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv monitor"}
_COMPARED = frozenset({"cca", "procrustes", "cca-nnn", "wasserstein"})
_CONTRASTIVE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "contrastive-sigmoid": ("contrastive, sigmoid", {"loss": "sigmoid"}),
    "contrastive-sail": ("contrastive, sigmoid and gated (SAIL)", {"loss": "sigmoid", "head": "gated"}),
    "contrastive-mix": ("contrastive, mixed (FuseMix)", {"mix": 1.0}),
    "contrastive-structure": ("contrastive, STRUCTURE", {"structure": 10.0}),
    "contrastive-fixed": ("contrastive, pictures fixed (ShareLock)", {"fixed": "images", "head": "mlp"}),
}
_REDUCED = "Procrustes, principal components"
_GROUPS = {"cca": "canonical correlations", "bank": "with a query bank"}


def _side_by_side(*encoders: Encoder) -> Encoder:
    """Return encoders whose rows are scaled to unit length, one or several."""
    return Concatenated(encoders=encoders)


_LITE2, _BOTH = EfficientNetLite(), (SentenceEncoder(), UniversalSentenceEncoder())
TOWERS: Mapping[str, tuple[str, Encoder, Encoder]] = {
    MAIN: ("EfficientNet-Lite2, MiniLM and USE", _side_by_side(_LITE2), _side_by_side(*_BOTH)),
    "lite2-minilm": ("EfficientNet-Lite2, MiniLM", _side_by_side(_LITE2), _side_by_side(SentenceEncoder())),
    "lite2-use": ("EfficientNet-Lite2, USE", _side_by_side(_LITE2), _side_by_side(UniversalSentenceEncoder())),
    "lite0-minilm-use": (
        "EfficientNet-Lite0, MiniLM and USE",
        _side_by_side(EfficientNetLite(network="lite0")),
        _side_by_side(*_BOTH),
    ),
    "resnet50-minilm-use": ("ResNet-50, MiniLM and USE", _side_by_side(ResNet50()), _side_by_side(*_BOTH)),
    "tuned-minilm-use": (
        "EfficientNet-Lite2 trained on captions, MiniLM and USE",
        _side_by_side(EfficientNetLite(network="lite2-captions")),
        _side_by_side(*_BOTH),
    ),
}
"""Names, titles, and the encoders of pictures and texts. The last one has seen captions: an upper line."""


@dataclass(frozen=True)
class FewPairsTask(Task):
    """A task whose training and development photographs have one caption each, and which also asks other data sets.

    Features are rounded to half precision, so that a machine without the photographs can be given them in a small file.
    """

    towers: str = MAIN
    pairs: int = 0
    elsewhere: tuple[str, ...] = ()

    def load_items(self) -> DatasetSplits:
        """Return the parts, with the first caption of each training and development photograph."""
        own = super().load_items()
        dev = None if own.dev is None else own.dev.one_text_per_image(0)
        return replace(own, train=own.train.one_text_per_image(0), dev=dev)

    def load(self, reads: Reads = "features", progress: Progress | None = None) -> DatasetSplits:
        """Return the encoded parts, and what is asked elsewhere as extras."""
        others = {}
        for name in self.elsewhere:
            pairs = _pairs_elsewhere(name)
            encoded = self.features.of_splits(DatasetSplits(train=pairs, test=pairs)).test
            rounded = half_precision(encoded)
            others[name] = partial(Retrieval, rounded, rounded)
        splits = super().load(reads, progress)
        parts: Any = {name: half_precision(pairs) for name, pairs in splits.parts.items()}
        return replace(splits, **parts, extras=others)

    def fold(self, splits: DatasetSplits, number: int, reads: Reads = "features") -> Fold:
        """Return one draw, with what is asked elsewhere."""
        others = {name: splits.extra(name) for name in self.elsewhere}
        return replace(super().fold(splits, number, reads), elsewhere=others)


def half_precision(pairs: Pairs) -> Pairs:
    """Return the pairs with features rounded to half precision, as single precision."""
    sides = (np.asarray(side).astype(np.float16).astype(np.float32) for side in (pairs.images, pairs.texts))
    return pairs.with_features(*sides)


def _pairs_elsewhere(name: str) -> Pairs:
    if name == "COCO":
        return find_dataset("coco_pairs").load().test
    splits = find_dataset("pascal_sentence").load()
    pairs = joined(splits.train, splits.test)
    if name == "Pascal":
        return replace(pairs, labels=None, class_names=())
    # Every photograph is paired with the name of its class: each name is asked for fifty times, and counts alike.
    texts = tuple(_SPOKEN.get(label, label) for label in pairs.image_classes().tolist())
    return replace(pairs, texts=texts, owners=np.arange(pairs.n_images), text_ids=pairs.ids)


def _row(name: str, title: str, model: CrossModalModel, group: str = "alignment", **grid: Any) -> Method:
    return Method(name, title, model, [grid], _GROUPS.get(group, group))


def _banked(name: str, title: str, model: CrossModalModel, correction: str = "NNN") -> Method:
    model = QueryBankNormalized(model=model).set_params(**QueryBankNormalized.variants[correction])
    return _row(f"{name}-{correction.lower()}", f"{title}, {correction}", model, "bank")


def _paired(pairs: int) -> Iterator[Method]:
    """Yield the methods that learn from pairs alone."""
    yield _row("cca", "CCA", models.CCA(), "cca")
    for ridge in (0.1, 1.0, 10.0):
        yield _row(f"cca-{ridge:g}", f"CCA, ridge {ridge:g}", models.CCA(regularization=ridge), "cca")
    yield _row("csa", "CSA", models.CSA(), "cca")
    yield _row("procrustes", "Procrustes", models.Procrustes())
    yield _row("procrustes-pca", _REDUCED, models.Procrustes(), principal_components=[32, 64, 128, 256])
    relative = models.RelativeRepresentations
    yield _row("relative", "relative representations", relative(n_neighbors=None, power=1.0))
    yield _row("asif", "ASIF", relative(n_neighbors=800, power=8.0))
    yield _row("local-cka", "local CKA", models.LocalCKA())
    if pairs >= 100:
        yield _row("contrastive", "contrastive projection", models.ContrastiveProjection(), "contrastive")
    if pairs == 1000:
        for name, (title, settings) in _CONTRASTIVE.items():
            yield _row(name, title, models.ContrastiveProjection(**settings), "contrastive")
    yield _banked("cca", "CCA", models.CCA())


def _with_unpaired(pairs: int, is_main: bool) -> Iterator[Method]:
    """Yield the methods that also learn from rows without a partner."""
    if pairs:
        yield _row("procrustes-pca", _REDUCED, models.Procrustes(), principal_components=[32, 64, 128, 256])
        yield _banked("cca", "CCA", models.CCA())
    if 100 <= pairs <= 1000:
        yield _row("sotalign", "SOTAlign", models.SOTAlign(), alpha=[0.0, 1.0, 10.0])
    if pairs <= 1000:
        # Without pairs there is nothing to choose by.
        components: Any = {"principal_components": [64, 128, 256]} if pairs and is_main else {}
        wasserstein = models.WassersteinProcrustes(principal_components=128)
        yield _row("wasserstein", "Wasserstein Procrustes", wasserstein, **components)
        yield _banked("wasserstein", "Wasserstein Procrustes", wasserstein)
    if pairs <= 20:
        yield _row("mini-vec2vec", "mini-vec2vec", models.MiniVec2Vec(principal_components=128))
        yield _row("unpaired-cca", "unpaired CCA", models.UnpairedCCA(principal_components=128))


def _tasks(
    towers: str, budgets: Sequence[int], *, dataset: str = "flickr8k", data: str = "Flickr8k"
) -> Iterator[FewPairsTask]:
    title, images, texts = TOWERS[towers]
    is_main = towers == MAIN and dataset == "flickr8k"
    for pairs in budgets:
        for unpaired in (False, True):
            if (unpaired and pairs == budgets[-1]) or (not unpaired and not pairs):
                continue
            methods = _with_unpaired(pairs, is_main) if unpaired else _paired(pairs)
            if not is_main:
                methods = (method for method in methods if method.name in _COMPARED)
            yield FewPairsTask(
                f"align-{dataset}-{towers}-{pairs}{'-unpaired' if unpaired else ''}",
                f"{data}, {pairs:,} pairs, {'unpaired rows beside' if unpaired else 'no other rows'}; {title}",
                dataset,
                features=Features(title, images, texts),
                protocol=FewPairs(pairs, unpaired),
                methods=tuple(methods),
                measures=MEASURES,
                seeds_by_fold=True,
                is_brief=True,
                data_digest="first captions",
                elsewhere=ELSEWHERE if is_main else (),
                towers=towers,
                pairs=pairs,
            )


ALIGNMENT: tuple[FewPairsTask, ...] = (
    *(task for towers in TOWERS for task in _tasks(towers, BUDGETS if towers == MAIN else OTHER_BUDGETS)),
    *_tasks(MAIN, _COCO_BUDGETS, dataset="coco_pairs", data="COCO"),
)
"""One task for each tower pair, number of pairs, and whether there are unpaired rows."""
