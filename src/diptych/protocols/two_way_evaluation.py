"""Both directions of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.metrics import Evaluation, Measure
from diptych.space import Direction


@dataclass(frozen=True)
class TwoWayEvaluation:
    """The same measures for image queries (searching texts) and text queries (searching images)."""

    image_query: Evaluation
    text_query: Evaluation

    def __getitem__(self, direction: Direction) -> Evaluation:
        return self.image_query if direction == "image_query" else self.text_query

    def average(self, measure: Measure) -> float:
        """Return the mean of the two directions, which is what tables print as "average"."""
        return (self.image_query.mean[measure] + self.text_query.mean[measure]) / 2

    def chance(self, measure: Measure) -> float:
        """Return the exact chance level of the average."""
        return (self.image_query.chance[measure] + self.text_query.chance[measure]) / 2
