"""A table of word vectors: nearest words, vectors of labels, and a table learned from one's own texts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix, row_blocks
from diptych.encoders.encoder import check_texts
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError, import_package

_DIGEST_ROWS = 10_000
_ROWS_AT_ONCE = 50_000
_LABEL_PIECE = re.compile(r"[^\s_/,;]+")
_LABEL_WORD = re.compile(r"[^\W_]+")


class WordVectors:
    """Words and their vectors, the commonest word first where the source says so.

    Words are looked up in lower case; a word that the table holds only with capitals ("Paris") is found as well. The
    vectors are never changed, may be a memory map, and are shared by copies.

    GloVe: Pennington et al., EMNLP 2014; word2vec: Mikolov et al., NIPS 2013. :func:`load_word_vectors` reads such
    tables.

    Parameters
    ----------
    words:
        One string per vector; of a repeated word the first counts.
    vectors:
        A (words, features) matrix of finite numbers, held as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import WordVectors
    >>> table = WordVectors(["boat", "cat"], np.array([[1.0, 0.0], [0.0, 2.0]]))
    >>> "cat" in table, "dog" in table, table["cat"].tolist()
    (True, False, [0.0, 2.0])
    >>> table.rows(["cat", "dog", "boat"]).tolist()
    [1, -1, 0]
    """

    def __init__(self, words: Sequence[str], vectors: AnyArray) -> None:
        self.words = tuple(words)
        self.vectors = as_matrix(vectors, name="word vectors").astype(np.float32, copy=False).view()
        self.vectors.flags.writeable = False
        if len(self.words) != len(self.vectors):
            raise InvalidInputError(
                f"there must be one vector per word, got {len(self.words)} words and {len(self.vectors)} vectors"
            )
        if not all(issubclass(kind, str) for kind in set(map(type, self.words))):
            raise InvalidInputError("words must be strings")

    @property
    def n_features(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> IntArray:
        """Return the row of each word in the table, −1 for a word that is not there."""
        find = self._row_of.get
        return np.array([find(word, -1) for word in words], dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """A digest of words and vectors, the same whatever file they came from."""
        digest = hashlib.sha256("\0".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(f"\0{self.vectors.shape}".encode())
        for rows in row_blocks(len(self.vectors), _DIGEST_ROWS):
            digest.update(np.ascontiguousarray(self.vectors[rows]).tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        # Backwards, so that the first of equal words stays; words as written last, so that "apple" is never "Apple".
        words, rows = self.words[::-1], range(len(self.words) - 1, -1, -1)
        return {**dict(zip(map(str.lower, words), rows, strict=True)), **dict(zip(words, rows, strict=True))}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._row_of

    def __getitem__(self, word: str) -> FloatArray:
        if word not in self._row_of:
            raise InvalidInputError(f"there is no vector for the word {word!r}; ask with `in` first")
        return np.asarray(self.vectors[self._row_of[word]])

    def __repr__(self) -> str:
        return f"<WordVectors of {len(self)} words, {self.n_features} features, {self.digest}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class NearWord(NamedTuple):
    """A word and the cosine of its vector with that of the word asked for."""

    word: str
    similarity: float


def nearest_words(table: WordVectors, word: str, k: int = 10) -> list[NearWord]:
    """Return the ``k`` words whose vectors have the largest cosine with that of ``word``, without the word itself.

    What a text encoder takes for the same thing can be read off them (Zhang et al., 2017, table 3, for words learned
    together with pictures; Mikolov et al., 2013, for words learned from text). Among equal cosines the earlier word of
    the table comes first.

    >>> import numpy as np
    >>> from diptych.encoders import WordVectors, nearest_words
    >>> table = WordVectors(["boat", "ship", "cat"], np.array([[1.0, 0.1], [2.0, 0.3], [0.0, 1.0]]))
    >>> [near.word for near in nearest_words(table, "boat", k=2)]
    ['ship', 'cat']
    """
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, got {k}")
    row = int(table.rows([word if word in table else word.lower()])[0])
    if row < 0:
        raise InvalidInputError(f"{word!r} is not among the {len(table):,} words that are known; ask for another")
    cosines = _cosines(table, row)
    cosines[row] = -np.inf
    order = np.argsort(-cosines, kind="stable")[: min(k, len(table) - 1)]
    return [NearWord(table.words[found], float(cosines[found])) for found in order]


def _cosines(table: WordVectors, row: int) -> np.ndarray:
    asked = table.vectors[row].astype(np.float64)
    cosines = np.empty(len(table))
    for block in row_blocks(len(table), _ROWS_AT_ONCE):
        vectors = table.vectors[block].astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        cosines[block] = (vectors @ asked) / np.where(lengths > 0, lengths, 1)
    return cosines


def label_vectors(labels: Sequence[str], table: WordVectors) -> tuple[FloatArray, BoolArray]:
    """Return the mean vector of each label's words, and which labels have one.

    Labels are cut at spaces, underscores, slashes and commas; a piece that the table does not know is cut further, at
    hyphens and apostrophes. Words without a vector are left out; a label without any vector gets a zero row and False.

    Norouzi et al., "Zero-shot learning by convex combination of semantic embeddings", ICLR 2014, and Dong et al.
    (2018) need this for the labels of a classifier.

    >>> import numpy as np
    >>> from diptych.encoders import WordVectors, label_vectors
    >>> table = WordVectors(["fire", "truck"], np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> vectors, known = label_vectors(["fire_truck", "Zyzzyva"], table)
    >>> vectors.tolist(), known.tolist()
    ([[1.0, 2.0], [0.0, 0.0]], [True, False])
    """
    vectors = np.zeros((len(labels), table.n_features), dtype=np.float32)
    known = np.zeros(len(labels), dtype=bool)
    for row, label in enumerate(labels):
        pieces = _LABEL_PIECE.findall(label.lower())
        words = ([piece] if piece in table else _LABEL_WORD.findall(piece) for piece in pieces)
        rows = table.rows(word for some in words for word in some)
        rows = rows[rows >= 0]
        if len(rows):
            vectors[row] = table.vectors[rows].mean(axis=0, dtype=np.float64)
            known[row] = True
    return vectors, known


def skip_gram(
    texts: Sequence[str],
    *,
    n_features: int = 100,
    window: int = 5,
    min_count: int = 5,
    n_negatives: int = 5,
    epochs: int = 5,
    seed: int = 0,
) -> WordVectors:
    """Train word vectors on queries, captions or tags: a word is known by the words beside it.

    The skip-gram with negative sampling maximises, over each word w and each word c at most ``window`` places away,

        log σ(⟨v_w, u_c⟩) + Σ over ``n_negatives`` random words n of log σ(−⟨v_w, u_n⟩),

    and v_w are the vectors. Mikolov et al., "Distributed representations of words and phrases and their
    compositionality", NIPS 2013; trained by the package gensim, in one thread, so that a seed gives the same vectors.
    Dong et al. (2018) train such vectors on the tags of 25 million pictures.

    Use it for a language, a trade or a slang that the vectors one can download do not know; millions of texts are
    needed to beat those in plain English. Texts are cut into words by :func:`clean_query`, the commonest word comes
    first, and words seen less than ``min_count`` times are left out. To keep the vectors, write
    ``np.savez(path, words=np.array(table.words), vectors=table.vectors)``, which :func:`load_word_vectors` reads.

    >>> from diptych.encoders import skip_gram
    >>> table = skip_gram(["red boat", "red ship", "black cat"] * 20, n_features=8, min_count=20)
    >>> table.words[0], len(table), table.n_features
    ('red', 5, 8)
    """
    check_texts(texts)
    for name, value in (("n_features", n_features), ("window", window), ("min_count", min_count), ("epochs", epochs)):
        if value < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {value}")
    sentences = [list(clean_query(text)) for text in texts]
    commonest = Counter(word for words in sentences for word in words).most_common(1)
    if not commonest or commonest[0][1] < min_count:
        raise InvalidInputError(f"no word occurs {min_count} times in the {len(texts)} texts; lower min_count")
    trained = (
        import_package("gensim.models", "training word vectors", "'diptych[words]'")
        .Word2Vec(
            sentences=sentences,
            sg=1,
            vector_size=n_features,
            window=window,
            min_count=min_count,
            negative=n_negatives,
            # Common words are not thinned out: those that say nothing have gone already.
            sample=0,
            epochs=epochs,
            seed=seed,
            workers=1,
        )
        .wv
    )
    return WordVectors(trained.index_to_key, np.asarray(trained.vectors))
