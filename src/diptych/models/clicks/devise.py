from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors, skip_gram
from diptych.models.base import check_count
from diptych.models.clicks._margin_ranking import MarginRankingModel, QuerySide
from diptych.models.clicks.click_model import WordSets


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

    words_: tuple[str, ...]
    word_vectors_: FloatArray

    def __init__(
        self,
        *,
        vectors: str | PathLike[str] = "auto",
        max_words: int = 50_000,
        margin: float = 0.1,
        min_clicks: float = 0.0,
        max_images: int = 20,
        epochs: int = 20,
        batch_size: int = 100,
        learning_rate: float = 0.05,
        decay: float = 0.9,
        held_out: float = 0.1,
        patience: int = 4,
        random_state: int = 0,
    ) -> None:
        self.vectors = vectors
        self.max_words = max_words
        self.margin = margin
        self.min_clicks = min_clicks
        self.max_images = max_images
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.held_out = held_out
        self.patience = patience
        self.random_state = random_state

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_words", self.max_words)

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
