"""A small log whose pictures and words belong to five things."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.base import clone

from diptych.data.clicks import ClickLog
from diptych.encoders import WordVectors
from diptych.models.clicks import ClickModel

THINGS = ("boat", "cat", "dog", "tree", "house")
COLOURS = ("red", "blue", "black", "green")
PLACES = ("sea", "garden", "street", "hill", "beach", "winter")
WIDTH = 12


@dataclass(frozen=True)
class ClickProblem:
    log: ClickLog
    images: np.ndarray
    vectors: str
    asked: np.ndarray
    """Features of pictures that are not in the log, twenty of each thing in order."""
    _fitted: dict[str, ClickModel] = field(default_factory=dict, repr=False)

    def fitted(self, model: ClickModel) -> ClickModel:
        """Return such a model fitted on the log: the same one in every test of the session, so leave it as it is."""
        key = f"{type(model).__name__}{model.get_params()}"
        if key not in self._fitted:
            self._fitted[key] = clone(model).fit_clicks(self.log, self.images)
        return self._fitted[key]


def make_log(n_triads: int, n_images: int, seed: int = 0) -> ClickLog:
    """Picture i shows thing i mod 5 and is clicked for queries that name it, among other words, in any order."""
    rng = np.random.default_rng(seed)
    queries, images = [], []
    for _ in range(n_triads):
        image = int(rng.integers(n_images))
        words = [THINGS[image % len(THINGS)]]
        words += [str(word) for word in rng.choice(COLOURS + PLACES, size=rng.integers(0, 3), replace=False)]
        queries.append(" ".join(rng.permutation(words)))
        images.append(f"{image}.jpg")
    # Corrected clicks are fractions.
    return ClickLog.from_triads(queries, images, rng.choice([0.4, 1, 2, 3.5, 9], size=n_triads))


def pictures(things: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (2 * np.eye(WIDTH)[things] + 0.5 * rng.normal(size=(len(things), WIDTH)) + 0.3).astype(np.float32)


@pytest.fixture(scope="session")
def clicked(tmp_path_factory) -> ClickProblem:
    log = make_log(300, 40)
    rng = np.random.default_rng(1)
    things = np.array([int(name.removesuffix(".jpg")) % len(THINGS) for name in log.images])
    words = (*THINGS, "ship", *COLOURS, *PLACES)
    table = rng.normal(size=(len(words), 24))
    table[len(THINGS)] = table[0] + 0.1 * rng.normal(size=24)
    path = tmp_path_factory.mktemp("words") / "words.npz"
    vectors = WordVectors(words, table)
    np.savez(path, words=np.array(vectors.words), vectors=vectors.vectors)
    return ClickProblem(log, pictures(things, rng), str(path), pictures(np.repeat(np.arange(5), 20), rng))
