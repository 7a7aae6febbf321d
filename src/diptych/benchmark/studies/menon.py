"""The tables of Menon et al. (2015) and the tasks beside them: every method with the settings to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from diptych import models
from diptych.benchmark.task import Method, Reference, Sensitivity, Task
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.models import KCCA, CrossModalModel, Preprocessed

Choices = Mapping[str, Sequence[Any]]

Scalings = Sequence[tuple[str, str]]

# Headings and order of the rows are the paper's.
_TABLE = {
    "No ground truth": (
        "random",
        "linear regression",
        "CCA",
        "CMML",
        "OC-SVM concatenation",
        "OC-SVM cross-product",
        "logistic concatenation",
        "logistic cross-product",
        "bipartite cross-product",
    ),
    "Ground truth": ("SM", "SCM", "pairwise SM", "marginal SM", "marginal SCM"),
}
# Those that Liu et al. compare, and their kin; on these features no paper prints them.
_SUBSPACE = "Subspace methods"
# The choice of the paper, section 7.4.
_SCALINGS: Scalings = (("none", "none"), ("l2", "l2"))
_RATIOS = (1, 5, 10)
# Section 7.1; texts of ten features leave room for nine components.
_WIDTHS = (128, 10)
_COMPONENTS = range(1, 10)
_SUBSPACE_COMPONENTS = (3, 5, 7, 9)
_SHARES = (0.01, 0.02, 0.05, *(percent / 100 for percent in range(10, 101, 10)))
SENSITIVITIES = (
    Sensitivity(
        "logistic cross-product",
        "model__ratio",
        "unlabelled pairs for each given one, S",
        (1, 2, 3, 5, 10, 20, 50),
    ),
    Sensitivity("logistic cross-product", "model__feature_share", "share of cross-product features", _SHARES),
)
"""What figures 5 and 6 of the paper vary."""
# Both sides raw, both ℓ2 (the two choices of Menon et al.), or both square-rooted, which suits histograms.
_HISTOGRAM_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
# Menon et al. try one to nine components on ten topics; a hundred topics have room for more.
_ENCODED_COMPONENTS = (5, 10, 20, 40)
_ENCODED_SCALINGS = (("l2", "l2"), ("hellinger", "l2"))
_COSTA_PEREIRA = {
    "KCCA": Reference("004", "Table IX", "Wikipedia", "CM", same_features=False),
    "SCM on KCCA": Reference("004", "Table IX", "Wikipedia", "SCM", same_features=False),
}


def _with_scalings(scalings: Scalings, grid: Choices) -> list[Choices]:
    return [
        {"images": [images], "texts": [texts], **{f"model__{name}": values for name, values in grid.items()}}
        for images, texts in scalings
    ]


def menon_entries(
    scalings: Scalings,
    n_components: Sequence[int],
    subspace_components: Sequence[int],
    references: Mapping[str, Reference],
    kernels: KCCA,
    ratios: Sequence[int] = (5, 10),
) -> tuple[Method, ...]:
    """Return correlation, pairwise and semantic methods in the order of Menon et al. (2015), with ours among them.

    ``ratios`` are the numbers of unlabelled pairs for each given one; the paper tries 1, 5 and 10.
    """

    def scaled(name: str, model: CrossModalModel, grid: Choices, *, distances: bool = False) -> Method:
        return Method(name, Preprocessed(model=model), _with_scalings(scalings, grid), references.get(name), distances)

    def kernel(name: str, model: CrossModalModel, grid: Choices) -> Method:
        return Method(name, model, [grid], references.get(name))

    cca = models.CCA(weight_power=0.0)
    components: dict[str, Sequence[Any]] = {"n_components": n_components}
    ridges: Choices = {"regularization": [10.0**power for power in range(-8, 1)]}
    strengths: dict[str, Sequence[Any]] = {"C": [10.0**power for power in range(-2, 5)]}
    subspace: Choices = {
        "correlation__n_components": subspace_components,
        "correlation__regularization": [0.1, 1.0],
        "C": [0.1, 1.0, 10.0],
    }
    kernel_subspace: Choices = {
        "correlation__n_components": [10, 20, 50],
        "correlation__kappa": [0.5, 0.99],
        "C": [1.0, 100.0],
    }
    metric_learning: Choices = {"sharpness": [0.3, 3.0], "regularization": [0.01, 0.03, 0.1]}
    pairwise: Choices = strengths | {"ratio": ratios}
    additive: Choices = {"C": [1e-7, 1e-5, 1e-3, 0.1, 10.0], "ratio": [1, 10]}
    one_class: Choices = {"nu": [2.0**power for power in range(-4, 0)]}
    return (
        Method("random", models.Random(), [{}], references.get("random")),
        scaled("linear regression", models.LinearRegression(), ridges),
        scaled("CFA", models.CFA(), components),
        scaled("CCA", cca, components | {"regularization": [1e-3, 1e-2, 0.1, 1.0]}, distances=True),
        kernel("KCCA", kernels, {"n_components": [5, 10, 20], "kappa": [0.5, 0.9, 0.99]}),
        scaled("CMML", models.CMML(metric="cosine"), metric_learning),
        scaled("OC-SVM concatenation", models.OneClassSVM(features="concat"), one_class),
        scaled("OC-SVM cross-product", models.OneClassSVM(), one_class),
        scaled("logistic concatenation", models.LogisticConcatenation(), additive),
        scaled("logistic cross-product", models.LogisticCrossProduct(), pairwise),
        scaled("bipartite cross-product", models.BipartiteCrossProduct(), pairwise),
        scaled("SM", models.SM(), strengths, distances=True),
        scaled("SCM", models.SCM(correlation=cca), subspace, distances=True),
        kernel("SCM on KCCA", models.SCM(correlation=kernels), kernel_subspace),
        scaled("pairwise SM", models.PairwiseSM(), pairwise),
        scaled("marginal SM", models.MarginalSM(), strengths),
        scaled("marginal SCM", models.MarginalSCM(correlation=cca), subspace),
        scaled("TS", models.TS(classifier=models.MarginalSM()), {"classifier__C": strengths["C"]}),
    )


def subspace_entries(scalings: Scalings, n_components: Sequence[int]) -> tuple[Method, ...]:
    """Return the subspace methods that Liu et al. compare, and those of their kind; no paper prints them as used here.

    Their values of α and of the ridges belong to other features, so that both are chosen like everything else.
    """
    components: dict[str, Sequence[Any]] = {"n_components": n_components}
    ridges: dict[str, Sequence[Any]] = {"regularization": [1e-3, 1e-2, 0.1, 1.0, 10.0]}
    alignments: dict[str, Sequence[Any]] = {"alpha": [1.0, 5.0, 25.0, 125.0]}
    # Its graphs of neighbours make each fit slow.
    few: Choices = {"n_components": [n_components[-1]], "regularization": [0.01, 0.1, 1.0], **alignments}
    sparsities: dict[str, Sequence[Any]] = {"sparsity": [1e-2, 0.1, 1.0, 10.0, 100.0]}
    grids: tuple[tuple[str, CrossModalModel, Sequence[Choices]], ...] = (
        ("PLS", models.PLS(), [components | {"text_points": ["least_squares", "projection"]}]),
        ("BLM", models.BLM(), [components | {"alpha": [1.0, 10.0, 500.0]}, components | {"variant": ["factors"]}]),
        ("GMLDA", models.GMLDA(), [components | ridges | alignments]),
        ("GMMFA", models.GMMFA(), [few]),
        ("CCA-3V", models.CCA3V(), [components | ridges | {"weight_power": [0.0, 4.0]}]),
        ("LCFS", models.LCFS(), [sparsities | {"low_rank": [1e-5, 1e-4, 1e-3, 1e-2]}]),
        ("ml-CCA", models.MLCCA(), [components | ridges]),
        ("cluster-CCA", models.ClusterCCA(), [components | ridges]),
        ("LGCFL, unofficial", models.LGCFL(), [sparsities | {"group_size": [1, 4, 8]}]),
    )
    return tuple(
        Method(name, Preprocessed(model=model), [part for grid in parts for part in _with_scalings(scalings, grid)])
        for name, model, parts in grids
    )


def menon_references(table: str, dataset: str, *, same_features: bool) -> dict[str, Reference]:
    """Return where Menon et al. (2015) print each method on one data set."""
    names = {
        "random": "Random",
        "linear regression": "Linear regression",
        "CCA": "CCA",
        "CMML": "CMML",
        "OC-SVM concatenation": "OC-SVM Concatenation",
        "OC-SVM cross-product": "OC-SVM Cross-Product",
        "logistic concatenation": "Logistic Concatenation",
        "logistic cross-product": "Logistic Cross-Product",
        "bipartite cross-product": "Bipartite Cross-Product",
        "SM": "SM",
        "SCM": "SCM",
        "pairwise SM": "Pairwise SM",
        "marginal SM": "Marginal SM",
        "marginal SCM": "Marginal SCM",
    }
    return {ours: Reference("001", table, dataset, theirs, same_features) for ours, theirs in names.items()}


def _pairwise_entries(references: Mapping[str, Reference]) -> tuple[Method, ...]:
    # The tables have no kernel method, so that its settings do not matter.
    methods = menon_entries(_SCALINGS, _COMPONENTS, _SUBSPACE_COMPONENTS, references, KCCA(), _RATIOS)
    by_name = {entry.name: entry for entry in methods}
    rows = [replace(by_name[name], group=group, distances=False) for group, names in _TABLE.items() for name in names]
    rows += [replace(entry, group=_SUBSPACE) for entry in subspace_entries(_SCALINGS, _SUBSPACE_COMPONENTS)]
    return tuple(rows)


PAIRWISE_WIKIPEDIA = Task(
    name="pairwise-wikipedia",
    title="Wikipedia (Menon et al. 2015, Table 1), 2,173 training and 693 test pairs",
    dataset="wikipedia",
    entries=_pairwise_entries(menon_references("Table 1", "Wikipedia", same_features=True)),
    sensitivities=SENSITIVITIES,
    notes=("Features: those of the paper, 128 SIFT words and 10 LDA topics, raw or ℓ2-normalised.",),
)

PAIRWISE_PASCAL = Task(
    name="pairwise-pascal",
    title="Pascal Sentence (Menon et al. 2015, Table 2), 700 training and 300 test pairs",
    dataset="pascal_sentence",
    options={"captions": "join"},
    entries=_pairwise_entries(menon_references("Table 2", "Pascal", same_features=False)),
    image_encoder=EfficientNetLite(),
    text_encoder=SentenceEncoder(),
    components=_WIDTHS,
    notes=(
        "Features: EfficientNet-Lite2 and MiniLM, reduced to 128 and 10 principal components like those of the paper.",
        "The paper's own features and split are not publicly available, so its numbers stand there for orientation.",
    ),
)

PAIRWISE_TVGRAZ = Task(
    name="pairwise-tvgraz",
    title="TVGraz (Menon et al. 2015, Table 3), 1,558 training and 500 test pairs",
    dataset="tvgraz",
    entries=_pairwise_entries(menon_references("Table 3", "TVGraz", same_features=True)),
    components=_WIDTHS,
    notes=("Features: as supplied, reduced to 128 and 10 principal components where they are wider.",),
)

PAIRWISE = (PAIRWISE_WIKIPEDIA, PAIRWISE_PASCAL, PAIRWISE_TVGRAZ)
"""One task for each table."""


def _wikipedia(name: str, title: str, scalings: Scalings) -> Task:
    return Task(
        name=name,
        title=f"Wikipedia, 2,173 training and 693 test pairs, SIFT histograms and LDA topics, {title}",
        dataset="wikipedia",
        entries=menon_entries(
            scalings,
            range(1, 10),
            (3, 5, 7, 9),
            menon_references("Table 1", "Wikipedia", same_features=True) | _COSTA_PEREIRA,
            KCCA(solver="nystrom", rank=500),
        ),
        published_distances=True,
    )


WIKIPEDIA = _wikipedia("wikipedia", "raw, ℓ2 or square-rooted", _HISTOGRAM_SCALINGS)
WIKIPEDIA_PLAIN = _wikipedia("wikipedia-plain", "raw or ℓ2", _HISTOGRAM_SCALINGS[:2])

PASCAL = Task(
    name="pascal",
    title="Pascal Sentence, 700 training and 300 test pairs, colour and edge histograms and TF-IDF topics",
    dataset="pascal_sentence",
    options={"captions": "join"},
    entries=menon_entries(
        _ENCODED_SCALINGS,
        _ENCODED_COMPONENTS,
        _ENCODED_COMPONENTS,
        menon_references("Table 2", "Pascal", same_features=False),
        KCCA(solver="nystrom", rank=300),
    ),
)

SCENES = Task(
    name="scenes",
    title="Generated scenes, 600 training and 300 test pictures, colour and edge histograms and TF-IDF topics",
    dataset="scenes",
    options={"n_train": 600, "n_test": 300, "size": 64, "captions": "join"},
    entries=menon_entries(
        _ENCODED_SCALINGS, _ENCODED_COMPONENTS, _ENCODED_COMPONENTS, {}, KCCA(solver="nystrom", rank=200)
    ),
)

MENON = (WIKIPEDIA, WIKIPEDIA_PLAIN, PASCAL, SCENES, *PAIRWISE)
"""Every task whose settings are chosen as in Menon et al. (2015)."""
