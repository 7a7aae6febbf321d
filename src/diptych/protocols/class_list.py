"""The classes of pairs, by name."""

from __future__ import annotations

import numpy as np

from diptych.data import Pairs
from diptych.errors import InvalidInputError


def class_list(pairs: Pairs) -> tuple[str, ...]:
    """Return the names of the classes that occur, in the order of tables.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols.class_list import class_list
    >>> class_list(Pairs(np.eye(3), np.eye(3), labels=[2, 0, 2], class_names=["cat", "dog", "emu"]))
    ('cat', 'emu')
    """
    if pairs.labels is None:
        raise InvalidInputError("these pairs have no labels, so they have no classes to divide")
    if pairs.is_multi_label:
        occurs = np.flatnonzero(pairs.labels.any(axis=0))
        return tuple(pairs.class_names[column] for column in occurs)
    present = np.unique(pairs.labels)
    if pairs.labels.dtype.kind == "U":
        return tuple(name for name in pairs.class_names if name in set(present.tolist()))
    return tuple(pairs.class_names[int(value)] if pairs.class_names else str(value) for value in present)
