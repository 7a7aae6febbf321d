"""The benchmarks there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.benchmark.entry import Entry, Reference
from diptych.benchmark.task import Task
from diptych.errors import UnknownNameError
from diptych.models import (
    CCA,
    CFA,
    CMML,
    KCCA,
    SCM,
    SM,
    TS,
    BipartiteCrossProduct,
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

# Both sides raw, both ℓ2 (the two choices of Menon et al.), or both square-rooted, which suits histograms.
_HISTOGRAM_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
# Menon et al. try one to nine components on ten topics; a hundred topics have room for more.
_ENCODED_COMPONENTS = (5, 10, 20, 40)
_ENCODED_SCALINGS = (("l2", "l2"), ("hellinger", "l2"))


def _scaled(scalings: Sequence[tuple[str, str]], grid: Choices) -> list[Choices]:
    return [
        {"images": [images], "texts": [texts], **{f"model__{name}": values for name, values in grid.items()}}
        for images, texts in scalings
    ]


def _entries(
    scalings: Sequence[tuple[str, str]],
    n_components: Sequence[int],
    subspace_components: Sequence[int],
    references: Mapping[str, Reference],
    kernels: KCCA,
) -> tuple[Entry, ...]:
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
    # Menon et al. also try one unlabelled pair for each given one, which is never as good.
    pairwise: Choices = strengths | {"ratio": [5, 10]}
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


def _menon(table: str, dataset: str, *, same_features: bool) -> dict[str, Reference]:
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


_COSTA_PEREIRA = {
    "KCCA": Reference("004", "Table IX", "Wikipedia", "CM", same_features=False),
    "SCM on KCCA": Reference("004", "Table IX", "Wikipedia", "SCM", same_features=False),
}


def _wikipedia(name: str, title: str, scalings: Sequence[tuple[str, str]]) -> Task:
    return Task(
        name=name,
        title=f"Wikipedia, 2,173 training and 693 test pairs, SIFT histograms and LDA topics, {title}",
        dataset="wikipedia",
        entries=_entries(
            scalings,
            range(1, 10),
            (3, 5, 7, 9),
            _menon("Table 1", "Wikipedia", same_features=True) | _COSTA_PEREIRA,
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
    entries=_entries(
        _ENCODED_SCALINGS,
        _ENCODED_COMPONENTS,
        _ENCODED_COMPONENTS,
        _menon("Table 2", "Pascal", same_features=False),
        KCCA(solver="nystrom", rank=300),
    ),
)

SCENES = Task(
    name="scenes",
    title="Generated scenes, 600 training and 300 test pictures, colour and edge histograms and TF-IDF topics",
    dataset="scenes",
    options={"n_train": 600, "n_test": 300, "size": 64, "captions": "join"},
    entries=_entries(_ENCODED_SCALINGS, _ENCODED_COMPONENTS, _ENCODED_COMPONENTS, {}, KCCA(solver="nystrom", rank=200)),
)

_TASKS = {task.name: task for task in (WIKIPEDIA, WIKIPEDIA_PLAIN, PASCAL, SCENES)}


def task_names() -> tuple[str, ...]:
    """Return the names of all benchmarks.

    >>> from diptych.benchmark import task_names
    >>> task_names()
    ('wikipedia', 'wikipedia-plain', 'pascal', 'scenes')
    """
    return tuple(_TASKS)


def find_task(name: str) -> Task:
    """Return the benchmark called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark import find_task
    >>> find_task("wikipedia").protocol
    HoldOut(repeats=5, share=0.25, seed=0)
    """
    if name not in _TASKS:
        raise UnknownNameError("benchmark", name, _TASKS)
    return _TASKS[name]
