"""The words that a trained network knows, as vectors to look at."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import scipy

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders import WordVectors
from diptych.errors import InvalidInputError
from diptych.estimators import check_is_fitted
from diptych.models.neural.mnil._plan import N_LAYERS
from diptych.models.neural.mnil.mnil import MNiL
from diptych.models.parameters import check_choice

WordLayer = Literal["memory", "embedding"]


def learned_words(model: MNiL, layer: WordLayer = "memory") -> WordVectors:
    """Return the words of a fitted `MNiL` with their vectors, the commonest first.

    ``memory`` takes what the second layer answers to a text of that word alone, as Zhang et al. (2017, table 3) do;
    ``embedding`` takes the vectors that the network reads, which stay nearer to the random numbers they began as.
    :func:`~diptych.encoders.nearest_words` finds neighbours among them. Use it to see what the network takes for the
    same thing.

    >>> import numpy as np
    >>> from diptych.models import MNiL
    >>> from diptych.models.neural.mnil.word_space import learned_words
    >>> rng = np.random.default_rng(0)
    >>> model = MNiL(image_tower="features", word_size=8, hidden_size=6, n_components=4, epochs=1, device="cpu")
    >>> model = model.fit(rng.normal(size=(20, 5)), ["a dark sea", "a bright hill"] * 10)
    >>> learned_words(model).words, learned_words(model, "embedding").n_features
    (('a', 'dark', 'sea', 'bright', 'hill'), 8)
    """
    check_choice("layer", layer, get_args(WordLayer))
    check_is_fitted(model, "words_")
    if not len(model.words_):
        raise InvalidInputError("this model reads tokens in their texts and has no words of its own")
    arrays = dict(zip(model.text_names_, model.text_arrays_, strict=True))
    # Padding and the unknown word come before the known ones.
    vectors = arrays["words"][-len(model.words_) :]
    if layer == "memory":
        for number in range(N_LAYERS):
            vectors = _first_step(vectors, arrays, number)
    return WordVectors(model.words_.tolist(), vectors.astype(np.float32))


def _first_step(rows: FloatArray, arrays: dict[str, AnyArray], number: int) -> FloatArray:
    """Return what a layer of memory that remembers nothing yet answers."""
    sums = (
        rows @ arrays[f"memory.weight_ih_l{number}"].T
        + arrays[f"memory.bias_ih_l{number}"]
        + arrays[f"memory.bias_hh_l{number}"]
    )
    # The forget gate, second of the four, has nothing to forget.
    enter, _, cell, leave = np.split(sums, 4, axis=1)
    return np.asarray(scipy.special.expit(leave) * np.tanh(scipy.special.expit(enter) * np.tanh(cell)))
