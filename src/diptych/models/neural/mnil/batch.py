"""One step's pairs on the device."""

from __future__ import annotations

from typing import Any, NamedTuple


class Batch(NamedTuple):
    """Tensors of one process's part of a step.

    ``codes`` and ``lengths`` have ``texts_per_picture`` consecutive rows for each picture; ``groups`` number the
    pictures, ``labels`` are indicator rows or None. ``corners`` and ``mirrored`` say how pictures are cut and turned.
    """

    pictures: Any
    codes: Any
    lengths: Any
    groups: Any
    labels: Any
    corners: Any
    mirrored: Any
