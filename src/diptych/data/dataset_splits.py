"""A loaded data set: its parts, and what else came with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from diptych.data.pairs import Pairs
from diptych.errors import UnknownNameError


@dataclass(frozen=True)
class DatasetSplits:
    """The parts of one data set, as :func:`diptych.data.load_dataset` returns them.

    ``dev`` is None where the data set has no development part. ``name`` and ``options`` say how the parts were made,
    defaults included. ``extras`` holds loaders of further material, such as human judgements, which are read only
    when :meth:`extra` asks for them.

    >>> from diptych.data import load_dataset
    >>> splits = load_dataset("scenes", n_train=8, n_test=4, size=32)
    >>> splits.train.n_images, splits.test.n_images, splits.dev, splits.options["seed"]
    (8, 4, None, 0)
    """

    train: Pairs
    test: Pairs
    dev: Pairs | None = None
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)

    def extra(self, name: str) -> Any:
        """Load one of the extras, for example ``splits.extra("expert_judgements")`` of Flickr8k."""
        if name not in self.extras:
            raise UnknownNameError(f"extra of {self.name or 'this data set'}", name, self.extras)
        return self.extras[name]()

    @property
    def parts(self) -> dict[str, Pairs]:
        """The parts that exist, by name: train, test and perhaps dev."""
        parts = {"train": self.train, "test": self.test}
        return parts if self.dev is None else {**parts, "dev": self.dev}

    def describe(self) -> str:
        """Return one line per part."""
        return "\n".join(f"{part}: {pairs.describe()}" for part, pairs in self.parts.items())
