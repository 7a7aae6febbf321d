"""Learning a retriever from what a collection says of its own pictures."""

from diptych.collection.learning.training import Training
from diptych.collection.learning.training_pairs import training_pairs

__all__ = ["Training", "training_pairs"]
