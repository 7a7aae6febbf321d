"""The methods of the benchmarks, each with the settings to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.benchmark.entry import Entry, Reference
from diptych.models import (
    BLM,
    CCA,
    CCA3V,
    CFA,
    CMML,
    GMLDA,
    GMMFA,
    KCCA,
    LCFS,
    LGCFL,
    MLCCA,
    PLS,
    SCM,
    SM,
    TS,
    BipartiteCrossProduct,
    ClusterCCA,
    CrossModalModel,
    LinearRegression,
    LogisticConcatenation,
    LogisticCrossProduct,
    MarginalSCM,
    MarginalSM,
    OneClassSVM,
    PairwiseSM,
    Preprocessed,
    Random,
)

Choices = Mapping[str, Sequence[Any]]
Scalings = Sequence[tuple[str, str]]


def _scaled(scalings: Scalings, grid: Choices) -> list[Choices]:
    return [
        {"images": [images], "texts": [texts], **{f"model__{name}": values for name, values in grid.items()}}
        for images, texts in scalings
    ]


def method_entries(
    scalings: Scalings,
    n_components: Sequence[int],
    subspace_components: Sequence[int],
    references: Mapping[str, Reference],
    kernels: KCCA,
    ratios: Sequence[int] = (5, 10),
) -> tuple[Entry, ...]:
    """Return correlation, pairwise and semantic methods in the order of Menon et al. (2015), with ours among them.

    ``ratios`` are the numbers of unlabelled pairs for each given one; the paper tries 1, 5 and 10.
    """

    def scaled(name: str, model: CrossModalModel, grid: Choices, *, distances: bool = False) -> Entry:
        return Entry(name, Preprocessed(model=model), _scaled(scalings, grid), references.get(name), distances)

    def kernel(name: str, model: CrossModalModel, grid: Choices) -> Entry:
        return Entry(name, model, [grid], references.get(name))

    cca = CCA(weight_power=0.0)
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
        Entry("random", Random(), [{}], references.get("random")),
        scaled("linear regression", LinearRegression(), ridges),
        scaled("CFA", CFA(), components),
        scaled("CCA", cca, components | {"regularization": [1e-3, 1e-2, 0.1, 1.0]}, distances=True),
        kernel("KCCA", kernels, {"n_components": [5, 10, 20], "kappa": [0.5, 0.9, 0.99]}),
        scaled("CMML", CMML(metric="cosine"), metric_learning),
        scaled("OC-SVM concatenation", OneClassSVM(features="concat"), one_class),
        scaled("OC-SVM cross-product", OneClassSVM(), one_class),
        scaled("logistic concatenation", LogisticConcatenation(), additive),
        scaled("logistic cross-product", LogisticCrossProduct(), pairwise),
        scaled("bipartite cross-product", BipartiteCrossProduct(), pairwise),
        scaled("SM", SM(), strengths, distances=True),
        scaled("SCM", SCM(correlation=cca), subspace, distances=True),
        kernel("SCM on KCCA", SCM(correlation=kernels), kernel_subspace),
        scaled("pairwise SM", PairwiseSM(), pairwise),
        scaled("marginal SM", MarginalSM(), strengths),
        scaled("marginal SCM", MarginalSCM(correlation=cca), subspace),
        scaled("TS", TS(classifier=MarginalSM()), {"classifier__C": strengths["C"]}),
    )


def subspace_entries(scalings: Scalings, n_components: Sequence[int]) -> tuple[Entry, ...]:
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
        ("PLS", PLS(), [components | {"text_points": ["least_squares", "projection"]}]),
        ("BLM", BLM(), [components | {"alpha": [1.0, 10.0, 500.0]}, components | {"variant": ["factors"]}]),
        ("GMLDA", GMLDA(), [components | ridges | alignments]),
        ("GMMFA", GMMFA(), [few]),
        ("CCA-3V", CCA3V(), [components | ridges | {"weight_power": [0.0, 4.0]}]),
        ("LCFS", LCFS(), [sparsities | {"low_rank": [1e-5, 1e-4, 1e-3, 1e-2]}]),
        ("ml-CCA", MLCCA(), [components | ridges]),
        ("cluster-CCA", ClusterCCA(), [components | ridges]),
        ("LGCFL, unofficial", LGCFL(), [sparsities | {"group_size": [1, 4, 8]}]),
    )
    return tuple(
        Entry(name, Preprocessed(model=model), [part for grid in parts for part in _scaled(scalings, grid)])
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
