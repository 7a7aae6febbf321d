"""Bags of visual words: SIFT descriptors counted by a learned codebook."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy
from PIL import Image

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.encoders.clustering import TopicModel, learn_centres, nearest_centres
from diptych.encoders.encoder import check_pictures
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.estimators import check_is_fitted

_DESCRIPTOR = 128
# OpenCV fails on pictures that are too small for a single octave.
_SMALLEST = 8
# A codebook wants many pictures rather than all descriptors of a few.
_FROM_ONE_PICTURE = 100
_TOPIC_PASSES = 20


@dataclass(kw_only=True, eq=False, repr=False)
class SiftWords(ImageEncoder):
    """Histogram of visual words, or topics over them.

    SIFT describes the surroundings of each interest point by 128 numbers (Lowe, "Distinctive image features from
    scale-invariant keypoints", IJCV 2004); k-means centres of training descriptors are the visual words. A picture is
    the share of its descriptors that each word is nearest to: a row that is non-negative and sums to one, as χ² and
    intersection kernels expect, or zero for a picture without any interest point.

    The image representation of Costa Pereira et al., "On the role of correlation and abstraction in cross-modal
    multimedia retrieval", TPAMI 2014, who took codebooks of 128 to 8,192 words, did best with 4,096, and also tried
    LDA topics over the words, which did worse. They leave open how the points are chosen; here the detector of SIFT
    itself finds them, or a regular grid with ``grid_step``. Use it to repeat such results, and for
    textures and places; features of a trained network are far better on photographs.

    Parameters
    ----------
    n_words:
        The size of the codebook; fewer when the training pictures do not have as many descriptors.
    n_topics:
        None gives histograms; a number gives proportions of as many LDA topics.
    grid_step:
        None describes the points that the detector finds; a number describes all points of a grid with so many pixels
        between them, each by the upright square of four steps around it.
    size:
        Larger pictures are averaged down by whole factors, as long as their shorter side keeps so many pixels.
    max_descriptors:
        The codebook is learned from at most so many descriptors, 128 float32 numbers each, which bounds memory.
    random_state:
        Of the sample, the codebook and the topics.
    batch_size, n_threads:
        Pictures encoded at once and threads that read and describe them; the features do not depend on them.

    Attributes
    ----------
    centres_:
        The (n_words, 128) codebook.
    topics_:
        The (n_topics, n_words) weights of the topics; no rows without topics.

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
    n_topics: int | None = None
    grid_step: int | None = None
    size: int = 256
    max_descriptors: int = 200_000
    random_state: int = 0
    batch_size: int = 32

    @property
    def n_features(self) -> int:
        """The number of topics or of words; known once the codebook is learned."""
        check_is_fitted(self)
        return self.n_topics if self.n_topics is not None else len(self.centres_)

    @property
    def reading_side(self) -> int:
        """Pictures are read at about this size."""
        return self.size

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        for name in ("n_words", "n_topics", "grid_step", "size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {value}")
        if self.max_descriptors < self.n_words:
            raise InvalidInputError(
                f"max_descriptors must be at least n_words ({self.n_words}), got {self.max_descriptors}"
            )

    def fit(self, items: Sequence[Picture]) -> Self:
        """Learn the codebook from a sample of the pictures' descriptors, and topics from all histograms."""
        self.check_parameters()
        check_pictures(items, "learn from")
        sample = self._sample(items)
        if len(sample) == 0:
            raise InvalidInputError("no interest point was found in the training pictures; pass larger ones")
        self.centres_ = learn_centres(sample, self.n_words, seed=self.random_state)
        self.topics_: FloatArray = np.zeros((0, len(self.centres_)))
        if self.n_topics is not None:
            counts = self._all_counts(items)
            topics = TopicModel.learn(counts, self.n_topics, max_iter=_TOPIC_PASSES, seed=self.random_state)
            self.topics_ = topics.components
        return self

    def prepare(self, picture: Picture) -> AnyArray:
        """Read a picture and count its visual words."""
        check_is_fitted(self)
        words = nearest_centres(self._descriptors(picture), self.centres_)
        return np.bincount(words, minlength=len(self.centres_)).astype(np.int32)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Turn counts into shares, or into topic proportions."""
        counts = np.stack(list(prepared))
        if self.n_topics is not None:
            return TopicModel(self.topics_).proportions(counts)
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

    def _all_counts(self, items: Sequence[Picture]) -> scipy.sparse.csr_matrix:
        blocks = []
        with ThreadPoolExecutor(self.threads) as pool:
            for rows in row_blocks(len(items), self.batch_size):
                counts = pool.map(lambda row: self.prepare(items[row]), range(rows.start, rows.stop))
                blocks.append(scipy.sparse.csr_matrix(np.stack(list(counts))))
        return scipy.sparse.vstack(blocks, format="csr")

    def _descriptors(self, picture: Picture) -> FloatArray:
        """Return the (points, 128) descriptors of a picture, always in the same order."""
        cv2 = _open_cv()
        grey = np.asarray(Image.fromarray(self.read(picture)).convert("L"))
        if min(grey.shape) < _SMALLEST:
            return np.zeros((0, _DESCRIPTOR), dtype=np.float32)
        sift = cv2.SIFT_create()
        if self.grid_step is None:
            points = sorted(sift.detect(grey, None), key=lambda point: (*point.pt, point.size, point.angle))
        else:
            points = _grid(cv2, grey.shape, self.grid_step)
        _, descriptors = sift.compute(grey, points)
        return np.zeros((0, _DESCRIPTOR), dtype=np.float32) if descriptors is None else np.asarray(descriptors)


def _grid(cv2: Any, shape: tuple[int, ...], step: int) -> list[Any]:
    # SIFT has four cells per side, each three halves of a point's size wide: this makes a cell as wide as a step.
    size = step / 1.5
    across, down = (np.arange(step / 2, side, step) for side in (shape[1], shape[0]))
    return [cv2.KeyPoint(float(x), float(y), size, 0.0) for y in down for x in across]


def _open_cv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise MissingPackageError("finding visual words", "opencv-python-headless") from error
    return cv2
