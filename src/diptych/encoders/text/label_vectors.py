"""Vectors of labels that may be several words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.encoders.text.word_vectors import WordVectors

_PIECE = re.compile(r"[^\s_/,;]+")
_WORD = re.compile(r"[^\W_]+")


def label_vectors(labels: Sequence[str], table: WordVectors) -> tuple[FloatArray, BoolArray]:
    """Return the mean vector of each label's words, and which labels have one.

    Labels are cut at spaces, underscores, slashes and commas; a piece that the table does not know is cut further, at
    hyphens and apostrophes. Words without a vector are left out; a label without any vector gets a zero row and False.

    Norouzi et al., "Zero-shot learning by convex combination of semantic embeddings", ICLR 2014, and Dong et al.
    (2018) need this for the labels of a classifier.

    >>> import numpy as np
    >>> from diptych.encoders import WordVectors, label_vectors
    >>> table = WordVectors(["fire", "truck"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> vectors, known = label_vectors(["fire_truck", "Zyzzyva"], table)
    >>> vectors.tolist(), known.tolist()
    ([[1.0, 2.0], [0.0, 0.0]], [True, False])
    """
    vectors = np.zeros((len(labels), table.n_features), dtype=np.float32)
    known = np.zeros(len(labels), dtype=bool)
    for row, label in enumerate(labels):
        rows = table.rows(_words(label, table))
        rows = rows[rows >= 0]
        if len(rows):
            vectors[row] = table.vectors[rows].mean(axis=0, dtype=np.float64)
            known[row] = True
    return vectors, known


def _words(label: str, table: WordVectors) -> list[str]:
    pieces = _PIECE.findall(label.lower())
    return [word for piece in pieces for word in ([piece] if piece in table else _WORD.findall(piece))]
