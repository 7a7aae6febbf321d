"""Queries with the pictures that somebody judged for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.data import CrowdJudgement, DatasetSplits, ExpertJudgement, Pairs
from diptych.encoders import Visualness, clean_query
from diptych.errors import InvalidInputError
from diptych.metrics import GradedRelevance
from diptych.protocols import with_noise


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Queries, and a sparse matrix of the grades of the pictures that were judged for each, zeros stored.

    Grades are those of Dong et al. (2018): 3 is excellent, 2 good and 0 bad. Columns are the pictures of one part of a
    data set, rows of ``queries``.

    >>> from scipy import sparse
    >>> from diptych.benchmark.web import JudgedLists
    >>> lists = JudgedLists("two queries", ("a dog", "a cat"), sparse.csr_array([[3, 0], [0, 2]]))
    >>> lists.n_judged, lists.with_noise(1).n_judged
    (2, 4)
    """

    title: str
    queries: tuple[str, ...]
    grades: sparse.csr_array

    def __post_init__(self) -> None:
        if self.grades.shape[0] != len(self.queries):
            raise InvalidInputError(f"{len(self.queries)} queries, but grades of {self.grades.shape[0]}")

    @property
    def n_judged(self) -> int:
        """How many pairs were judged."""
        return int(self.grades.nnz)

    @property
    def relevance(self) -> GradedRelevance:
        """The grades as measures take them: only what was judged for a query is ranked."""
        return GradedRelevance(self.grades, judged_only=True)

    def with_noise(self, fold: int, seed: int = 0) -> JudgedLists:
        """Return the lists with ``fold`` times as many irrelevant pictures; see `diptych.protocols.with_noise`."""
        return JudgedLists(self.title, self.queries, with_noise(self.grades, fold, seed=seed))

    def select(self, rows: Sequence[int] | IntArray) -> JudgedLists:
        """Return the lists of some queries."""
        chosen = np.asarray(rows, dtype=np.int64)
        return JudgedLists(self.title, tuple(self.queries[row] for row in chosen), self.grades[chosen])

    def candidates(self, query: int) -> tuple[IntArray, FloatArray]:
        """Return the columns that were judged for a query, and their grades."""
        stored = slice(self.grades.indptr[query], self.grades.indptr[query + 1])
        return self.grades.indices[stored], self.grades.data[stored]


def expert_lists(splits: DatasetSplits) -> JudgedLists:
    """Return Flickr8k's test captions as queries, with the pictures three experts judged for them.

    A mean score of 3.5 and more, of 4, is excellent (3), of 2.5 and more good (2), less is bad (0). The map is ours.
    Captions for which no judged picture is good tell methods apart in nothing and are left out.
    """
    judged: Iterable[ExpertJudgement] = splits.extra("expert_judgements")
    return _lists("experts", splits.test, ((one.caption_id, one.image_id, _grade(one.mean_score)) for one in judged))


def crowd_lists(splits: DatasetSplits) -> JudgedLists:
    """Return Flickr8k's test captions as queries, with the pictures crowd workers judged for them.

    All workers say yes: excellent (3); at least half of them: good (2); fewer: bad (0). The map is ours. Captions for
    which no judged picture is good are left out.
    """
    judged: Iterable[CrowdJudgement] = splits.extra("crowd_judgements")
    return _lists("crowd", splits.test, ((one.caption_id, one.image_id, _share_grade(one.share)) for one in judged))


def caption_lists(pairs: Pairs, *, near: int = 10, far: int = 20, seed: int = 0) -> JudgedLists:
    """Return the first caption of every picture as a query, with grades that captions give: to choose parameters on.

    The candidates are the picture itself, grade 3; the ``near`` others whose captions hold most of the query's words,
    grade 2 where they hold all of them and 0 otherwise; and ``far`` drawn at random, grade 0. Nobody judged these: use
    them on a development part, where human judgements must not be looked at.
    """
    words = [set(clean_query(text)) for text in pairs.texts]
    held: list[set[str]] = [set() for _ in range(pairs.n_images)]
    for row, owner in enumerate(np.asarray(pairs.owners).tolist()):
        held[owner] |= words[row]
    rng = np.random.default_rng(seed)
    asked: list[tuple[str, dict[int, float]]] = []
    for picture, row in _first_captions(pairs).items():
        if not words[row]:
            continue
        share = np.array([len(words[row] & other) / len(words[row]) for other in held])
        order = np.lexsort((rng.random(len(share)), -share))
        nearest = [int(other) for other in order if other != picture][:near]
        drawn = [other for other in rng.permutation(len(held)).tolist() if other not in {picture, *nearest}][:far]
        grades = {other: 2.0 * (share[other] == 1) for other in nearest}
        asked.append((str(pairs.texts[row]), {picture: 3.0} | grades | dict.fromkeys(drawn, 0.0)))
    return _listed("captions", asked, pairs.n_images)


