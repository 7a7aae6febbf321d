"""What Costa Pereira et al. compare on the validation part: codebooks, topics, components, kernels and κ.

Each task holds all else fixed. Features are learned on Pascal Sentence, whose pictures and texts are at hand; the rest
is compared on Wikipedia's own features.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from diptych.benchmark.papers.pereira import CENTRED_CORRELATION, CITATION, CORRELATION, VALIDATION
from diptych.benchmark.task import Features, Method, Task, ValidationPart
from diptych.encoders import Encoder, LdaTopics, SiftTopics, SiftWords
from diptych.metrics import AP
from diptych.models import KCCA, SCM, SM, Preprocessed

CODEWORDS = (128, 256, 512, 1024, 2048, 4096, 8192)
TEXT_TOPICS = (5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 4000)
IMAGE_TOPICS = (5, 10, 20, 50, 100, 200)
IMAGE_COMPONENTS = (5, 10, 20, 50, 100, 200)
COMPONENTS = (5, 10, 20, 40, 80, 160, 320, 640, 1125)
KERNELS = ("linear", "rbf", "exponential", "chi2_rbf", "intersection")
KAPPAS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9)
_FIXED_WORDS, _FIXED_TOPICS = 1024, 100
_CM = KCCA(kappa=0.5, n_components=10, metric=CORRELATION)
_FIXED_METHODS = (
    Method("cm", "CM", _CM),
    Method("sm", "SM", Preprocessed(model=SM(C=10.0, metric=CENTRED_CORRELATION), images="hellinger", texts="l2")),
    Method("scm", "SCM", SCM(correlation=KCCA(kappa=0.5, n_components=40), C=10.0, metric=CENTRED_CORRELATION)),
)


def _task(name: str, title: str, dataset: str, features: Features, methods: Iterable[Method], **parts: Any) -> Task:
    return Task(
        name,
        title,
        dataset,
        features=features,
        methods=tuple(methods),
        protocol=ValidationPart(VALIDATION),
        measures=(AP(),),
        citation=CITATION,
        **parts,
    )


def _on_pascal(
    name: str, what: str, images: Encoder, texts: Encoder, components: tuple[int, int] | None = None
) -> Task:
    return _task(
        name,
        f"Pascal Sentence, {what}: the validation part",
        "pascal_sentence",
        Features(what, images, texts, components),
        _FIXED_METHODS,
        options={"captions": "join"},
    )


def _on_wikipedia(name: str, what: str, methods: Iterable[Method]) -> Task:
    given = Features("128 SIFT words and 10 LDA topics, as given")
    return _task(name, f"Wikipedia, {what}: the validation part", "wikipedia", given, methods)


_WORDS, _TEXTS = SiftWords(n_words=_FIXED_WORDS), LdaTopics(n_topics=_FIXED_TOPICS)
PEREIRA_SETTINGS = (
    *(
        _on_pascal(f"codewords-pascal-{words}", f"{words} SIFT words", SiftWords(n_words=words), _TEXTS)
        for words in CODEWORDS
    ),
    *(
        _on_pascal(f"topics-pascal-{topics}", f"{topics} topics of texts", _WORDS, LdaTopics(n_topics=topics))
        for topics in TEXT_TOPICS
    ),
    *(
        _on_pascal(
            f"image-topics-pascal-{topics}",
            f"{topics} topics of SIFT words",
            SiftTopics(n_words=_FIXED_WORDS, n_topics=topics),
            _TEXTS,
        )
        for topics in IMAGE_TOPICS
    ),
    *(
        _on_pascal(
            f"image-pca-pascal-{count}",
            f"{count} principal components of SIFT words",
            _WORDS,
            _TEXTS,
            (count, _FIXED_TOPICS),
        )
        for count in IMAGE_COMPONENTS
    ),
    _on_wikipedia(
        "components-wikipedia",
        "CM by components",
        (
            Method(f"cm-{count}", f"components {count}", KCCA(kappa=0.5, n_components=count, metric=CORRELATION))
            for count in COMPONENTS
        ),
    ),
    _on_wikipedia(
        "kappa-wikipedia",
        "CM by κ",
        (
            Method(f"cm-{100 * kappa:g}", f"κ {kappa:g}", KCCA(kappa=kappa, n_components=10, metric=CORRELATION))
            for kappa in KAPPAS
        ),
    ),
    _on_wikipedia(
        "kernels-wikipedia",
        "CM by the kernels of pictures and texts",
        (
            Method(
                f"cm-{images}-{texts}".replace("_", "-"),
                f"{images} of pictures, {texts} of texts",
                KCCA(image_kernel=images, text_kernel=texts, kappa=0.5, n_components=10, metric=CORRELATION),
            )
            for images, texts in product(KERNELS, KERNELS)
        ),
    ),
)
"""One task for each choice of features, and one for each parameter of kernel correlation analysis."""
