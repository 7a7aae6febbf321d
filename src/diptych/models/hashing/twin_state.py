"""Where the training of two networks stands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.checkpoint_file import CheckpointFile
from diptych.models.neural.layers import Layers
from diptych.models.ranking.adam import Adam


@dataclass
class TwinState:
    """Everything that the next epoch depends on: networks, moments, draws, and how the held-out rows fared.

    ``best`` are the networks with the highest ``best_score`` on held-out rows, the present ones where there is none;
    ``waited`` counts the looks since then.
    """

    networks: list[Layers]
    adam: Adam
    rng: np.random.Generator
    best: list[Layers]
    best_score: float = -1.0
    waited: int = 0
    losses: list[float] = field(default_factory=list)

    def looked(self, score: float) -> None:
        """Take note of how the present networks do on the held-out rows."""
        self.waited = 0 if score > self.best_score else self.waited + 1
        if score >= self.best_score:
            self.best, self.best_score = [[array.copy() for array in layers] for layers in self.networks], score

    def save(self, file: CheckpointFile) -> None:
        """Write the state to a file."""
        arrays = {f"adam.{name}": values for name, values in self.adam.state().items()}
        arrays |= _named("now", self.networks) | _named("best", self.best)
        facts = {"best_score": self.best_score, "waited": self.waited, "losses": self.losses}
        file.write(arrays, {**facts, "draws": self.rng.bit_generator.state})

    def take_up(self, file: CheckpointFile) -> None:
        """Go on from what a file holds; from the start where there is none."""
        found = file.read()
        if found is None:
            return
        arrays, facts = found
        self.adam.restore({name.removeprefix("adam."): arrays[name] for name in arrays if name.startswith("adam.")})
        for number, layers in enumerate(self.networks):
            for place, array in enumerate(layers):
                array[...] = arrays[f"now.{number}.{place}"]
        self.best_score, self.waited, self.losses = facts["best_score"], facts["waited"], facts["losses"]
        if self.best_score >= 0:
            self.best = [
                [arrays[f"best.{number}.{place}"] for place in range(len(layers))]
                for number, layers in enumerate(self.networks)
            ]
        self.rng.bit_generator.state = facts["draws"]


def _named(part: str, networks: list[Layers]) -> dict[str, AnyArray]:
    return {
        f"{part}.{number}.{place}": array
        for number, layers in enumerate(networks)
        for place, array in enumerate(layers)
    }
