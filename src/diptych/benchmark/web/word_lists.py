"""Single words as queries."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy import sparse

from diptych.arrays import BoolArray
from diptych.benchmark.web.judged_lists import JudgedLists
from diptych.data import Pairs
from diptych.encoders import Visualness, clean_query
from diptych.errors import InvalidInputError

_LEAST_CAPTIONS = 2
_LEAST_PICTURES = 5


def word_lists(train: Pairs, test: Pairs, *, count: int = 50, visualness: Visualness | None = None) -> JudgedLists:
    """Return the commonest visual words of the training captions as queries; every test picture is ranked for each.

    A picture is relevant to a word that at least two of its captions hold (one where it has a single caption). Words
    that ImageNet has no concept for, and words of fewer than five relevant test pictures, are left out. This has the
    form of the single-tag queries of Dong et al. (2018), MIRFlickr's 14 tags; captions stand for annotations.
    """
    seen = Visualness() if visualness is None else visualness
    frequency = Counter(word for text in train.texts for word in set(clean_query(text)))
    held = [set(clean_query(text)) for text in test.texts]
    owners = np.asarray(test.owners)
    n_captions = np.bincount(owners, minlength=test.n_images)
    queries: list[str] = []
    columns: list[BoolArray] = []
    for word, _ in frequency.most_common():
        if len(queries) == count:
            break
        if seen.of(word).visualness < 1:
            continue
        found = np.bincount(owners, weights=[word in words for words in held], minlength=test.n_images)
        relevant = found >= np.minimum(_LEAST_CAPTIONS, n_captions)
        if relevant.sum() >= _LEAST_PICTURES:
            queries.append(word)
            columns.append(relevant)
    if not queries:
        raise InvalidInputError("no visual word of the training captions is common enough in the test captions")
    everything = np.indices((len(queries), test.n_images)).reshape(2, -1)
    grades = sparse.csr_array(
        (np.stack(columns).ravel().astype(float), everything), shape=(len(queries), test.n_images)
    )
    return JudgedLists("single words", tuple(queries), grades)
