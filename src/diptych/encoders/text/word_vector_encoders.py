"""Texts by word vectors: as their mean, or as a histogram over groups of similar words."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.encoders.clustering import learn_centres, nearest_centres
from diptych.encoders.encoder import check_texts
from diptych.encoders.text.tfidf import WordEncoder
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError
from diptych.estimators import check_is_fitted

_TEXTS_AT_ONCE = 4096
# Of a table that begins with the commonest words; to cluster all of a large one takes minutes.
_CLUSTERED_WORDS = 20_000


@dataclass(kw_only=True, eq=False, repr=False)
class WordVectorEncoder(WordEncoder):
    """An encoder of texts with a parameter ``vectors``: a source of :func:`load_word_vectors`, or a table in memory."""

    vectors: str | os.PathLike[str] | WordVectors = "auto"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; a path is told as text, so that it names and saves the encoder in one form."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if isinstance(self.vectors, os.PathLike):
            parameters["vectors"] = os.fspath(self.vectors)
        return parameters

    @property
    def weights_digest(self) -> str:
        """The digest of the word vectors."""
        return self.table.digest

    @property
    def table(self) -> WordVectors:
        """The word vectors, loaded when first needed and then shared by all encoders."""
        return self.vectors if isinstance(self.vectors, WordVectors) else load_word_vectors(self.vectors)

    @abstractmethod
    def _features_of_words(self, table: WordVectors, rows: IntArray) -> FloatArray | scipy.sparse.csr_matrix:
        """Return the features of these words of the table; those of a text are their mean."""

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row per text, zero for a text without a known word."""
        check_texts(items)
        blocks = row_blocks(len(items), _TEXTS_AT_ONCE)
        return np.concatenate([self._means([items[row] for row in range(block.start, block.stop)]) for block in blocks])

    def _means(self, texts: Sequence[str]) -> FloatArray:
        words, table = [self.pipeline.words(text) for text in texts], self.table
        found = table.rows(word for sequence in words for word in sequence)
        owners = np.repeat(np.arange(len(texts)), [len(sequence) for sequence in words])
        rows, places = np.unique(found[found >= 0], return_inverse=True)
        entries = (np.ones(len(places)), (owners[found >= 0], places))
        counts = scipy.sparse.csr_matrix(entries, shape=(len(texts), len(rows)))
        sums = counts @ self._features_of_words(table, rows)
        totals = np.asarray(counts.sum(axis=1))
        dense = sums.toarray() if scipy.sparse.issparse(sums) else sums
        return np.asarray(dense / np.where(totals > 0, totals, 1), dtype=np.float32)


@dataclass(kw_only=True, eq=False, repr=False)
class MeanWordVectors(WordVectorEncoder):
    """The mean of the vectors of a text's known words; zero when no word is known.

    Use it for short texts and queries, in particular where labels or single words must live in the same space (Dong et
    al., 2018, for ConSE); a sentence encoder knows more of a caption's meaning.

    Parameters
    ----------
    vectors:
        A source of :func:`load_word_vectors`, or :class:`WordVectors`.
    stop_words, lemmas:
        As in :class:`WordPipeline`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import MeanWordVectors, WordVectors
    >>> table = WordVectors(["red", "boat"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> MeanWordVectors(vectors=table).transform(["A red boat!", "nothing known"]).tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """

    learns: ClassVar[bool] = False

    stop_words: str | None = "pictures"

    def fit(self, items: Sequence[str]) -> Self:
        """Check the texts; there is nothing to learn from them."""
        check_texts(items)
        return self

    def _features_of_words(self, table: WordVectors, rows: IntArray) -> FloatArray:
        return table.vectors[rows].astype(np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class WordVectorCodebook(WordVectorEncoder):
    """Bag of words over a codebook: similar words, by their vectors, count as one.

    Word vectors are clustered by k-means into ``n_words`` groups; a text is the share of its known words that falls in
    each group, so rows are non-negative and sum to one, or are zero when no word is known.

    The text features of Liu et al., "A new evaluation protocol and benchmarking results for extendable cross-media
    retrieval", arXiv 2017: 1,024 groups of the word2vec vectors. Use it for documents and where features must be
    histograms; clustered over the table, it does not depend on any training text, as a protocol with unseen classes
    asks.

    Parameters
    ----------
    vectors:
        A source of :func:`load_word_vectors`, or :class:`WordVectors`.
    n_words:
        The number of groups, and of features.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    random_state:
        Of the clustering.

    Attributes
    ----------
    centres_:
        The (n_words, features of the vectors) centres of the groups.
    table_digest_:
        The digest of the word vectors they belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import WordVectorCodebook, WordVectors
    >>> table = WordVectors(["boat", "ship", "cat", "dog"], np.array([[9.0, 0], [8, 0], [0, 9], [0, 8]]))
    >>> encoder = WordVectorCodebook(vectors=table, n_words=2).fit(["unused"])
    >>> np.sort(encoder.transform(["boat, ship and cat"])).round(2)
    array([[0.33, 0.67]], dtype=float32)
    """

    n_words: int = 1024
    random_state: int = 0

    def fit(self, items: Sequence[str]) -> Self:
        """Cluster the commonest words of the table."""
        if self.n_words < 1:
            raise InvalidInputError(f"n_words must be at least 1, got {self.n_words}")
        check_texts(items)
        table = self.table
        self.centres_ = learn_centres(table.vectors[:_CLUSTERED_WORDS], self.n_words, seed=self.random_state)
        self.table_digest_ = table.digest
        return self

    def _features_of_words(self, table: WordVectors, rows: IntArray) -> scipy.sparse.csr_matrix:
        check_is_fitted(self)
        if table.digest != self.table_digest_:
            raise InvalidInputError(
                f"the word vectors {self.vectors!r} are not those this encoder was fitted with; fit it again"
            )
        # In float64, so that rounding, which depends on what else is encoded, does not decide between two groups.
        groups = nearest_centres(table.vectors[rows].astype(np.float64), self.centres_.astype(np.float64))
        members = (np.ones(len(rows)), (np.arange(len(rows)), groups))
        return scipy.sparse.csr_matrix(members, shape=(len(rows), len(self.centres_)))
