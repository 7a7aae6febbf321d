"""A method of the comparison, declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from diptych.benchmark.neural.neural_data import Reads
from diptych.models import CrossModalModel, Preprocessed
from diptych.models.preprocessed import RowScaling


@dataclass(frozen=True)
class NeuralMethod:
    """A method, what it reads, and under which name Zhang et al. (2017) print it.

    ``key`` is what people type, ``name`` what tables show; ``published`` is empty where the paper prints nothing.

    >>> from diptych.benchmark.neural import NeuralMethod
    >>> from diptych.models import CCA, LDSP
    >>> NeuralMethod("cca", "CCA", CCA()).has_seed, NeuralMethod("ldsp", "LDSP", LDSP()).has_seed
    (False, True)
    """

    key: str
    name: str
    model: CrossModalModel
    reads: Reads = "features"
    published: str = ""

    @property
    def has_seed(self) -> bool:
        """Whether a second seed gives a second result."""
        return "seed" in self.model.get_params(deep=False)

    @property
    def needs_labels(self) -> bool:
        """Whether it cannot learn from pairs alone."""
        return "labels" in self.model.needs

    def build(
        self, images: RowScaling, texts: RowScaling, *, seed: int = 0, epochs: int | None = None
    ) -> CrossModalModel:
        """Return the unfitted model; features are scaled in front of it, ``epochs`` replaces its own number."""
        known = self.model.get_params(deep=False)
        given: dict[str, Any] = {"seed": seed, "epochs": epochs}
        settings = {name: value for name, value in given.items() if name in known and value is not None}
        model: CrossModalModel = clone(self.model).set_params(**settings)
        return Preprocessed(model=model, images=images, texts=texts) if self.reads == "features" else model
