"""The methods of a task, built in or from a file of one's own, each with few settings to choose from.

What is tuned stands on the classes. A method with a single setting is not tuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from diptych.benchmark.task import Features, Method
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.models import KCCA, SCM, CrossModalModel, Preprocessed, model_classes
from diptych.models.base import FromTask
from diptych.models.hashing.hashing_model import HashingModel

BITS = (8, 16, 32)
"""The code lengths of Liu et al."""
# The first rows of every table; methods that are not named here follow by name.
_LINEAR_IN_PAIRS = ("random", "linear-regression", "cfa", "cca", "pls", "blm")
_RANKING_IN_PAIRS = ("contrastive-projection", "warp", "bi-cmsrm", "ldsp")
_PAIRWISE = ("cmml", "one-class-svm", "logistic-concatenation", "logistic-cross-product", "bipartite-cross-product")
_SEMANTIC = ("sm", "scm", "pairwise-sm", "marginal-sm", "marginal-scm", "ts")
_DISCRIMINANT = ("gmlda", "gmmfa", "cca-3v", "lcfs", "ml-cca", "cluster-cca", "lgcfl")
_LINEAR_WITH_LABELS = ("gmlda", "cca-3v", "lcfs", "ml-cca", "lgcfl")
_TABLE_ORDER = (*_LINEAR_IN_PAIRS, *_PAIRWISE, "kcca", *_SEMANTIC, *_DISCRIMINANT)
_FAMILIES = {"neural": "deep", "unlearned": "baseline"}


@dataclass(frozen=True)
class Plugin:
    """A Python file with methods; its text travels to the workers, so that they need not have the file."""

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


def all_methods(features: Features, n_components: Sequence[int], kernel_rank: int) -> tuple[Method, ...]:
    """Return every method of Diptych: real-valued ones, the neural ones, and hashing with 8, 16 and 32 bits.

    ``n_components`` are the dimensions of a subspace to try, the first of them the number of training classes as in
    Liu et al.; ``kernel_rank`` the number of landmarks of kernel methods.
    """
    classes = model_classes()
    listed: list[Method] = []
    for name in dict.fromkeys([*_TABLE_ORDER, *classes]):
        if classes[name] is KCCA:
            listed += _kernels(n_components, kernel_rank)
        elif classes[name].benchmarked:
            listed += method_entries(features, classes[name], n_components)
    return tuple(listed)


def pair_methods(features: Features, n_components: Sequence[int]) -> tuple[Method, ...]:
    """Return the methods that learn from many pairs without labels, in time linear in the pairs."""
    classes = model_classes()
    hashing = [name for name, cls in classes.items() if issubclass(cls, HashingModel) and "labels" not in cls.needs]
    names = (*_LINEAR_IN_PAIRS, *_RANKING_IN_PAIRS, *hashing)
    return tuple(entry for name in names for entry in method_entries(features, classes[name], n_components))


def label_methods(features: Features, n_components: Sequence[int]) -> tuple[Method, ...]:
    """Return real-valued methods that learn from many pairs with several labels each, in time linear in the pairs."""
    names = (*_LINEAR_IN_PAIRS, *_RANKING_IN_PAIRS, "pl-ranking", "sm", "scm", "deep-sm", *_LINEAR_WITH_LABELS)
    classes = model_classes()
    return tuple(entry for name in names for entry in method_entries(features, classes[name], n_components))


def plugin_methods(features: Features, plugins: Iterable[Plugin]) -> tuple[Method, ...]:
    """Return the methods of plugins, behind the same scaling as all others."""
    classes = [cls for plugin in plugins for cls in plugin.classes()]
    return tuple(entry for cls in classes for entry in method_entries(features, cls, (), group="plugin"))


def method_entries(
    features: Features, cls: type[CrossModalModel], n_components: Sequence[int], group: str = ""
) -> list[Method]:
    """Return an entry for every variant of a class, and for every code length of a hashing method."""
    rows: Mapping[str, Mapping[str, Any]] = cls.variants or {cls.title: {}}
    if issubclass(cls, HashingModel):
        rows = {
            f"{title}, {bits} bits": {**parameters, "n_bits": bits}
            for title, parameters in rows.items()
            for bits in BITS
        }
    images, texts = features.scaling
    return [
        Method(
            title,
            Preprocessed(model=clone(cls().set_params(**parameters)), images=images, texts=texts),
            _grid(cls, n_components),
            group=group or _family(cls),
        )
        for title, parameters in rows.items()
    ]


def _grid(cls: type[CrossModalModel], n_components: Sequence[int]) -> list[dict[str, list[Any]]]:
    """Return the grid of a class behind the scaling, without what the task has no values for."""
    from_task = {FromTask.COMPONENTS: n_components, FromTask.CLASSES: n_components[:1]}
    parts = [cls.grid] if isinstance(cls.grid, Mapping) else cls.grid
    filled = [
        {name: from_task[values] if isinstance(values, FromTask) else values for name, values in part.items()}
        for part in parts
    ]
    return [{f"model__{name}": list(values) for name, values in part.items() if len(values)} for part in filled]


def _family(cls: type[CrossModalModel]) -> str:
    folder = cls.__module__.removeprefix("diptych.models.").partition(".")[0]
    return _FAMILIES.get(folder, folder)


def _kernels(n_components: Sequence[int], rank: int) -> list[Method]:
    # The rank depends on the task, and kernels see the features as they are.
    kernels = KCCA(solver="nystrom", rank=rank)
    subspace: Mapping[str, Sequence[Any]] = {
        "correlation__n_components": [n_components[-1]],
        "correlation__kappa": [0.9],
        "C": [1.0, 100.0],
    }
    return [
        Method("KCCA", kernels, [{"n_components": [n_components[-1]], "kappa": [0.5, 0.9]}], group=_family(KCCA)),
        Method("SCM on KCCA", SCM(correlation=kernels), [subspace], group=_family(SCM)),
    ]
