"""Checkpoints of the several trainings that one fit needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sklearn.base import clone

from diptych.models import CrossModalModel

_Model = TypeVar("_Model", bound=CrossModalModel)


@contextmanager
def own_checkpoint(model: _Model, part: str) -> Iterator[_Model]:
    """Give an unfitted copy of ``model`` whose checkpoints, while it is fitted, lie in the folder ``part`` of its own.

    A retriever learns from most pairs to compare and then from all: two trainings, neither of which may take up the
    other's state.

    >>> from diptych.models import LDSP
    >>> from diptych.retriever.checkpoints import own_checkpoint
    >>> with own_checkpoint(LDSP(checkpoint="kept"), "trial") as model:
    ...     during = model.checkpoint
    >>> during, model.checkpoint
    ('kept/trial', 'kept')
    """
    copied: _Model = clone(model)
    kept = {name: value for name, value in copied.get_params().items() if _names_checkpoint(name) and value is not None}
    copied.set_params(**{name: (Path(value) / part).as_posix() for name, value in kept.items()})
    yield copied
    copied.set_params(**kept)


def _names_checkpoint(parameter: str) -> bool:
    return parameter.rpartition("__")[2] == "checkpoint"
