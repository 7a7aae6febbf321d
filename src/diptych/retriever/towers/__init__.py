"""Fitted models as encoders: one side of a model that takes pictures, queries or texts themselves."""

from diptych.retriever.towers.image_tower import ImageTower
from diptych.retriever.towers.text_tower import TextTower

__all__ = ["ImageTower", "TextTower"]
