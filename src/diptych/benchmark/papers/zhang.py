"""Zhang et al., "Multi-networks joint learning for large-scale cross-modal retrieval", ACM Multimedia 2017: tables."""

from __future__ import annotations

from typing import Any, Literal

from diptych import models
from diptych.benchmark.methods import MNIL_ON_FEATURES
from diptych.benchmark.task import Features, Method, Seeds, Task
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.metrics import AP, Measure, RecallAtK
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.preprocessed import RowScaling

CITATION = "Zhang et al., Multi-networks joint learning for large-scale cross-modal retrieval, ACM Multimedia 2017"
LABELLED: tuple[Measure, ...] = (AP(50, "retrieved"), AP(50, "total"), AP())
CAPTIONED: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10))
# As the paper calls what ranks for one direction alone.
_ABLATIONS: tuple[tuple[str, str, Literal["both", "image_query", "text_query"]], ...] = (
    ("mnil-i-t", "MNiL(I→T)", "image_query"),
    ("mnil-t-i", "MNiL(T→I)", "text_query"),
    ("mnil", "MNiL", "both"),
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


def zhang_methods(texts: RowScaling, *, classes: bool, words: bool = True) -> tuple[Method, ...]:
    """Return the methods of the paper's tables in their order, then those that it names or others compare with.

    All keep their defaults, so that nothing is chosen on test data. PL-ranking, which learns from classes, takes each
    picture and its captions for one where there are none. MNiL from pixels takes a graphics card for more than a try.
    """

    def scaled(name: str, title: str, model: CrossModalModel, *, own_classes: bool = False) -> Method:
        behind = Preprocessed(model=model, images="l2", texts=texts)
        return Method(name, title, behind, own_classes=own_classes)

    printed = [
        scaled("bi-cmsrm", "Bi-CMSRM", models.BiCMSRM()),
        scaled("pl-ranking", "PL-ranking", models.PLRanking(), own_classes=True),
        scaled("ldsp", "LDSP", models.LDSP()),
    ]
    networks = [
        *(
            Method(name, title, models.MNiL(direction=way, **MNIL_ON_FEATURES), reads="words")
            for name, title, way in _ABLATIONS
        ),
        *(
            Method(f"{name}-pixels", f"{title}, pixels", models.MNiL(direction=way, **_PIXELS), reads="items")
            for name, title, way in _ABLATIONS
        ),
    ]
    others = [
        scaled("cca", "CCA", models.CCA(regularization=0.1)),
        scaled("warp", "WARP", models.WARP()),
        scaled("scm", "SCM", models.SCM(correlation=models.CCA(regularization=0.1))),
        scaled("deep-sm", "deep-SM", models.DeepSM()),
        scaled("gmlda", "GMA (GMLDA)", models.GMLDA(regularization=0.001)),
        scaled("lcfs", "LCFS", models.LCFS()),
        scaled("lgcfl", "LGCFL", models.LGCFL()),
        scaled("ml-cca", "ml-CCA", models.MLCCA()),
    ]
    methods = (*printed, *(networks if words else ()), *others)
    return tuple(method for method in methods if classes or not method.needs_labels)


def _task(
    short: str, title: str, dataset: str, *, texts: RowScaling = "l2", classes: bool = True, **parts: Any
) -> Task:
    """Return a comparison: MAP on classes as in table 1, recall of the own picture or captions as in table 2."""
    given = dataset == "wikipedia"
    networks = Features("EfficientNet-Lite2 and MiniLM, rows of unit length", EfficientNetLite(), SentenceEncoder())
    return Task(
        name=f"neural-{short}",
        title=title,
        dataset=dataset,
        features=Features("SIFT words, rows of unit length, and LDA topics") if given else networks,
        protocol=Seeds(3),
        methods=zhang_methods(texts, classes=classes, words=not given),
        measures=LABELLED if classes else CAPTIONED,
        relevant="label" if classes else "instance",
        citation=CITATION,
        printed=("002", "Table 1", "MSCOCO") if classes else ("002", "Table 2", "Flickr30K"),
        seeds_by_fold=True,
        **parts,
    )


ZHANG = (
    _task("wikipedia", "Wikipedia, 2,173 training and 693 test pairs, 10 classes", "wikipedia", texts="none"),
    _task(
        "pascal",
        "Pascal Sentence, 700 training and 300 test photos with five captions, 20 classes",
        "pascal_sentence",
        notes=("Every caption is a text of its own: 3,500 to learn from, 1,498 to ask and to find.",),
    ),
    _task("flickr8k", "Flickr8k, 6,000 training and 1,000 test photos with five captions", "flickr8k", classes=False),
    _task(
        "flickr30k",
        "Flickr30K, 29,783 training and 1,000 test photos with five captions",
        "flickr30k",
        classes=False,
        options={"split": "entities"},
        notes=("The split of Flickr30k Entities; the paper draws ten splits of these sizes.",),
    ),
    _task(
        "coco",
        "COCO val2017, 4,000 training and 1,000 test photos with five captions, 80 classes",
        "coco",
        notes=("Relevant: what shares a class. The paper learns from 82,081 photos of 2014.",),
    ),
    _task(
        "coco-pairs",
        "COCO val2014, 15,819 training and 987 test photos with one caption, the paper's 81 labels",
        "coco_pairs",
        options={"label": "category"},
        notes=(
            "Relevant: what shares a label, by the paper's own file. Its 82,081 training, 5,000 development and 5,000 "
            "query pairs, scaled to the 18,000 photos at hand; photos without a label are left out.",
        ),
    ),
)
"""One task for each data set; an item is relevant that shares a class, or that belongs to the query."""
