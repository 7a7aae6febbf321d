"""The methods of a task, built in or from a file of one's own, each with few settings to choose from.

Grids are small, because every setting is fitted on every hold-out of every fold. A method with a single setting is not
tuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from diptych.benchmark.features import Features
from diptych.benchmark.task import Entry
from diptych.errors import InvalidInputError
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
    ConSE,
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
    method_name,
    model_classes,
)
from diptych.models.hashing.hashing_model import HashingModel


@dataclass(frozen=True)
class Plugin:
    """A Python file with methods; its text travels to the workers, so that they need not have the file.

    >>> from diptych.benchmark.running import Plugin
    >>> text = '''
    ... import numpy as np
    ... from diptych.models import CrossModalModel
    ... class Sums(CrossModalModel):
    ...     "Compares the sums of the features."
    ...     def __init__(self, *, metric="euclidean"):
    ...         self.metric = metric
    ...     def _fit(self, images, texts, targets):
    ...         pass
    ...     def _encode_images(self, images):
    ...         return images.sum(axis=1, keepdims=True)
    ...     _encode_texts = _encode_images
    ... '''
    >>> [cls.__name__ for cls in Plugin("sums.py", text).classes()]
    ['Sums']
    """

    name: str
    text: str

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Plugin:
        """Read a file, whose code runs when its classes are asked for."""
        try:
            return cls(Path(path).name, Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInputError(f"the plugin {path} cannot be read ({problem}); name a Python file") from None

    def classes(self) -> list[type[CrossModalModel]]:
        """Run the file and return the methods that it defines, in its order."""
        module = ModuleType(f"diptych_plugin_{Path(self.name).stem}")
        try:
            exec(compile(self.text, self.name, "exec"), module.__dict__)
        except Exception as problem:
            raise InvalidInputError(f"the plugin {self.name} cannot be run: {problem!r}") from problem
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, CrossModalModel) and value.__module__ == module.__name__
        ]
        if not found:
            raise InvalidInputError(f"the plugin {self.name} defines no subclass of diptych.models.CrossModalModel")
        return found


def plugin_grid(cls: type[CrossModalModel]) -> Sequence[Mapping[str, Sequence[Any]]]:
    """Return the settings that the class declares in an attribute ``grid``, or the single setting it has."""
    grid = getattr(cls, "grid", {})
    return [grid] if isinstance(grid, Mapping) else list(grid)


BITS = (8, 16, 32)

"""The code lengths of Liu et al."""

Grid = Mapping[str, Sequence[Any]]

_GROUPS = {"neural": "deep", "random": "baseline"}
# ConSE speaks of labels that pictures were classified into, which features do not have.
_WITHOUT_FEATURES = (ConSE,)

_TITLES = {
    "bi-cmsrm": "Bi-CMSRM",
    "contrastive-projection": "contrastive projection",
    "deep-sm": "deep-SM",
    "deep-ts": "deep-TS",
    "mm-nn": "MM-NN",
    "pl-ranking": "PL-ranking-style",
    "scm-orth": "SCM-orth",
    "scm-seq": "SCM-seq",
    "seph-km": "SePH-km",
}
# What is tuned of methods that are found by themselves; a method without a line keeps its defaults.
_RIDGES: Grid = {"regularization": [0.1, 1.0, 10.0]}

_GRIDS: Mapping[str, Grid] = {
    "cmfh": {"mu": [1.0, 10.0]},
    "contrastive-projection": {"temperature": [0.05, 0.2]},
    "cvh": _RIDGES,
    "dch": {"projection_ridge": [0.001, 0.01, 0.1]},
    "dcmh": {"eta": [0.1, 1.0]},
    "deep-sm": {"dropout": [0.2, 0.5]},
    "dlfh": {"strength": [4.0, 8.0], "regularization": [0.1, 1.0]},
    "imh": {"regularization": [0.1, 1.0]},
    "lcmfh": {"mu": [0.1, 1.0]},
    "lssh": {"sparsity": [0.2, 0.4]},
    "mm-nn": {"margin": [0.7, 1.0]},
    "scm-orth": _RIDGES,
    "scm-seq": _RIDGES,
    "scratch": {"ridge": [0.5, 5.0]},
    "seph-km": {"regularization": [0.001, 0.01]},
}
# SCM-orth as published, with noise in the bits beyond its rank, and with what we put there.
_VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "scm-orth": {"SCM-orth": {"fill": "null"}, "SCM-orth mixed": {"fill": "mixtures"}}
}


def all_methods(features: Features, n_components: Sequence[int], kernel_rank: int) -> tuple[Entry, ...]:
    """Return every method of Diptych: real-valued ones, the neural ones, and hashing with 8, 16 and 32 bits.

    ``n_components`` are the dimensions of a subspace to try, the first of them the number of training classes as in
    Liu et al.; ``kernel_rank`` the number of landmarks of kernel methods.

    >>> from diptych.benchmark.running import Features
    >>> from diptych.benchmark.running.method_entries import all_methods
    >>> methods = {entry.key: entry for entry in all_methods(Features("any"), (5, 9), 200)}
    >>> methods["cvh-8"].n_bits, methods["cca"].group, methods["sm"].n_settings
    (8, 'correlation', 4)
    """
    listed = [
        *_scaled_entries(features, _simple(n_components)),
        *_kernels(n_components, kernel_rank),
        *_scaled_entries(features, _semantic(n_components)),
        *_scaled_entries(features, _discriminant(n_components)),
    ]
    known = {type(entry.method) for entry in listed}
    others = [cls for cls in model_classes().values() if cls not in known and cls not in _WITHOUT_FEATURES]
    for cls in others:
        listed += method_entries(features, cls, [_GRIDS.get(method_name(cls), {})])
    return tuple(listed)


def pair_methods(features: Features, n_components: Sequence[int]) -> tuple[Entry, ...]:
    """Return the methods that learn from many pairs without labels, in time linear in the pairs."""
    wanted = (Random, LinearRegression, CFA, CCA, PLS, BLM)
    listed = [entry for entry in _scaled_entries(features, _simple(n_components)) if isinstance(entry.method, wanted)]
    for cls in model_classes().values():
        if issubclass(cls, HashingModel) and "labels" not in cls.needs:
            listed += method_entries(features, cls, [_GRIDS.get(method_name(cls), {})])
    return tuple(listed)


def plugin_methods(features: Features, plugins: Iterable[Plugin]) -> tuple[Entry, ...]:
    """Return the methods of plugins, behind the same scaling as all others."""
    classes = [cls for plugin in plugins for cls in plugin.classes()]
    return tuple(entry for cls in classes for entry in method_entries(features, cls, plugin_grid(cls), group="plugin"))


def method_entries(
    features: Features, cls: type[CrossModalModel], grid: Sequence[Grid], group: str = ""
) -> list[Entry]:
    """Return the entry of one class, or one for each code length and variant of a hashing method."""
    name = method_name(cls)
    title = _TITLES.get(name, cls.__name__)
    if not issubclass(cls, HashingModel):
        return [_entry(features, title, cls(), grid, group)]
    return [
        _entry(features, f"{variant}, {bits} bits", cls().set_params(n_bits=bits, **parameters), grid, group)
        for variant, parameters in _VARIANTS.get(name, {title: {}}).items()
        for bits in BITS
    ]


def _entry(features: Features, title: str, model: CrossModalModel, grid: Sequence[Grid], group: str = "") -> Entry:
    images, texts = features.scaling
    behind = [{f"model__{name}": values for name, values in part.items()} for part in grid]
    scaled = Preprocessed(model=model, images=images, texts=texts)
    return Entry(title, scaled, behind, group=group or _group(type(model)))


def _group(cls: type[CrossModalModel]) -> str:
    room = cls.__module__.removeprefix("diptych.models.").partition(".")[0]
    return _GROUPS.get(room, room)


def _scaled_entries(features: Features, rows: Iterable[tuple[str, CrossModalModel, Grid]]) -> list[Entry]:
    return [_entry(features, title, model, [grid]) for title, model, grid in rows]


def _simple(n_components: Sequence[int]) -> list[tuple[str, CrossModalModel, Grid]]:
    components: Grid = {"n_components": list(n_components)}
    return [
        ("random", Random(), {}),
        ("linear regression", LinearRegression(), {"regularization": [1e-3, 0.1, 1.0]}),
        ("CFA", CFA(), components),
        ("CCA", CCA(weight_power=0.0), {**components, "regularization": [0.1, 1.0]}),
        ("PLS", PLS(), components),
        ("BLM", BLM(), {**components, "alpha": [1.0, 10.0]}),
        ("CMML", CMML(metric="cosine"), {"regularization": [0.03, 0.1]}),
        ("OC-SVM concatenation", OneClassSVM(features="concat"), {"nu": [0.0625, 0.5]}),
        ("OC-SVM cross-product", OneClassSVM(), {"nu": [0.0625, 0.5]}),
        ("logistic concatenation", LogisticConcatenation(ratio=1), {"C": [1e-3, 10.0]}),
        ("logistic cross-product", LogisticCrossProduct(ratio=5), {"C": [0.1, 10.0]}),
        ("bipartite cross-product", BipartiteCrossProduct(ratio=5), {"C": [0.1, 10.0]}),
    ]


def _kernels(n_components: Sequence[int], rank: int) -> list[Entry]:
    kernels = KCCA(solver="nystrom", rank=rank)
    subspace: Grid = {"correlation__n_components": [n_components[-1]], "correlation__kappa": [0.9], "C": [1.0, 100.0]}
    return [
        Entry("KCCA", kernels, [{"n_components": [n_components[-1]], "kappa": [0.5, 0.9]}], group="correlation"),
        Entry("SCM on KCCA", SCM(correlation=kernels), [subspace], group="semantic"),
    ]


def _semantic(n_components: Sequence[int]) -> list[tuple[str, CrossModalModel, Grid]]:
    cca = CCA(weight_power=0.0, regularization=0.1)
    # TS chooses among the same values as SM, as it must to be compared with it.
    strengths = [0.1, 1.0, 10.0, 100.0]
    subspace: Grid = {"correlation__n_components": list(n_components), "C": [1.0, 10.0]}
    return [
        ("SM", SM(), {"C": strengths}),
        ("SCM", SCM(correlation=cca), subspace),
        ("pairwise SM", PairwiseSM(ratio=5), {"C": [0.1, 10.0]}),
        ("marginal SM", MarginalSM(), {"C": strengths}),
        ("marginal SCM", MarginalSCM(correlation=cca), subspace),
        ("TS", TS(classifier=MarginalSM()), {"classifier__C": strengths}),
    ]


def _discriminant(n_components: Sequence[int]) -> list[tuple[str, CrossModalModel, Grid]]:
    # There are no more discriminant directions than classes, which is the first number.
    few: Grid = {"n_components": [n_components[0]]}
    components: Grid = {"n_components": list(n_components)}
    ridges: Grid = {"regularization": [0.1, 1.0]}
    sparsities: Grid = {"sparsity": [0.1, 1.0, 10.0]}
    return [
        ("GMLDA", GMLDA(), {**few, **ridges, "alpha": [1.0, 25.0]}),
        ("GMMFA", GMMFA(), {**few, "regularization": [0.1], "alpha": [1.0, 25.0]}),
        ("CCA-3V", CCA3V(), {**components, **ridges}),
        ("LCFS", LCFS(), sparsities),
        ("ml-CCA", MLCCA(), {**components, **ridges}),
        ("cluster-CCA", ClusterCCA(), {**components, **ridges}),
        ("LGCFL, unofficial", LGCFL(), sparsities),
    ]
