"""How much of each label is in a ConSE point."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.models import ConSE


def label_shares(model: ConSE, features: AnyArray) -> FloatArray:
    """Return the weight of each label in the point of one row of probabilities: they sum to one, or are all zero.

    A ConSE point is linear in the label vectors, so one whose labels have the unit vectors for theirs tells the shares.

    >>> import numpy as np
    >>> from diptych.models import ConSE
    >>> from diptych.retriever.explaining.label_shares import label_shares
    >>> model = ConSE(label_vectors=np.eye(3), n_labels=2).fit(np.eye(3), np.eye(3))
    >>> label_shares(model, np.array([[0.6, 0.2, 0.1]])).round(2).tolist()
    [0.75, 0.25, 0.0]
    """
    row: FloatArray = np.asarray(features, dtype=np.float64)
    # A label without a vector stays without one.
    units = np.diag((np.abs(model.label_vectors_).max(axis=1) > 0).astype(np.float64))
    probe = ConSE(label_vectors=units, n_labels=model.n_labels).fit(row, np.zeros_like(row))
    return np.asarray(probe.encode_images(row)[0])
