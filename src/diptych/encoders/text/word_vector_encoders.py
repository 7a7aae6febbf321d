"""Texts by word vectors: as their mean, or as a histogram over groups of similar words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.data.folders import cache_folder
from diptych.encoders.clustering import learn_centres, nearest_centres
from diptych.encoders.encoder import check_texts
from diptych.encoders.feature_cache import MatrixCache
from diptych.encoders.text.tfidf import WordEncoder, inverse_document_frequencies
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError
from diptych.estimators import check_is_fitted

_TEXTS_AT_ONCE = 4096
# The value of Arora et al. for most of their tasks.
_SIF_SMOOTHING = 1e-3


class WordVectorEncoder(WordEncoder):
    """An encoder of texts with a parameter ``vectors``: a source of :func:`load_word_vectors`, or a table in memory.

    What it learns belongs to one table, and it refuses to go on with another.
    """

    vectors: str | os.PathLike[str] | WordVectors

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

    def known_words(self, texts: Sequence[str], table: WordVectors) -> tuple[scipy.sparse.csr_matrix, IntArray]:
        """Return the (texts, words) counts of the words that have vectors, and the rows of these in the table."""
        words = [self.pipeline.words(text) for text in texts]
        found = table.rows(word for sequence in words for word in sequence)
        owners = np.repeat(np.arange(len(texts)), [len(sequence) for sequence in words])
        rows, places = np.unique(found[found >= 0], return_inverse=True)
        entries = (np.ones(len(places)), (owners[found >= 0], places))
        return scipy.sparse.csr_matrix(entries, shape=(len(texts), len(rows))), rows

    def checked_table(self) -> WordVectors:
        """Return the table, unless something was learned with another one."""
        table = self.table
        if getattr(self, "table_digest_", table.digest) != table.digest:
            raise InvalidInputError(
                f"the word vectors {self.vectors!r} are not those this encoder was fitted with; fit it again"
            )
        return table


class MeanWordVectors(WordVectorEncoder):
    """The mean of the vectors of a text's known words, weighted if asked for; zero when no word is known.

    With ``weighting="idf"`` a word counts 1 + log((1 + n)/(1 + n_w)), where n_w of the n training texts hold it; with
    ``"sif"`` it counts a/(a + p_w), where p_w is its share of all training words and a = 0.001. Removing the direction
    that all texts have in common then completes SIF, the smooth inverse frequency of Arora et al., "A simple but
    tough-to-beat baseline for sentence embeddings", ICLR 2017.

    Use it for short texts and queries, in particular where labels or single words must live in the same space (Dong et
    al., 2018, for ConSE); a sentence encoder knows more of a caption's meaning.

    Parameters
    ----------
    vectors:
        A source of :func:`load_word_vectors`, or :class:`WordVectors`.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    weighting:
        None, ``"idf"`` or ``"sif"``.
    remove_components:
        How many leading singular directions of the training texts are projected out; SIF removes 1.

    Attributes
    ----------
    table_rows_, word_weights_, unseen_weight_:
        The training words' rows in the table, their weights, and the weight of any other word.
    common_:
        The (remove_components, features) directions projected out.
    table_digest_:
        The digest of the word vectors these belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import MeanWordVectors, WordVectors
    >>> table = WordVectors(["red", "boat"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> MeanWordVectors(vectors=table).transform(["A red boat!", "nothing known"]).tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        vectors: str | os.PathLike[str] | WordVectors = "auto",
        stop_words: str | None = "pictures",
        lemmas: bool | str = False,
        weighting: Literal["idf", "sif"] | None = None,
        remove_components: int = 0,
    ) -> None:
        self.vectors = vectors
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.weighting = weighting
        self.remove_components = remove_components

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether weights or common directions are learned; a plain mean works without a fit."""
        return self.weighting is not None or self.remove_components > 0

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the weights and the common directions from training texts, where there are any to learn."""
        self._check_parameters()
        check_texts(items)
        if not self.learns:
            return self
        table = self.table
        counts, self.table_rows_ = self.known_words(items, table)
        if len(self.table_rows_) == 0:
            raise InvalidInputError("no word of the training texts has a vector; pass other texts or word vectors")
        self.word_weights_, self.unseen_weight_ = self._weights(counts)
        self.table_digest_ = table.digest
        self.common_: FloatArray = np.zeros((0, table.n_features))
        means = self._all_means(items, table)
        # The leading right singular vectors; their signs do not matter for a projection.
        _, directions = np.linalg.eigh(means.T @ means)
        self.common_ = np.asarray(directions[:, ::-1][:, : self.remove_components].T)
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row per text, zero for a text without a known word."""
        self._check_parameters()
        check_texts(items)
        if self.learns:
            check_is_fitted(self, "common_")
        table = self.checked_table()
        return self._all_means(items, table).astype(np.float32)

    def _check_parameters(self) -> None:
        if self.weighting not in (None, "idf", "sif"):
            raise InvalidInputError(f"weighting must be None, 'idf' or 'sif', got {self.weighting!r}")
        if self.remove_components < 0:
            raise InvalidInputError(f"remove_components must be at least 0, got {self.remove_components}")

    def _weights(self, counts: scipy.sparse.csr_matrix) -> tuple[FloatArray, float]:
        """Return the weight of each column's word, and that of a word never seen."""
        if self.weighting == "idf":
            return inverse_document_frequencies(counts), 1 + float(np.log(1 + counts.shape[0]))
        if self.weighting == "sif":
            shares = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
            return _SIF_SMOOTHING / (_SIF_SMOOTHING + shares), 1.0
        return np.ones(counts.shape[1]), 1.0

    def _all_means(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        means = np.zeros((len(texts), table.n_features))
        for rows in row_blocks(len(texts), _TEXTS_AT_ONCE):
            means[rows] = self._means([texts[row] for row in range(rows.start, rows.stop)], table)
        return means

    def _means(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        counts, rows = self.known_words(texts, table)
        weighted = counts.multiply(self._weights_of(rows)).tocsr()
        totals = np.asarray(weighted.sum(axis=1))
        means = (weighted @ table.vectors[rows].astype(np.float64)) / np.where(totals > 0, totals, 1)
        if self.learns:
            means -= (means @ self.common_.T) @ self.common_
        return np.asarray(means)

    def _weights_of(self, rows: IntArray) -> FloatArray:
        if not self.learns:
            return np.ones(len(rows))
        places = np.minimum(np.searchsorted(self.table_rows_, rows), len(self.table_rows_) - 1)
        seen = self.table_rows_[places] == rows
        return np.where(seen, self.word_weights_[places], self.unseen_weight_)


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
    random_state:
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
        random_state: int = 0,
        cache: bool = True,
    ) -> None:
        self.vectors = vectors
        self.n_words = n_words
        self.clustered = clustered
        self.table_words = table_words
        self.counts = counts
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.random_state = random_state
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
            return learn_centres(table.vectors[: self.table_words], self.n_words, seed=self.random_state)
        parts = (type(self).__name__, self.revision, table.digest, self.n_words, self.table_words, self.random_state)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
        store = MatrixCache(cache_folder() / "codebooks")
        kept = store.read(key)
        if kept is None:
            kept = {"centres": learn_centres(table.vectors[: self.table_words], self.n_words, seed=self.random_state)}
            store.write(key, kept)
        return kept["centres"]

    def _centres_of(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        _, rows = self.known_words(texts, table)
        if len(rows) == 0:
            raise InvalidInputError("no word of the training texts has a vector; pass other texts or word vectors")
        return learn_centres(table.vectors[rows], self.n_words, seed=self.random_state)

    def _histograms(self, texts: Sequence[str], table: WordVectors) -> FloatArray:
        counts, rows = self.known_words(texts, table)
        # In float64, so that rounding, which depends on what else is encoded, does not decide between two groups.
        groups = nearest_centres(table.vectors[rows].astype(np.float64), self.centres_.astype(np.float64))
        membership = scipy.sparse.csr_matrix(
            (np.ones(len(rows)), (np.arange(len(rows)), groups)), (len(rows), len(self.centres_))
        )
        histograms = (counts @ membership).toarray()
        if self.counts:
            return np.asarray(histograms)
        totals = histograms.sum(axis=1, keepdims=True)
        return np.asarray(histograms / np.where(totals > 0, totals, 1))
