"""What every encoder shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from diptych.arrays import FloatArray


class Encoder(BaseEstimator, ABC):
    """Turns raw items, pictures or words, into the rows of a feature matrix.

    Encoders follow the manners of scikit-learn: parameters are keyword-only and merely stored, what :meth:`fit` learns
    ends in an underscore, and ``sklearn.base.clone`` gives an unfitted copy. An item is encoded alone as it is
    encoded among others.
    """

    speed_parameters: ClassVar[tuple[str, ...]] = ()
    """Parameters that change how fast the features come, but not the features."""

    @property
    def identity(self) -> str:
        """The class and every parameter that shapes the features; equal identities give equal features.

        >>> from diptych.encoders import TfidfTopics
        >>> TfidfTopics(n_components=50).identity
        "TfidfTopics(min_documents=2, n_components=50, stop_words='english')"
        """
        shaping = {key: value for key, value in self.get_params().items() if key not in self.speed_parameters}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in sorted(shaping.items()))})"

    @abstractmethod
    def fit(self, items: Sequence[Any]) -> Self:
        """Learn from training items; encoders without anything to learn only check the parameters."""

    @abstractmethod
    def transform(self, items: Sequence[Any]) -> FloatArray:
        """Return one row of features per item."""

    def fit_transform(self, items: Sequence[Any]) -> FloatArray:
        """Learn from the items and encode them."""
        return self.fit(items).transform(items)
