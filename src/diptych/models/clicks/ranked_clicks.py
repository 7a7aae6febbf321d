"""Linear maps that rank clicked pictures above others by a margin: from words (PSI) or word vectors (DeViSE)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors, skip_gram
from diptych.models.clicks._margin_ranking import MarginRankingModel, QuerySide
from diptych.models.clicks.click_model import WordSets
from diptych.models.optimisers import Adagrad
from diptych.models.parameters import Count, Positive


class WordQueries:
    """The text side of a ranking that learns a vector for each word: points are ``words @ weights``."""

    def __init__(self, words: scipy.sparse.csr_array, weights: FloatArray) -> None:
        self._words = words
        self._adagrad = Adagrad(weights)

    @property
    def weights(self) -> FloatArray:
        """The vectors of the words."""
        return self._adagrad.array

    def points(self, rows: IntArray) -> FloatArray:
        """Return the points of some queries."""
        return np.asarray(self._words[rows] @ self.weights)

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Move the words of some queries, given the gradient of the loss by the queries' points."""
        asked = self._words[rows]
        touched, columns = np.unique(asked.indices, return_inverse=True)
        narrow = scipy.sparse.csr_array((asked.data, columns, asked.indptr), shape=(len(rows), len(touched)))
        self._adagrad.step_rows(touched, np.asarray(narrow.T @ gradient), rate=rate)


@dataclass(kw_only=True, eq=False, repr=False)
class PSI(MarginRankingModel):
    """Polynomial semantic indexing: a linear map of words and one of pictures, so that clicked pictures score higher.

    With t the weighted words of a query, f(x, q) = (Wᵢ(x − μ))ᵀ(W_t t), and

        min  Σ over triplets of max(0, m − f(x⁺, q) + f(x⁻, q)),

    where x⁺ was clicked for q and x⁻ is a random picture that was not. A word weighs 1 + log((1 + n)/(1 + n_w)), where
    n_w of the n log queries hold it, and t has unit length. A query without a known word (`answers`) is the zero
    vector.

    Bai et al., "Learning to rank with (a lot of) word features", Information Retrieval 2010, without the identity that
    needs both sides to be words, as used by Dong et al., "Cross-media similarity evaluation for web image retrieval in
    the wild", TMM 2018, equations 5 to 7: 200 dimensions, margin 1, batches of 100, at most 50,000 words, a rate that
    decays. Their code uses pairs of 2 clicks or more and at most 20 pictures per query, and stops after four epochs
    that did not improve. Adagrad, the scale of the features, the start and other defaults are ours.

    Use it where queries are long, or new combinations of words that the log knows; `Text2Image` is ahead on those that
    people repeat.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    max_words : int
        Words that occur in the most log queries are kept.
    margin : float
        m, by how much a clicked picture must score higher than another.
    min_clicks : float
        Pairs with fewer clicks make no triplet.
    max_images : int
        The most clicked pictures of a query that make triplets.
    epochs, batch_size : int
        Passes over the pairs, and triplets per step.
    learning_rate, decay : float
        The first rate of Adagrad, and by how much it is multiplied after each epoch.
    held_out : float
        Share of the queries on which the best epoch is chosen; 0, or fewer than 20 queries, keeps the last.
    patience : int
        Epochs without an improvement, in all, after which training ends.
    random_state : int
        Of the start, the order and the triplets.

    Attributes
    ----------
    words_, idf_, text_weights_ :
        The words, their weights and their vectors.
    mean_, projection_ :
        What maps pictures.
    losses_, held_out_losses_ : array
        Mean loss of each epoch, on the triplets trained with and on those held out.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import PSI
    >>> log = ClickLog.from_triads(["red boat", "boats", "cat"], ["1.jpg", "2.jpg", "3.jpg"], [3, 1, 2])
    >>> model = PSI(n_components=4).fit_clicks(log, np.eye(3))
    >>> model.scores(["cats", "boat"], np.eye(3)).argmax(axis=1).tolist()
    [2, 1]
    """

    when_to_use: ClassVar[str] = "A large click log whose queries combine known words anew."

    n_components: Count = 200

    def answers(self, query: str) -> bool:
        """Tell whether a word of ``query`` is known; all scores are 0 otherwise."""
        self._check_fitted()
        return any(word in self._columns for word in clean_query(query))

    def _query_side(self, log: ClickLog, sets: WordSets, rng: np.random.Generator) -> tuple[QuerySide, BoolArray]:
        holders = np.bincount(sets.members, minlength=len(sets.words))
        kept = np.sort(np.argsort(-holders, kind="stable")[: self.max_words])
        self.words_ = tuple(sets.words[row] for row in kept)
        self.idf_ = 1 + np.log((1 + len(sets)) / (1 + holders[kept]))
        self.__dict__.pop("_columns", None)
        words = self._weighted_words(sets[number] for number in range(len(sets)))
        start = rng.normal(scale=1 / np.sqrt(self.n_components), size=(len(kept), self.n_components))
        return WordQueries(words, start.astype(np.float32)), np.diff(words.indptr) > 0

    def _encode_queries(self, queries: Sequence[str]) -> AnyArray:
        return np.asarray(self._weighted_words(clean_query(query) for query in queries) @ self.text_weights_)

    def _weighted_words(self, queries: Iterable[Collection[str]]) -> scipy.sparse.csr_array:
        """Return one row of unit length per query, zero for one without a known word."""
        columns, values, offsets = [], [], [0]
        for query in queries:
            known = sorted({self._columns[word] for word in query if word in self._columns})
            weights = self.idf_[known]
            columns += known
            values.append(weights / max(np.linalg.norm(weights), np.finfo(np.float64).tiny))
            offsets.append(len(columns))
        data = np.concatenate(values).astype(np.float32)
        return scipy.sparse.csr_array(
            (data, np.array(columns, dtype=np.int64), offsets), shape=(len(values), len(self.words_))
        )

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.words_)}


