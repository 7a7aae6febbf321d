"""Diptych: search pictures with words and words with pictures, in one learned space."""

from diptych.space import DIRECTIONS, Direction, IndexForm, Space

__version__ = "0.1.0"

__all__ = ["DIRECTIONS", "Direction", "IndexForm", "Space", "__version__"]
