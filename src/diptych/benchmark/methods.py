"""The methods of a task, from the registry or from a file of one's own, each with few settings to choose from.

What is tuned stands on the classes. A method with a single setting is not tuned.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import AnyArray
from diptych.benchmark.task import Features, Method, name_of_title
from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError
from diptych.estimators import clone, parameter_types
from diptych.models import KCCA, SCM, CrossModalModel, Preprocessed, method_name, model_classes
from diptych.models.base import FromTask, Inputs, Need
from diptych.models.clicks.click_model import ClickModel
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.item_model import ItemModel
from diptych.models.registry import build_model, find_model
from diptych.space import Space

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
# Chosen on the development photos of Flickr8k, as bench/flickr8k_features.py does.
MNIL_ON_FEATURES: Mapping[str, Any] = {
    "image_tower": "features",
    "image_hidden": 2048,
    "text_tower": "minilm",
    "max_words": 32,
    "n_components": 1024,
    "hidden_size": 1024,
    "dropout": 0.7,
    "margin": 0.1,
    "learning_rate": 3e-4,
    "map_factor": 1.0,
    "batch_size": 512,
}


@dataclass(kw_only=True, eq=False, repr=False)
class CaptionClicks(CrossModalModel):
    """A click model that learns from pairs: every text is a query, clicked once on its picture.

    With it the models of click logs take part where there is no log. Pictures are features, texts are strings.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs"})
    inputs: ClassVar[Inputs] = "items"
    when_to_use: ClassVar[str] = "To compare click models with others on pairs."
    is_method: ClassVar[bool] = False

    model: ClickModel

    @property
    def space(self) -> Space:
        """The space of the click model."""
        return self.model.space

    def fit(self, images: Any, texts: Any, labels: Any = None) -> CaptionClicks:
        """Learn from one click for each pair."""
        rows = [str(row) for row in range(len(texts))]
        log = ClickLog.from_triads([str(text) for text in texts], rows, np.ones(len(rows)))
        self.model_ = clone(self.model).fit_clicks(log, images)
        self.n_pairs_ = len(rows)
        return self

    def encode_images(self, images: Any) -> AnyArray:
        """Return the points of pictures, given their features."""
        return self.model_.encode_images(images)

    def encode_texts(self, texts: Any) -> AnyArray:
        """Return the points of strings."""
        return self.model_.encode_texts([str(text) for text in texts])


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
        # Dataclasses look up the module of their annotations.
        sys.modules[module.__name__] = module
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
            listed += methods_of(features, classes[name], n_components)
    return tuple(listed)


def pair_methods(features: Features, n_components: Sequence[int]) -> tuple[Method, ...]:
    """Return the methods that learn from many pairs without labels, in time linear in the pairs."""
    classes = model_classes()
    hashing = [name for name, cls in classes.items() if issubclass(cls, HashingModel) and "labels" not in cls.needs]
    names = (*_LINEAR_IN_PAIRS, *_RANKING_IN_PAIRS, *hashing)
    return tuple(method for name in names for method in methods_of(features, classes[name], n_components))


def label_methods(features: Features, n_components: Sequence[int]) -> tuple[Method, ...]:
    """Return real-valued methods that learn from many pairs with several labels each, in time linear in the pairs."""
    names = (*_LINEAR_IN_PAIRS, *_RANKING_IN_PAIRS, "pl-ranking", "sm", "scm", "deep-sm", *_LINEAR_WITH_LABELS)
    classes = model_classes()
    return tuple(method for name in names for method in methods_of(features, classes[name], n_components))


def word_methods() -> tuple[Method, ...]:
    """Return the methods that read strings beside features of pictures: MNiL, and click models that have points."""
    clicks = [name for name, cls in model_classes("clicks").items() if issubclass(cls, ClickModel) and cls.is_indexable]
    return tuple(method_of_class(name, Features("")) for name in ("mnil", *clicks))


ANY_INPUTS: tuple[Inputs, ...] = ("features", "items", "clicks")


