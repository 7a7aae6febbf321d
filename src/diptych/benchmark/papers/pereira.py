"""Costa Pereira et al., "On the role of correlation and abstraction in cross-modal multimedia retrieval", TPAMI 2014.

Correlation matching (CM), semantic matching (SM) and both (SCM) on the test part: Tables VIII and IX. On the validation
part, a random fifth of the training pairs: distances (Table IV), correlation methods (Tables V and VI) and features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.benchmark.task import Features, Method, Task, ValidationPart
from diptych.encoders import LdaTopics, SiftWords
from diptych.metrics import AP
from diptych.models import CCA, CFA, KCCA, SCM, SM, CrossModalModel, Preprocessed
from diptych.protocols import HoldOut, StandardSplit

CITATION = (
    "Costa Pereira et al., On the role of correlation and abstraction in cross-modal multimedia retrieval, TPAMI 2014"
)
# NCc, the normalised correlation of centred points, which the paper settles on for all three spaces. Of probabilities
# it means something; a correlation method leaves the sign of each direction open, and the mean over the components,
# which NCc subtracts, is then whatever the signs happen to be. NC asks for no signs, and the paper finds no difference
# between the two for CM on Wikipedia.
CENTRED_CORRELATION = "pearson"
CORRELATION = "cosine"
DISTANCES = ("l1", "euclidean", "kl", "cosine", "pearson")
VALIDATION = HoldOut(repeats=1, share=0.2)
# Raw, ℓ2 or square-rooted rows; the paper does not say how features enter the linear methods.
_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
_STRENGTHS = [10.0**power for power in range(-1, 5)]
_RIDGES = [1e-3, 1e-2, 0.1, 1.0]
_COMPONENTS = [5, 10, 20, 40, 80, 160]

Settings = Mapping[str, Any]


def _scaled(name: str, title: str, model: CrossModalModel, grid: Mapping[str, Sequence[Any]]) -> Method:
    grids = [
        {"images": [images], "texts": [texts], **{f"model__{key}": values for key, values in grid.items()}}
        for images, texts in _SCALINGS
    ]
    return Method(name, title, Preprocessed(model=model), grids)


def _semantic_matching() -> Method:
    return _scaled("sm", "SM", SM(metric=CENTRED_CORRELATION), {"C": _STRENGTHS})


def _matching(name: str, title: str, kappas: Sequence[float]) -> Method:
    """Return CM on KCCA, whose components grow with the pairs of the last fit, as the paper multiplies them."""
    grid = {"kappa": kappas, "n_components": _COMPONENTS}
    return Method(name, title, KCCA(metric=CORRELATION), [grid], rescaled=("n_components",))


def _tested(kappas: Sequence[float]) -> tuple[Method, ...]:
    """Return the three methods of the tables on the test part, chosen on the validation part."""
    grid = {"correlation__kappa": kappas, "correlation__n_components": _COMPONENTS, "C": _STRENGTHS}
    model = SCM(correlation=KCCA(metric=CORRELATION), metric=CENTRED_CORRELATION)
    both = Method("scm", "SCM", model, [grid], rescaled=("correlation__n_components",))
    return (both, _semantic_matching(), _matching("cm", "CM", kappas))


def _correlations(kappas: Sequence[float], few: Sequence[int]) -> tuple[Method, ...]:
    """Return CM by each correlation method, chosen on the part that is asked."""
    cca = CCA(weight_power=0.0, metric=CORRELATION)
    return (
        _matching("cm-kcca", "CM-KCCA", kappas),
        _scaled("cm-cca", "CM-CCA", cca, {"n_components": few, "regularization": _RIDGES}),
        _scaled("cm-cfa", "CM-CFA", CFA(metric=CORRELATION), {"n_components": few}),
    )


def _distances(cm: Settings, sm: Settings, scm: Settings) -> tuple[Method, ...]:
    """Return CM, SM and SCM by each distance, in the settings that the test part's methods chose on the same pairs.

    CM has no KL, since its points are no probabilities, and no NCc, which the signs of its components would decide.
    """
    rows, strength = sm["rows"], sm["C"]
    correlation = KCCA(kappa=scm["kappa"], n_components=scm["n_components"], metric=CORRELATION)
    methods = [Method(f"cm-{name}", f"CM by {name}", KCCA(**cm, metric=name)) for name in ("l1", "euclidean", "cosine")]
    for name in DISTANCES:
        matching = Preprocessed(model=SM(C=strength, metric=name), images=rows, texts=rows)
        both = SCM(correlation=correlation, C=scm["C"], metric=name)
        methods += [Method(f"sm-{name}", f"SM by {name}", matching), Method(f"scm-{name}", f"SCM by {name}", both)]
    return tuple(methods)


def _tasks(
    short: str,
    title: str,
    dataset: str,
    features: Features,
    *,
    kappas: Sequence[float],
    few: Sequence[int],
    chosen: tuple[Settings, Settings, Settings] | None,
    table: tuple[str, str, str] | None = None,
    **parts: Any,
) -> tuple[Task, ...]:
    """Return the task on the test part and that on the validation part; ``chosen`` are settings of CM, SM and SCM."""
    declared = {"features": features, "measures": (AP(),), "citation": CITATION, **parts}
    distances = () if chosen is None else _distances(*chosen)
    asked = StandardSplit(VALIDATION)
    return (
        Task(
            f"correlation-{short}", title, dataset, protocol=asked, methods=_tested(kappas), printed=table, **declared
        ),
        Task(
            f"validation-{short}",
            f"{title}: the fifth of the training pairs that parameters are chosen on",
            dataset,
            protocol=ValidationPart(VALIDATION),
            methods=(*_correlations(kappas, few), *distances),
            **declared,
        ),
    )


def _pascal(words: int, topics: int) -> Features:
    label = f"{words} SIFT words, {topics} LDA topics, learned here"
    return Features(label, SiftWords(n_words=words), LdaTopics(n_topics=topics))


_JOINED = {"captions": "join"}
PEREIRA = (
    *_tasks(
        "wikipedia",
        "Wikipedia, 2,173 training and 693 test pairs",
        "wikipedia",
        Features("128 SIFT words and 10 LDA topics, as given"),
        # The regulariser that the paper prints for this data set.
        kappas=(0.5,),
        few=(3, 5, 7, 9),
        chosen=(
            {"kappa": 0.5, "n_components": 5},
            {"rows": "l2", "C": 1.0},
            {"kappa": 0.5, "n_components": 80, "C": 10.0},
        ),
        table=("004", "Table IX", "Wikipedia"),
        notes=(
            "The paper chose among codebooks of 128 to 8,192 words and 5 to 4,000 topics; the features given to the "
            "public are smaller, so its numbers stand there for orientation.",
        ),
    ),
    *_tasks(
        "pascal",
        "Pascal Sentence, 700 training and 300 test pairs",
        "pascal_sentence",
        _pascal(1024, 100),
        kappas=(0.1, 0.5, 0.9),
        few=(5, 10, 20, 40),
        chosen=None,
        options=_JOINED,
        notes=("The paper has no such data set: its experiments on another one, from raw pictures and sentences.",),
    ),
    *(
        Task(
            f"features-pascal-{words}-{topics}",
            f"Pascal Sentence, SM on {words} SIFT words and {topics} LDA topics: the validation part",
            "pascal_sentence",
            features=_pascal(words, topics),
            protocol=ValidationPart(VALIDATION),
            methods=(_semantic_matching(),),
            measures=(AP(),),
            citation=CITATION,
            options=_JOINED,
        )
        for words in (256, 1024)
        for topics in (20, 50, 100)
    ),
    *_tasks(
        "tvgraz",
        "TVGraz, 1,558 training and 500 test pairs",
        "tvgraz",
        Features("as supplied"),
        kappas=(0.1,),
        few=(5, 10, 20, 40),
        chosen=None,
        table=("004", "Table VIII", "TVGraz"),
    ),
)
"""For each data set a task on its test part and one on the validation part; on Pascal one a choice of features."""
