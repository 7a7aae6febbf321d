"""Bags of visual words: SIFT descriptors counted by a learned codebook."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from PIL import Image
from scipy.sparse import csr_matrix

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.clustering import learn_centres, nearest_centres
from diptych.encoders.encoder import check_pictures
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture
from diptych.encoders.text.tfidf import learn_topics, topic_proportions
from diptych.errors import InvalidInputError, import_package
from diptych.estimators import check_is_fitted

_DESCRIPTOR = 128
# OpenCV fails on pictures that are too small for a single octave.
_SMALLEST = 8
# A codebook wants many pictures rather than all descriptors of a few.
_FROM_ONE_PICTURE = 100


@dataclass(kw_only=True, eq=False, repr=False)
class SiftWords(ImageEncoder):
    """Histogram of visual words.

    SIFT describes the surroundings of each interest point by 128 numbers (Lowe, "Distinctive image features from
    scale-invariant keypoints", IJCV 2004); k-means centres of training descriptors are the visual words. A picture is
    the share of its descriptors that each word is nearest to: a row that is non-negative and sums to one, as χ² and
    intersection kernels expect, or zero for a picture without any interest point.

    The image representation of Costa Pereira et al., "On the role of correlation and abstraction in cross-modal
    multimedia retrieval", TPAMI 2014, who took codebooks of 128 to 8,192 words and did best with 4,096. They leave open
    how the points are chosen; here the detector of SIFT itself finds them. Use it to repeat such results, and for
    textures and places; features of a trained network are far better on photographs.

    Parameters
    ----------
    n_words:
        The size of the codebook; fewer when the training pictures do not have as many descriptors.
    size:
        Larger pictures are averaged down by whole factors, as long as their shorter side keeps so many pixels.
    max_descriptors:
        The codebook is learned from at most so many descriptors, 128 float32 numbers each, which bounds memory.
    random_state:
        Of the sample and the codebook.
    batch_size, n_threads:
        Pictures encoded at once and threads that read and describe them; the features do not depend on them.

    Attributes
    ----------
    centres_:
        The (n_words, 128) codebook.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import SiftWords
    >>> pictures = np.random.default_rng(0).integers(0, 256, size=(4, 64, 64, 3), dtype=np.uint8)
    >>> histograms = SiftWords(n_words=8).fit_transform(pictures)
    >>> histograms.shape, histograms.sum(axis=1).round(3).tolist()
    ((4, 8), [1.0, 1.0, 1.0, 1.0])
    """

    n_words: int = 1024
    size: int = 256
    max_descriptors: int = 200_000
    random_state: int = 0
    batch_size: int = 32

    @property
    def n_features(self) -> int:
        """The number of words; known once the codebook is learned."""
        check_is_fitted(self)
        return len(self.centres_)

    @property
    def reading_side(self) -> int:
        """Pictures are read at about this size."""
        return self.size

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        for name, value in (("n_words", self.n_words), ("size", self.size)):
            if value < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {value}")
        if self.max_descriptors < self.n_words:
            raise InvalidInputError(
                f"max_descriptors must be at least n_words ({self.n_words}), got {self.max_descriptors}"
            )

    def fit(self, items: Sequence[Picture]) -> Self:
        """Learn the codebook from a sample of the pictures' descriptors."""
        self.check_parameters()
        check_pictures(items, "learn from")
        sample = self._sample(items)
        if len(sample) == 0:
            raise InvalidInputError("no interest point was found in the training pictures; pass larger ones")
        self.centres_ = learn_centres(sample, self.n_words, seed=self.random_state)
        return self

    def prepare(self, picture: Picture) -> AnyArray:
        """Read a picture and count its visual words."""
        check_is_fitted(self)
        words = nearest_centres(self._descriptors(picture), self.centres_)
        return np.bincount(words, minlength=len(self.centres_)).astype(np.int32)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Turn counts into shares."""
        counts = np.stack(list(prepared))
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))

    def _sample(self, items: Sequence[Picture]) -> FloatArray:
        """Return descriptors of some pictures, no more in all than ``max_descriptors``."""
        n_pictures = min(len(items), max(1, self.max_descriptors // _FROM_ONE_PICTURE))
        chosen = np.sort(np.random.default_rng(self.random_state).permutation(len(items))[:n_pictures])
        quota = self.max_descriptors // n_pictures

        def some_of(row: int) -> FloatArray:
            found = self._descriptors(items[row])
            kept = np.random.default_rng([self.random_state, row]).permutation(len(found))[:quota]
            return found[np.sort(kept)]

        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(some_of, chosen.tolist())))

    def _descriptors(self, picture: Picture) -> FloatArray:
        """Return the (points, 128) descriptors of a picture, always in the same order."""
        cv2 = import_package("cv2", "finding visual words", "opencv-python-headless")
        grey = np.asarray(Image.fromarray(self.read(picture)).convert("L"))
        if min(grey.shape) < _SMALLEST:
            return np.zeros((0, _DESCRIPTOR), dtype=np.float32)
        sift = cv2.SIFT_create()
        points = sorted(sift.detect(grey, None), key=lambda point: (*point.pt, point.size, point.angle))
        _, descriptors = sift.compute(grey, points)
        return np.zeros((0, _DESCRIPTOR), dtype=np.float32) if descriptors is None else np.asarray(descriptors)


@dataclass(kw_only=True, eq=False, repr=False)
class SiftTopics(SiftWords):
    """Proportions of topics of visual words: latent Dirichlet allocation over the counts of `SiftWords`.

    The lower-dimensional image representation of Costa Pereira et al. (2014, section V-B), which found that it does
    less well than the words themselves. Use it to repeat that comparison.

    Parameters
    ----------
    n_topics, max_iter:
        The number of topics, and passes over the training pictures; the others are those of `SiftWords`.

    Attributes
    ----------
    components_:
        The weight of each visual word in each topic (topics, words).

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import SiftTopics
    >>> pictures = np.random.default_rng(0).integers(0, 256, size=(4, 64, 64, 3), dtype=np.uint8)
    >>> topics = SiftTopics(n_words=8, n_topics=2).fit_transform(pictures)
    >>> topics.shape, topics.sum(axis=1).round(3).tolist()
    ((4, 2), [1.0, 1.0, 1.0, 1.0])
    """

    n_topics: int = 50
    max_iter: int = 20

    @property
    def n_features(self) -> int:
        """The number of topics."""
        return self.n_topics

    def fit(self, items: Sequence[Picture]) -> Self:
        """Learn the codebook, then the topics of the training pictures."""
        super().fit(items)
        counts = np.stack([self.prepare(item) for item in items])
        self.components_ = learn_topics(counts, self.n_topics, self.max_iter, self.random_state)
        return self

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Turn counts into proportions of topics."""
        return topic_proportions(self.components_, csr_matrix(np.stack(list(prepared))))