class FixedQueries:
    """The text side of a ranking that learns the pictures' side alone."""

    def __init__(self, points: FloatArray) -> None:
        self._points = points

    @property
    def weights(self) -> None:
        """Nothing is learned."""
        return None

    def points(self, rows: IntArray) -> FloatArray:
        """Return the points of some queries."""
        return self._points[rows]

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Leave them where they are."""


@dataclass(kw_only=True, eq=False, repr=False)
class DeViSE(MarginRankingModel):
    """Deep visual-semantic embedding: pictures are mapped to where the words of their queries are.

    With t(q) the mean of the vectors of the words of q, scaled to unit length and left as it is,
    f(x, q) = (W(x − μ))ᵀ t(q), and

        min  Σ over triplets of max(0, m − f(x⁺, q) + f(x⁻, q)),

    where x⁺ was clicked for q and x⁻ is a random picture that was not. Words without a vector are skipped; a query
    without any other (`answers`) is the zero vector.

    Frome et al., "DeViSE: a deep visual-semantic embedding model", NIPS 2013, with margin 0.1; as used by Dong et al.,
    "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, who train it like `PSI` with
    margin 1, on word vectors of their own (:func:`~diptych.encoders.skip_gram`). The network of the pictures is not
    trained further; what is ours is listed at `PSI`. Use it for words that the log does not hold.

    Parameters
    ----------
    vectors : str or path
        A source of :func:`~diptych.encoders.load_word_vectors`, or ``"log"``: vectors trained on the queries of the
        log, which needs the package gensim.
    max_words : int
        The commonest words of the table that are kept, besides those of the log.
    margin, min_clicks, max_images, epochs, batch_size, learning_rate, decay, held_out, patience, random_state :
        As in `PSI`.

    Attributes
    ----------
    words_, word_vectors_ :
        The words and their vectors; once fitted, the model needs no other file.
    mean_, projection_, losses_, held_out_losses_ : array
        As in `PSI`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import DeViSE
    >>> log = ClickLog.from_triads(["boat", "cat"], ["1.jpg", "2.jpg"], [3, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     _ = path.write_text("boat 1.0 0.0\\nship 0.9 0.1\\ncat 0.0 2.0\\n")
    ...     model = DeViSE(vectors=path).fit_clicks(log, np.eye(2))
    >>> model.scores(["ships", "cats"], np.eye(2)).argmax(axis=1).tolist()
    [0, 1]
    """

    command_name: ClassVar[str] = "devise"
    when_to_use: ClassVar[str] = "A click log, and queries with words that nobody has clicked for yet."

    vectors: str | PathLike[str] = "auto"
    margin: Positive = 0.1

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; a path is told as text, so that the model can be saved."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if isinstance(self.vectors, PathLike):
            parameters["vectors"] = str(self.vectors)
        return parameters

    def answers(self, query: str) -> bool:
        """Tell whether a word of ``query`` has a vector; all scores are 0 otherwise."""
        self._check_fitted()
        return any(word in self._table for word in clean_query(query))

    def _query_side(self, log: ClickLog, sets: WordSets, rng: np.random.Generator) -> tuple[QuerySide, BoolArray]:
        own = self.vectors == "log"
        table = skip_gram(list(log.queries), seed=self.random_state) if own else load_word_vectors(self.vectors)
        asked = table.rows(sets.words)
        kept = np.union1d(np.arange(min(self.max_words, len(table))), asked[asked >= 0])
        self.words_, self.word_vectors_ = tuple(table.words[row] for row in kept), table.vectors[kept]
        self.__dict__.pop("_table", None)
        points = self._points(sets[number] for number in range(len(sets)))
        return FixedQueries(points), np.abs(points).max(axis=1) > 0

    def _encode_queries(self, queries: Sequence[str]) -> AnyArray:
        return self._points(clean_query(query) for query in queries)

    def _points(self, queries: Iterable[Collection[str]]) -> FloatArray:
        """Return the unit mean vector of each query, zero for one without a known word."""
        means = []
        for query in queries:
            rows = self._table.rows(query)
            means.append(self._table.vectors[rows[rows >= 0]].sum(axis=0))
        return unit_rows(np.array(means, dtype=np.float32))

    @cached_property
    def _table(self) -> WordVectors:
        return WordVectors(self.words_, self.word_vectors_)
