"""Small problems that every model can be fitted on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from diptych.models import (
    CCA,
    KCCA,
    PLS,
    SCM,
    CrossModalModel,
    DeepSM,
    FusedModel,
    MarginalSCM,
    Preprocessed,
    QueryBankNormalized,
    model_classes,
)


@dataclass(frozen=True)
class Problem:
    images: np.ndarray
    texts: np.ndarray
    labels: np.ndarray
    _fitted: dict[str, CrossModalModel] = field(default_factory=dict, repr=False)

    def fit(self, model: CrossModalModel, rows: slice = slice(None)) -> CrossModalModel:
        return clone(model).fit(self.images[rows], self.texts[rows], self.labels[rows])

    def fitted(self, model: CrossModalModel) -> CrossModalModel:
        """Return such a model fitted on all rows: the same one in every test of the session, so leave it as it is."""
        key = f"{type(model).__name__}{model.get_params()}"
        if key not in self._fitted:
            self._fitted[key] = self.fit(model)
        return self._fitted[key]

    @property
    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Both sides with names of their columns."""
        return pd.DataFrame(self.images, columns=list("abcdefgh")), pd.DataFrame(self.texts, columns=list("vwxyz"))

    @property
    def several_labels(self) -> sparse.csr_array:
        """A sparse indicator of three classes, where birds are of two."""
        several = np.stack([self.labels == "art", self.labels != "cars", self.labels == "cars"], axis=1)
        return sparse.csr_array(several.astype(int))

    def fitted_on_tables(self, model: CrossModalModel) -> CrossModalModel:
        """Return such a model fitted on tables with several labels: the same one in every test of the session."""
        key = f"tables {type(model).__name__}{model.get_params()}"
        if key not in self._fitted:
            self._fitted[key] = clone(model).fit(*self.tables, self.several_labels)
        return self._fitted[key]


def make_problem(n: int = 90, image_width: int = 8, text_width: int = 5, seed: int = 0) -> Problem:
    """Non-negative rows that sum to one, with classes and pairs to learn from; every kernel accepts them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    topics = rng.dirichlet(np.ones(text_width) * 0.3, size=3)[labels] + 0.2 * rng.dirichlet(np.ones(text_width), size=n)
    words = rng.dirichlet(np.ones(image_width), size=text_width)
    images = topics @ words + 0.05 * rng.dirichlet(np.ones(image_width), size=n)
    return Problem(
        images / images.sum(axis=1, keepdims=True),
        topics / topics.sum(axis=1, keepdims=True),
        np.array(["art", "birds", "cars"])[labels],
    )


def example_models() -> list[CrossModalModel]:
    """Every public method with its defaults, and the combinations whose files and parameters nest.

    A network learns so small a problem in a quarter of the epochs that photographs take.
    """
    nested = [
        SCM(correlation=KCCA(n_components=2)),
        MarginalSCM(correlation=CCA(n_components=2), loss="ovr"),
        KCCA(solver="cholesky", rank=20),
        KCCA(solver="nystrom", rank=20, image_kernel="rbf", text_kernel="linear"),
        FusedModel(parts=(CCA(n_components=2), PLS(n_components=2))),
        QueryBankNormalized(model=CCA(n_components=2)),
        Preprocessed(model=SCM(), images="hellinger", texts="l2", standardize=True, image_components=4),
    ]
    fewer = {
        "DCMH": {"epochs": 25},
        "DeepSM": {"epochs": 15},
        "DeepTS": {"classifier": DeepSM(epochs=15)},
        "LDSP": {"epochs": 10},
        "MMNN": {"epochs": 25},
    }
    return [cls(**fewer.get(cls.__name__, {})) for cls in model_classes().values()] + nested


@pytest.fixture(scope="session")
def problem() -> Problem:
    return make_problem()


@pytest.fixture(params=example_models(), ids=lambda model: " ".join(repr(model).split()))
def model(request) -> CrossModalModel:
    return clone(request.param)


@pytest.fixture
def views() -> tuple[np.ndarray, np.ndarray]:
    """Pictures and texts that share three dimensions of meaning, far from the origin."""
    rng = np.random.default_rng(3)
    meaning = rng.normal(size=(300, 3))
    images = meaning @ rng.normal(size=(3, 9)) + rng.normal(size=(300, 9)) + 5
    texts = meaning @ rng.normal(size=(3, 6)) + rng.normal(size=(300, 6)) - 2
    return images, texts