def class_lists(pairs: Pairs, *, near: int = 19, far: int = 38, seed: int = 0) -> JudgedLists:
    """Return the first caption of every picture as a query, with grades that captions and classes give.

    The candidates are the picture itself, grade 3; ``near`` others of its class, grade 2; and ``far`` of other classes,
    grade 0, all drawn at random: 58 in all by default, as a query of IRC-MM15-test has on average. Nobody judged these:
    a picture of the same class may show something else than the caption says.
    """
    labels = np.asarray(pairs.labels)
    rng = np.random.default_rng(seed)
    asked: list[tuple[str, dict[int, float]]] = []
    for picture, row in _first_captions(pairs).items():
        others = [other for other in rng.permutation(pairs.n_images).tolist() if other != picture]
        alike = [other for other in others if labels[other] == labels[picture]][:near]
        unlike = [other for other in others if labels[other] != labels[picture]][:far]
        grades = {picture: 3.0} | dict.fromkeys(alike, 2.0) | dict.fromkeys(unlike, 0.0)
        asked.append((str(pairs.texts[row]), grades))
    return _listed("classes", asked, pairs.n_images)


def _first_captions(pairs: Pairs) -> dict[int, int]:
    """Return the first caption of each picture."""
    first: dict[int, int] = {}
    for row, owner in enumerate(np.asarray(pairs.owners).tolist()):
        first.setdefault(owner, row)
    return first


def _listed(title: str, asked: Sequence[tuple[str, dict[int, float]]], n_images: int) -> JudgedLists:
    rows = np.repeat(np.arange(len(asked)), [len(grades) for _, grades in asked])
    columns = [column for _, grades in asked for column in grades]
    values = [grade for _, grades in asked for grade in grades.values()]
    matrix = sparse.csr_array((values, (rows, columns)), shape=(len(asked), n_images))
    return JudgedLists(title, tuple(query for query, _ in asked), matrix)


def _grade(mean_score: float) -> float:
    return 3.0 if mean_score >= 3.5 else 2.0 if mean_score >= 2.5 else 0.0


def _share_grade(share: float) -> float:
    return 3.0 if share == 1 else 2.0 if share >= 0.5 else 0.0


def _lists(title: str, test: Pairs, judged: Iterable[tuple[str, str, float]]) -> JudgedLists:
    of_caption: dict[str, dict[str, float]] = {}
    for caption, image, grade in judged:
        of_caption.setdefault(caption, {})[image] = grade
    useful = {caption: images for caption, images in of_caption.items() if max(images.values()) > 0}
    if not useful:
        raise InvalidInputError("no caption has a picture that was judged good; check the judgements")
    text_of = dict(zip(test.text_ids.tolist(), test.texts, strict=True))
    column_of = {name: column for column, name in enumerate(test.ids.tolist())}
    places = [
        (row, column_of[image], grade)
        for row, images in enumerate(useful.values())
        for image, grade in images.items()
        if image in column_of
    ]
    rows, columns, grades = zip(*places, strict=True)
    matrix = sparse.csr_array((grades, (rows, columns)), shape=(len(useful), test.n_images), dtype=np.float64)
    return JudgedLists(title, tuple(str(text_of[caption]) for caption in useful), matrix)


_LEAST_CAPTIONS = 2
_LEAST_PICTURES = 5


def word_lists(train: Pairs, test: Pairs, *, count: int = 50, visualness: Visualness | None = None) -> JudgedLists:
    """Return the commonest visual words of the training captions as queries; every test picture is ranked for each.

    A picture is relevant to a word that at least two of its captions hold (one where it has a single caption). Words
    that ImageNet has no concept for, and words of fewer than five relevant test pictures, are left out. This has the
    form of the single-tag queries of Dong et al. (2018), MIRFlickr's 14 tags; captions stand for annotations.
    """
    seen = Visualness() if visualness is None else visualness
    frequency = Counter(word for text in train.texts for word in set(clean_query(text)))
    held = [set(clean_query(text)) for text in test.texts]
    owners = np.asarray(test.owners)
    n_captions = np.bincount(owners, minlength=test.n_images)
    queries: list[str] = []
    columns: list[BoolArray] = []
    for word, _ in frequency.most_common():
        if len(queries) == count:
            break
        if seen.of(word).visualness < 1:
            continue
        found = np.bincount(owners, weights=[word in words for words in held], minlength=test.n_images)
        relevant = found >= np.minimum(_LEAST_CAPTIONS, n_captions)
        if relevant.sum() >= _LEAST_PICTURES:
            queries.append(word)
            columns.append(relevant)
    if not queries:
        raise InvalidInputError("no visual word of the training captions is common enough in the test captions")
    everything = np.indices((len(queries), test.n_images)).reshape(2, -1)
    grades = sparse.csr_array(
        (np.stack(columns).ravel().astype(float), everything), shape=(len(queries), test.n_images)
    )
    return JudgedLists("single words", tuple(queries), grades)
