"""Multi-network joint learning: pixels and words to one space, trained together."""

from diptych.models.neural.mnil.mnil import MNiL

__all__ = ["MNiL"]
