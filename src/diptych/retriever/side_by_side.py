"""Several encoders side by side, each as it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders import Concatenated


class SideBySide(Concatenated):
    """The features of several encoders of one modality, side by side and unscaled: [x₁, x₂, …].

    Use it where each part's features go to a model of their own, as in a fusion, which takes its columns as the part
    made them. `Concatenated` is for one model of all: it scales the parts to unit length.

    Examples
    --------
    >>> from diptych.encoders import LdaTopics, TfidfTopics
    >>> from diptych.retriever import SideBySide
    >>> texts = ["red boat sea", "red ship sea", "small cat grass", "small dog grass"]
    >>> parts = (TfidfTopics(n_components=2, min_documents=1), LdaTopics(n_topics=3, min_documents=1))
    >>> both = SideBySide(encoders=parts).fit(texts)
    >>> bool((both.transform(texts)[:, :2] == both.encoders_[0].transform(texts)).all())
    True
    """

    @property
    def identity(self) -> str:
        """The parts."""
        return f"SideBySide([{', '.join(encoder.identity for encoder in self.encoders)}])"

    def _joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(parts, axis=1).astype(np.float32)
