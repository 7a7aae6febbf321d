"""What learning from clicks found."""

from __future__ import annotations

from dataclasses import dataclass, field

from diptych.arrays import FloatArray
from diptych.collection.learning.learning_record import LearningRecord
from diptych.collection.learning.position_model import PositionModel
from diptych.retriever import Retriever


@dataclass(frozen=True, eq=False)
class LearningReport:
    """The comparison on held-out queries, and the retriever that won it.

    ``retriever`` is None where the present one stays; ``record`` says why, and is what the history keeps. ``positions``
    is None for clicks without positions. ``held_out`` are the queries of the comparison, with the values ``old`` and
    ``new`` of each. ``notes`` are what the person who asked should know.
    """

    record: LearningRecord
    retriever: Retriever | None = None
    positions: PositionModel | None = None
    held_out: tuple[str, ...] = ()
    old: FloatArray | None = None
    new: FloatArray | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_better(self) -> bool:
        """Whether the learned retriever won."""
        return self.retriever is not None
