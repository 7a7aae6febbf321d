"""A method as the benchmark sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from diptych.arrays import FloatArray
from diptych.benchmark.web.web_data import WebData


class WebScorer(ABC):
    """Learns from the data and scores queries against the pictures of a part; larger is better."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What tells this scorer from another one of its kind, as plain values."""

    @abstractmethod
    def fit(self, data: WebData, feature: str) -> Self:
        """Learn from the training part, with one kind of image features."""

    @abstractmethod
    def scores(self, queries: Sequence[str], part: str) -> FloatArray:
        """Return (queries, pictures of the part) scores."""
