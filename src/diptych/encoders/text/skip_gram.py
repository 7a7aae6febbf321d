"""Word vectors from one's own texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from diptych.encoders.text.clean_query import clean_query
from diptych.encoders.text.word_vectors import WordVectors
from diptych.encoders.text.words import check_texts
from diptych.errors import InvalidInputError, MissingPackageError


def skip_gram(
    texts: Sequence[str],
    *,
    n_features: int = 100,
    window: int = 5,
    min_count: int = 5,
    n_negatives: int = 5,
    epochs: int = 5,
    seed: int = 0,
) -> WordVectors:
    """Train word vectors on queries, captions or tags: a word is known by the words beside it.

    The skip-gram with negative sampling maximises, over each word w and each word c at most ``window`` places away,

        log σ(⟨v_w, u_c⟩) + Σ over ``n_negatives`` random words n of log σ(−⟨v_w, u_n⟩),

    and v_w are the vectors. Mikolov et al., "Distributed representations of words and phrases and their
    compositionality", NIPS 2013; trained by the package gensim, in one thread, so that a seed gives the same vectors.
    Dong et al. (2018) train such vectors on the tags of 25 million pictures.

    Use it for a language, a trade or a slang that the vectors one can download do not know; millions of texts are
    needed to beat those in plain English. Texts are cut into words by :func:`clean_query`, the commonest word comes
    first, and words seen less than ``min_count`` times are left out. To keep the vectors, write
    ``np.savez(path, words=np.array(table.words), vectors=table.vectors)``, which :func:`load_word_vectors` reads.

    >>> from diptych.encoders import skip_gram
    >>> table = skip_gram(["red boat", "red ship", "black cat"] * 20, n_features=8, min_count=20)
    >>> table.words[0], len(table), table.n_features
    ('red', 5, 8)
    """
    check_texts(texts)
    for name, value in (("n_features", n_features), ("window", window), ("min_count", min_count), ("epochs", epochs)):
        if value < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {value}")
    sentences = [list(clean_query(text)) for text in texts]
    commonest = Counter(word for words in sentences for word in words).most_common(1)
    if not commonest or commonest[0][1] < min_count:
        raise InvalidInputError(f"no word occurs {min_count} times in the {len(texts)} texts; lower min_count")
    trained = _word2vec()(
        sentences=sentences,
        sg=1,
        vector_size=n_features,
        window=window,
        min_count=min_count,
        negative=n_negatives,
        # Common words are not thinned out: those that say nothing have gone already.
        sample=0,
        epochs=epochs,
        seed=seed,
        workers=1,
    ).wv
    return WordVectors(trained.index_to_key, np.asarray(trained.vectors))


def _word2vec() -> Any:
    try:
        return import_module("gensim.models").Word2Vec
    except ImportError as error:
        raise MissingPackageError("training word vectors", "'diptych[words]'") from error
