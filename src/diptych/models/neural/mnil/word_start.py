"""Where the vectors of words begin."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders import WordVectors
from diptych.errors import InvalidInputError
from diptych.models.neural.mnil.vocabulary import FIRST_WORD, Vocabulary


def starting_vectors(vocabulary: Vocabulary, table: WordVectors, rng: np.random.Generator) -> FloatArray:
    """Return one vector for each number of ``vocabulary``: those of ``table`` where it knows the word.

    They are scaled to a mean square of 1, so that words the table lacks, which get standard normal numbers, are
    neither louder nor quieter.

    >>> import numpy as np
    >>> from diptych.encoders import WordVectors
    >>> from diptych.models.neural.mnil.vocabulary import Vocabulary
    >>> from diptych.models.neural.mnil.word_start import starting_vectors
    >>> table = WordVectors(["boat", "cat"], np.array([[3.0, 0.0], [0.0, 3.0]]))
    >>> vectors = starting_vectors(Vocabulary(("cat", "yeti", "boat")), table, np.random.default_rng(0))
    >>> np.allclose(vectors[[2, 4]], [[0, 2**0.5], [2**0.5, 0]])
    True
    """
    rows = table.rows(vocabulary.words)
    known = np.flatnonzero(rows >= 0)
    found = table.vectors[rows[known]].astype(np.float64)
    scale = float(np.sqrt((found**2).mean())) if len(known) else 0.0
    if scale == 0.0:
        raise InvalidInputError("no word of the texts has a vector in word_vectors; choose others, or None")
    vectors = rng.standard_normal((vocabulary.n_codes, table.n_features), dtype=np.float32)
    vectors[FIRST_WORD + known] = found / scale
    return vectors
