"""Who asks and who is searched."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.data import Pairs


@dataclass(frozen=True)
class Retrieval:
    """Queries and the gallery that answers them: pictures of one ask for texts of the other, and texts for pictures.

    Queries and gallery may be the same pairs, as in the standard protocol, or a query set and a database without a
    common item, as in the extendable one.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import Retrieval
    >>> pairs = Pairs(np.eye(6), np.eye(6), labels=np.repeat([0, 1], 3))
    >>> retrieval = Retrieval(pairs.select([0, 3]), pairs.select([1, 2, 4, 5]))
    >>> retrieval.queries.n_images, retrieval.gallery.n_images
    (2, 4)
    """

    queries: Pairs
    gallery: Pairs
