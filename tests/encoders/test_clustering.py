from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from diptych.data import load_dataset
from diptych.encoders import LdaTopics
from diptych.encoders.text.tfidf import topic_proportions


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=5, deadline=None)
def test_inference_is_that_of_scikit_learn(seed: int, n_topics: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = rng.poisson(0.4, (30, 25)), rng.poisson(1.0, (40, 25))
    test[3] = 0
    reference = LatentDirichletAllocation(n_topics, max_iter=3, random_state=0).fit(train)
    proportions = topic_proportions(reference.components_, csr_matrix(test))
    np.testing.assert_allclose(proportions, reference.transform(test), atol=1e-6)
    np.testing.assert_allclose(proportions[3], 1 / n_topics)


def test_what_lda_topics_learns_is_arrays_and_words() -> None:
    captions = list(load_dataset("scenes", n_train=30, n_test=1, size=32).train.texts)
    encoder = LdaTopics(n_topics=5, max_iter=3).fit(captions)
    learned = {name: value for name, value in vars(encoder).items() if name.endswith("_")}
    assert set(learned) == {"vocabulary_", "components_"}
    assert learned["components_"].shape == (5, len(learned["vocabulary_"]))
    copy = LdaTopics(n_topics=5, max_iter=3)
    for name, value in learned.items():
        setattr(copy, name, value)
    np.testing.assert_array_equal(copy.transform(captions), encoder.transform(captions))
    assert copy.fingerprint == encoder.fingerprint
