"""A text as a histogram over groups of similar words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from diptych.arrays import FloatArray, row_blocks
from diptych.data.folders import cache_folder
from diptych.encoders.codebook import learn_centres, nearest_centres
from diptych.encoders.matrix_cache import MatrixCache
from diptych.encoders.text.word_vector_encoder import WordVectorEncoder
from diptych.encoders.text.word_vectors import WordVectors
from diptych.encoders.text.words import check_texts
from diptych.errors import InvalidInputError

_TEXTS_AT_ONCE = 4096


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
    clustered:
        ``"table"`` clusters the commonest words of the table, ``"texts"`` the words of the training texts.
    table_words:
        How many of the commonest words of the table are clustered; None takes all, which is slow for large tables.
    counts:
        Give counts instead of shares.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    seed:
        Of the clustering.
    cache:
        Keep the centres of the table on disk, in the user's cache folder, so that they are computed once.

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
    >>> encoder = WordVectorCodebook(vectors=table, n_words=2, cache=False).fit(["unused"])
    >>> np.sort(encoder.transform(["boat, ship and cat"])).round(2)
    array([[0.33, 0.67]], dtype=float32)
    """

    speed_parameters: ClassVar[tuple[str, ...]] = ("cache",)

    def __init__(
        self,
        *,
        vectors: str | os.PathLike[str] | WordVectors = "auto",
        n_words: int = 1024,
        clustered: Literal["table", "texts"] = "table",
        table_words: int | None = 20_000,
        counts: bool = False,
        stop_words: str | None = "english",
        lemmas: bool | str = False,
        seed: int = 0,
        cache: bool = True,
    ) -> None:
        self.vectors = vectors
        self.n_words = n_words
        self.clustered = clustered
        self.table_words = table_words
        self.counts = counts
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.seed = seed
        self.cache = cache

    def fit(self, items: Sequence[str]) -> Self:
        """Cluster the word vectors, of the table or of the words in the training texts."""
        self._check_parameters()
        check_texts(items)
        table = self.table
        self.centres_ = self._centres_of_table(table) if self.clustered == "table" else self._centres_of(items, table)
        self.table_digest_ = table.digest
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one histogram per text, zero for a text without a known word."""
        check_is_fitted(self)
        check_texts(items)
        table = self.checked_table()
        histograms = np.empty((len(items), len(self.centres_)), dtype=np.float32)
        for rows in row_blocks(len(items), _TEXTS_AT_ONCE):
            histograms[rows] = self._histograms([items[row] for row in range(rows.start, rows.stop)], table)
        return histograms

    def _check_parameters(self) -> None:
        if self.n_words < 1:
            raise InvalidInputError(f"n_words must be at least 1, got {self.n_words}")
        if self.clustered not in ("table", "texts"):
            raise InvalidInputError(f"clustered must be 'table' or 'texts', got {self.clustered!r}")
        if self.table_words is not None and self.table_words < self.n_words:
            raise InvalidInputError(
                f"table_words must be at least n_words ({self.n_words}) or None, got {self.table_words}"
            )

    def _centres_of_table(self, table: WordVectors) -> FloatArray:
        if not self.cache:
            return learn_centres(table.vectors[: self.table_words], self.n_words, seed=self.seed)
        parts = (type(self).__name__, self.revision, table.digest, self.n_words, self.table_words, self.seed)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
        store = MatrixCache(cache_folder() / "codebooks")
        kept = store.read(key)
        if kept is None:
            kept = {"centres": learn_centres(table.vectors[: self.table_words], self.n_words, seed=self.seed)}
            store.write(key, kept)
        return kept["centres"]

    def _centres_of(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        _, rows = self.known_words(texts, table)
        if len(rows) == 0:
            raise InvalidInputError("no word of the training texts has a vector; pass other texts or word vectors")
        return learn_centres(table.vectors[rows], self.n_words, seed=self.seed)

    def _histograms(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        counts, rows = self.known_words(texts, table)
        # In float64, so that rounding, which depends on what else is encoded, does not decide between two groups.
        groups = nearest_centres(table.vectors[rows].astype(np.float64), self.centres_.astype(np.float64))
        membership = csr_matrix((np.ones(len(rows)), (np.arange(len(rows)), groups)), (len(rows), len(self.centres_)))
        histograms = (counts @ membership).toarray()
        if self.counts:
            return np.asarray(histograms)
        totals = histograms.sum(axis=1, keepdims=True)
        return np.asarray(histograms / np.where(totals > 0, totals, 1))
