"""What MNiL reads: pictures as squares of bytes, texts as word numbers, and pairs in batches."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.data.item_sequences import SelectedItems, as_items
from diptych.encoders import WordVectors
from diptych.errors import InvalidInputError

Squares = NDArray[np.uint8]

# Bytes of decoded pictures beyond which they are kept in a mapped temporary file.
MEMORY = 1 << 32
PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def distinct_pictures(images: Sequence[Any] | AnyArray) -> tuple[IntArray, IntArray]:
    """Return (the first row of each distinct picture, for each row the number of its picture).

    Paths are compared as text, arrays byte by byte.

    >>> rows, picture_of = distinct_pictures(["a.png", "b.png", "a.png"])
    >>> rows.tolist(), picture_of.tolist()
    ([0, 1], [0, 1, 0])
    """
    keys = _keys(images)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    picture_of = np.array([numbers[key] for key in keys], dtype=np.int64)
    return np.unique(picture_of, return_index=True)[1], picture_of


def squares(images: Sequence[Any] | AnyArray, rows: IntArray, side: int, *, memory: int = MEMORY) -> Squares:
    """Return the pictures at ``rows`` as (n, side, side, 3) bytes, whole pictures squeezed into the square.

    An array of such pictures that is wanted whole is returned as it is, mapped or not.
    """
    are_squares = isinstance(images, np.ndarray) and images.shape[1:] == (side, side, 3)
    if are_squares and np.array_equal(rows, np.arange(len(images))):
        return np.asarray(images)
    made = _allocated((len(rows), side, side, 3), memory)

    def place(number: int) -> None:
        made[number] = square(images[int(rows[number])], side)

    with ThreadPoolExecutor() as threads:
        list(threads.map(place, range(len(rows))))
    return made


def square(picture: Any, side: int) -> Squares:
    """Return one picture as (side, side, 3) bytes."""
    if isinstance(picture, np.ndarray) and picture.shape == (side, side, 3) and picture.dtype == np.uint8:
        return picture
    # Pillow is only needed for pictures that are not yet squares of bytes.
    from PIL import Image

    from diptych.encoders.image.picture_decoding import read_picture

    image = Image.fromarray(read_picture(picture, shortest_side=side))
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def check_pictures(images: Any) -> Sequence[Any] | AnyArray:
    """Return ``images`` as a sequence of pictures, or raise."""
    if isinstance(images, np.ndarray) and images.ndim == 2:
        raise InvalidInputError("images are a matrix, but this model looks at pixels; use image_tower='features'")
    are_bytes = isinstance(images, np.ndarray) and images.ndim == 4 and images.dtype == np.uint8
    found: Sequence[Any] | AnyArray = images if are_bytes else as_items(images, name="images")
    if len(found) == 0:
        raise InvalidInputError("there are no images; pass at least one")
    return found


def _allocated(shape: tuple[int, ...], memory: int) -> Squares:
    if np.prod(shape, dtype=np.int64) <= memory:
        return np.empty(shape, dtype=np.uint8)
    # The file has no name any more once it is mapped, so nothing is left behind.
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)


def _keys(images: Sequence[Any] | AnyArray) -> list[Hashable]:
    if isinstance(images, SelectedItems):
        # One row of a lazy sequence is one picture: no need to make it.
        return [int(row) for row in images.rows]
    # Objects of a list live as long as the list; one that is made when asked for may take the place of the one before.
    digests: dict[int, bytes] | None = {} if isinstance(images, (list, tuple)) else None
    return [_key(picture, digests) for picture in images]


def _key(picture: Any, digests: dict[int, bytes] | None) -> Hashable:
    if isinstance(picture, (str, os.PathLike)):
        return os.fspath(picture)
    if isinstance(picture, bytes):
        return picture
    # The same object several times over, as aligned captions give it, is looked at once.
    known = None if digests is None else digests.get(id(picture))
    if known is None:
        pixels = np.asarray(picture)
        known = hashlib.blake2b(f"{pixels.shape}".encode() + pixels.tobytes(), digest_size=16).digest()
        if digests is not None:
            digests[id(picture)] = known
    return known


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows, in the order of their numbers.

    >>> vocabulary = Vocabulary.learned(["A red boat.", "a red house"], min_texts=1)
    >>> vocabulary.words
    ('a', 'red', 'boat', 'house')
    >>> word_ids, lengths = vocabulary.word_ids(["a blue boat", "red"], max_words=20)
    >>> word_ids.tolist(), lengths.tolist()
    ([[2, 1, 4], [3, 0, 0]], [3, 1])
    """

    words: tuple[str, ...]

    @classmethod
    def learned(cls, texts: Sequence[str], min_texts: int) -> Vocabulary:
        """Take the words that occur in at least ``min_texts`` of the texts, the commonest first."""
        counts = Counter(word for text in texts for word in dict.fromkeys(_words(text)))
        kept = [(word, count) for word, count in counts.items() if count >= min_texts]
        if not kept:
            raise InvalidInputError(f"no word occurs in {min_texts} texts; lower min_texts or pass more texts")
        return cls(tuple(word for word, _ in sorted(kept, key=lambda entry: -entry[1])))

    @property
    def n_ids(self) -> int:
        """How many numbers there are: the words, padding, and one for all unknown words."""
        return FIRST_WORD + len(self.words)

    def word_ids(self, texts: Sequence[str], max_words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return word numbers, padded with zeros to the longest text, and lengths; a text without words is unknown."""
        known = {word: number for number, word in enumerate(self.words, start=FIRST_WORD)}
        numbers = [[known.get(word, UNKNOWN) for word in _words(text)[:max_words]] or [UNKNOWN] for text in texts]
        lengths = np.array([len(row) for row in numbers], dtype=np.int64)
        word_ids = np.full((len(numbers), int(lengths.max())), PADDING, dtype=np.int64)
        for row, found in enumerate(numbers):
            word_ids[row, : len(found)] = found
        return word_ids, lengths


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def initial_word_vectors(vocabulary: Vocabulary, table: WordVectors, rng: np.random.Generator) -> FloatArray:
    """Return one vector for each number of ``vocabulary``: those of ``table`` where it knows the word.

    They are scaled to a mean square of 1, that of the standard normal numbers which words the table lacks get.

    >>> table = WordVectors(["boat", "cat"], np.array([[3.0, 0.0], [0.0, 3.0]]))
    >>> vectors = initial_word_vectors(Vocabulary(("cat", "yeti", "boat")), table, np.random.default_rng(0))
    >>> np.allclose(vectors[[2, 4]], [[0, 2**0.5], [2**0.5, 0]])
    True
    """
    rows = table.rows(vocabulary.words)
    known = np.flatnonzero(rows >= 0)
    found = table.vectors[rows[known]].astype(np.float64)
    scale = float(np.sqrt((found**2).mean())) if len(known) else 0.0
    if scale == 0.0:
        raise InvalidInputError("no word of the texts has a vector in word_vectors; choose others, or None")
    vectors = rng.standard_normal((vocabulary.n_ids, table.n_features), dtype=np.float32)
    vectors[FIRST_WORD + known] = found / scale
    return vectors


def token_numbers(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each text the rows of its tokens, padded with zeros, where all tokens stand one after the other.

    >>> token_numbers(np.array([2, 3])).tolist()
    [[0, 1, 0], [2, 3, 4]]
    """
    places = np.arange(int(lengths.max()))
    starts = np.cumsum(lengths) - lengths
    return np.where(places < lengths[:, None], starts[:, None] + places, 0)


@dataclass(frozen=True)
class PairOrder:
    """Pictures, and the rows of the texts that are shown with each, in random order.

    >>> order = PairOrder.drawn(np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> sorted(zip(order.pictures.tolist(), map(sorted, order.texts.tolist())))
    [(0, [0, 1]), (1, [2, 3])]
    """

    pictures: IntArray
    texts: IntArray

    @classmethod
    def drawn(cls, picture_of: IntArray, texts_per_picture: int, rng: np.random.Generator) -> PairOrder:
        """Cut each picture's texts, shuffled, into groups; a group that lacks texts is filled from the first ones."""
        shuffled = np.lexsort((rng.random(len(picture_of)), picture_of))
        pictures, starts, counts = np.unique(picture_of[shuffled], return_index=True, return_counts=True)
        n_groups = -(-counts // texts_per_picture)
        owner = np.repeat(np.arange(len(pictures)), n_groups)
        first = np.arange(len(owner)) - np.repeat(np.cumsum(n_groups) - n_groups, n_groups)
        within = first[:, None] * texts_per_picture + np.arange(texts_per_picture)
        rows = shuffled[starts[owner][:, None] + within % counts[owner][:, None]]
        mixed = rng.permutation(len(owner))
        return cls(pictures[owner][mixed], rows[mixed])

    def __len__(self) -> int:
        return len(self.pictures)

    def batches(self, size: int) -> list[PairOrder]:
        """Return equal batches; what is left over waits for another epoch, unless it is everything."""
        whole = min(size, len(self))
        starts = range(0, len(self) - whole + 1, whole)
        return [PairOrder(self.pictures[start : start + whole], self.texts[start : start + whole]) for start in starts]

    def share(self, rank: int, n_ranks: int) -> PairOrder:
        """Return one process's part of a batch."""
        part = slice(rank * len(self) // n_ranks, (rank + 1) * len(self) // n_ranks)
        return PairOrder(self.pictures[part], self.texts[part])


@dataclass(frozen=True)
class TrainingPairs:
    """Pictures (or features), each once, and texts that say which picture they describe."""

    pictures: AnyArray
    picture_of: IntArray
    word_ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: FloatArray | None  # 0/1 indicator of each text's classes, None where only the own picture is relevant

    def __len__(self) -> int:
        return len(self.picture_of)

    def parted(self, share: float, most: int, rng: np.random.Generator) -> tuple[TrainingPairs, TrainingPairs | None]:
        """Return (the rest, pairs of a drawn ``share`` of the pictures, ``most`` at most); a single one is left in."""
        n_held_out = min(int(share * len(self.pictures)), most)
        if n_held_out < 2:
            return self, None
        drawn = rng.permutation(len(self.pictures))
        return self.of_pictures(drawn[n_held_out:]), self.of_pictures(drawn[:n_held_out])

    def of_pictures(self, chosen: IntArray) -> TrainingPairs:
        """Return the pairs of the chosen pictures; the pictures themselves are not copied."""
        rows = np.flatnonzero(np.isin(self.picture_of, chosen))
        labels = None if self.labels is None else self.labels[rows]
        return TrainingPairs(self.pictures, self.picture_of[rows], self.word_ids[rows], self.lengths[rows], labels)