def method_of_class(
    name: str,
    features: Features,
    parameters: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    further: Mapping[str, type[CrossModalModel]] | None = None,
) -> Method:
    """Return any method by its name, ready for pairs: behind scaling, reading words, or learning clicks from captions.

    ``further`` are methods that are not in the package, by name.
    """
    given = dict(parameters or {})
    cls = find_model(name, among=ANY_INPUTS, further=further)
    if cls.inputs == "items" and "image_tower" in parameter_types(cls) and "image_tower" not in given:
        given = {**MNIL_ON_FEATURES, **given}
    model = build_model(name, given, seed=seed, among=ANY_INPUTS, further=further)
    title, group = cls.title or cls.__name__, family_of(cls)
    if isinstance(model, ClickModel):
        return Method(method_name(cls), title, CaptionClicks(model=model), group="clicks", reads="words")
    if model.inputs == "items":
        takes_pictures = isinstance(model, ItemModel) and model.takes_pictures
        return Method(method_name(cls), title, model, group=group, reads="items" if takes_pictures else "words")
    images, texts = features.scaling
    return Method(method_name(cls), title, Preprocessed(model=model, images=images, texts=texts), group=group)


def plugin_classes(plugins: Iterable[Plugin]) -> dict[str, type[CrossModalModel]]:
    """Return the methods of plugins by name."""
    return {method_name(cls): cls for plugin in plugins for cls in plugin.classes()}


def plugin_methods(features: Features, plugins: Iterable[Plugin]) -> tuple[Method, ...]:
    """Return the methods of plugins, behind the same scaling as all others."""
    methods: list[Method] = []
    for name, cls in plugin_classes(plugins).items():
        if cls.inputs == "features":
            methods += methods_of(features, cls, (), group="plugin")
        else:
            methods.append(replace(method_of_class(name, features, further={name: cls}), group="plugin"))
    return tuple(methods)


def methods_of(
    features: Features, cls: type[CrossModalModel], n_components: Sequence[int], group: str = ""
) -> list[Method]:
    """Return a method for every variant of a class, and for every code length of a hashing method."""
    images, texts = features.scaling
    found = []
    for title, parameters in (cls.variants or {cls.title: {}}).items():
        for bits in BITS if issubclass(cls, HashingModel) else (None,):
            given = parameters if bits is None else {**parameters, "n_bits": bits}
            model = Preprocessed(model=clone(cls().set_params(**given)), images=images, texts=texts)
            name = _name(cls, title, parameters)
            found.append(
                Method(
                    name if bits is None else f"{name}-{bits}",
                    title if bits is None else f"{title}, {bits} bits",
                    model,
                    _grid(cls, n_components),
                    group or family_of(cls),
                )
            )
    return found


def _name(cls: type[CrossModalModel], title: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of a variant: that of its class, with the last word of its title where there are others."""
    is_plain = title == cls.title or not parameters or len(cls.variants) < 2
    return method_name(cls) if is_plain else f"{method_name(cls)}-{name_of_title(title.rpartition(' ')[2])}"


def _grid(cls: type[CrossModalModel], n_components: Sequence[int]) -> list[dict[str, list[Any]]]:
    """Return the grid of a class behind the scaling, without what the task has no values for."""
    from_task = {FromTask.COMPONENTS: n_components, FromTask.CLASSES: n_components[:1]}
    parts = [cls.grid] if isinstance(cls.grid, Mapping) else cls.grid
    filled = [
        {name: from_task[values] if isinstance(values, FromTask) else values for name, values in part.items()}
        for part in parts
    ]
    return [{f"model__{name}": list(values) for name, values in part.items() if len(values)} for part in filled]


def family_of(cls: type[CrossModalModel]) -> str:
    """Return the heading that a class stands under: the folder of its module."""
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
    correlation: Mapping[str, Sequence[Any]] = {"n_components": [n_components[-1]], "kappa": [0.5, 0.9]}
    return [
        Method("kcca", "KCCA", kernels, [correlation], group=family_of(KCCA)),
        Method("scm-kcca", "SCM on KCCA", SCM(correlation=kernels), [subspace], group=family_of(SCM)),
    ]
