"""The methods that are compared."""

from __future__ import annotations

from typing import Any

from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.models import CCA, GMLDA, LCFS, LDSP, LGCFL, MLCCA, SCM, WARP, BiCMSRM, DeepSM, MNiL, PLRanking
from diptych.models.neural.mnil.sextuple_loss import Trained

# As Zhang et al. call what ranks for one direction alone.
_ABLATIONS: tuple[tuple[str, str, str, Trained], ...] = (
    ("mnil-i-t", "MNiL(I→T)", "MNiL(I->T)", "image_query"),
    ("mnil-t-i", "MNiL(T→I)", "MNiL(T->I)", "text_query"),
    ("mnil", "MNiL", "MNiL", "both"),
)
# ResNet-50 fine-tuned on squares of 128 pixels, with the settings of benchmarks/mnil_flickr8k.py.
_PIXELS: dict[str, Any] = {
    "image_tower": "resnet50",
    "image_side": 144,
    "image_crop": 128,
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
_FEATURES: dict[str, Any] = {"image_tower": "features", "n_components": 256, "dropout": 0.3}


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
        NeuralMethod("pl-ranking", "PL-ranking", PLRanking(), published="PL-ranking"),
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
