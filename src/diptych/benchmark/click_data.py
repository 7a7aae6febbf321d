"""What methods for click logs learn from, a log simulated from captions, and the judged queries they are asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.data import CrowdJudgement, DatasetSplits, ExpertJudgement, Pairs, load_dataset
from diptych.data.clicks import ClickLog
from diptych.encoders import EfficientNetLite, Encoder, FeatureCache, SentenceEncoder, Visualness, clean_query
from diptych.errors import InvalidInputError, MissingDataError
from diptych.metrics import GradedRelevance
from diptych.protocols import with_noise

_MIN_CAPTIONS = 2
# One in so many queries of Clickture chooses weights.
_CHOOSING = 5
_MIN_PICTURES = 5
_QUERIES_AT_ONCE = 512
FEATURES = {"lite2": "EfficientNet-Lite2", "lite0": "EfficientNet-Lite0", "lite1": "EfficientNet-Lite1"}
"""Image features by name, and what they are."""


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Queries, and a sparse matrix of the grades of the pictures that were judged for each, zeros stored.

    Grades are those of Dong et al. (2018): 3 is excellent, 2 good and 0 bad. Columns are the pictures of one part of a
    data set, rows of ``queries``.
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
    return _lists(
        "experts", splits.test, ((one.caption_id, one.image_id, _grade(one.mean_score, 3.5, 2.5)) for one in judged)
    )


def crowd_lists(splits: DatasetSplits) -> JudgedLists:
    """Return Flickr8k's test captions as queries, with the pictures crowd workers judged for them.

    All workers say yes: excellent (3); at least half of them: good (2); fewer: bad (0). The map is ours. Captions for
    which no judged picture is good are left out.
    """
    judged: Iterable[CrowdJudgement] = splits.extra("crowd_judgements")
    return _lists("crowd", splits.test, ((one.caption_id, one.image_id, _grade(one.share, 1, 0.5)) for one in judged))


def caption_lists(pairs: Pairs, *, near: int = 10, far: int = 20, seed: int = 0) -> JudgedLists:
    """Return the first caption of every picture as a query, with grades that captions give: to choose parameters on.

    The candidates are the picture itself, grade 3; the ``near`` others whose captions hold most of the query's words,
    grade 2 where they hold all of them and 0 otherwise; and ``far`` drawn at random, grade 0. They are not judged: use
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
    grade 0, all drawn at random: 58 in all by default, as a query of IRC-MM15-test has on average. They are not judged:
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


def _grade(score: float, excellent: float, good: float) -> float:
    return 3.0 if score >= excellent else 2.0 if score >= good else 0.0


def _lists(title: str, test: Pairs, judged: Iterable[tuple[str, str, float]]) -> JudgedLists:
    of_caption: dict[str, dict[str, float]] = {}
    for caption, image, grade in judged:
        of_caption.setdefault(caption, {})[image] = grade
    useful = {caption: images for caption, images in of_caption.items() if max(images.values()) > 0}
    if not useful:
        raise InvalidInputError("no caption has a picture that was judged good; check the judgements")
    text_of = dict(zip(test.text_ids.tolist(), test.texts, strict=True))
    column_of = {name: column for column, name in enumerate(test.ids.tolist())}
    asked = [
        (str(text_of[caption]), {column_of[image]: grade for image, grade in images.items() if image in column_of})
        for caption, images in useful.items()
    ]
    return _listed(title, asked, test.n_images)


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
        relevant = found >= np.minimum(_MIN_CAPTIONS, n_captions)
        if relevant.sum() >= _MIN_PICTURES:
            queries.append(word)
            columns.append(relevant)
    if not queries:
        raise InvalidInputError("no visual word of the training captions is common enough in the test captions")
    everything = np.indices((len(queries), test.n_images)).reshape(2, -1)
    grades = sparse.csr_array(
        (np.stack(columns).ravel().astype(float), everything), shape=(len(queries), test.n_images)
    )
    return JudgedLists("single words", tuple(queries), grades)


def simulate_clicks(
    pairs: Pairs,
    *,
    searches: int = 3,
    shown: int = 10,
    own: float = 0.9,
    others: float = 0.7,
    noise: float = 0.1,
    seed: int = 0,
) -> ClickLog:
    """Return the clicks that simulated people leave who look for the pictures of a captioned data set.

    The log is **simulated**. For every caption somebody looks for its picture:

    1. The query is a run of the caption's words in the sense of :func:`~diptych.encoders.clean_query`. Its length is
       uniform from two words to all of them; a caption of one word is asked as it is, one of none is not asked.
    2. A search engine shows the ``shown`` pictures whose captions together hold the largest share of the query's
       words; ties are broken at random, but the picture that is looked for is shown.
    3. The query is asked ``searches`` times. Each time, the picture that is looked for is clicked with probability
       ``own``, and every other one with ``others`` times the square of the share of the query's words that its captions
       hold. With probability ``noise`` one picture of the whole data set, drawn at random, is clicked besides.

    Clicks on one picture for queries with the same words add up. All draws come from ``seed``. Use it to fit methods
    for click logs where no log is at hand, never to judge them: what people clicked here was decided by captions.

    >>> from diptych.benchmark.click_data import simulate_clicks
    >>> from diptych.data import Pairs
    >>> pairs = Pairs(["1.jpg", "2.jpg"], ["a black dog runs", "two cats"], ids=["1", "2"])
    >>> log = simulate_clicks(pairs, own=1.0, others=0.0, noise=0.0)
    >>> list(log.images), log.clicks.tolist()
    (['1', '2'], [3.0, 3.0])
    """
    for name, count in (("searches", searches), ("shown", shown)):
        if count < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {count}")
    rng = np.random.default_rng(seed)
    words = [clean_query(text) for text in pairs.texts]
    asked = [row for row, listed in enumerate(words) if listed]
    if not asked:
        raise InvalidInputError("no caption has a word that counts, so there is nothing to ask")
    queries = [_run_of_words(words[row], rng) for row in asked]
    vocabulary = {word: column for column, word in enumerate(sorted({word for listed in words for word in listed}))}
    owners = np.asarray(pairs.owners)
    holds = _indicator(words, vocabulary, owners, pairs.n_images)
    asks = _indicator(queries, vocabulary, np.arange(len(queries)), len(queries))
    rows: list[FloatArray] = []
    for block in row_blocks(len(queries), _QUERIES_AT_ONCE):
        shares = _shares(asks[block], holds)
        wanted = owners[asked][block]
        chance = others * shares**2
        chance[np.arange(len(wanted)), wanted] = own
        page = _shown_pictures(shares, wanted, min(shown, pairs.n_images), rng)
        clicks = rng.binomial(searches, np.take_along_axis(chance, page, axis=1))
        rows.append(_triads(block.start, page, clicks, rng.binomial(searches, noise, len(wanted)), pairs.n_images, rng))
    triads = np.concatenate(rows)
    spelt = [" ".join(query) for query in queries]
    return ClickLog.from_triads(
        [spelt[int(query)] for query in triads[:, 0]],
        [str(pairs.ids[int(image)]) for image in triads[:, 1]],
        triads[:, 2],
    ).merged()


def _run_of_words(words: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    length = int(rng.integers(min(2, len(words)), len(words) + 1))
    start = int(rng.integers(0, len(words) - length + 1))
    return tuple(words[start : start + length])


def _indicator(
    texts: Sequence[Sequence[str]], vocabulary: dict[str, int], rows: AnyArray, n_rows: int
) -> sparse.csr_array:
    """Return which of the words each row's texts hold."""
    places = [(int(row), vocabulary[word]) for row, text in zip(rows, texts, strict=True) for word in text]
    found = sparse.csr_array((np.ones(len(places)), tuple(zip(*places, strict=True))), shape=(n_rows, len(vocabulary)))
    found.data[:] = 1
    return found


def _shares(asks: sparse.csr_array, holds: sparse.csr_array) -> FloatArray:
    """Return for each query and picture the share of the query's words that the picture's captions hold."""
    common = (asks @ holds.T).toarray()
    return np.asarray(common / asks.sum(axis=1).reshape(-1, 1))


def _shown_pictures(shares: FloatArray, wanted: AnyArray, shown: int, rng: np.random.Generator) -> IntArray:
    # Shares are fractions of a few words: noise below 1e-6 decides among equals only.
    order = shares + 1e-6 * rng.random(shares.shape)
    order[np.arange(len(wanted)), wanted] = 2
    return np.asarray(np.argpartition(-order, shown - 1, axis=1)[:, :shown])


def _triads(
    first: int, page: IntArray, clicks: IntArray, astray: IntArray, n_images: int, rng: np.random.Generator
) -> FloatArray:
    query, place = np.nonzero(clicks)
    lost = np.repeat(np.arange(len(page)), astray)
    return np.concatenate(
        [
            np.column_stack([first + query, page[query, place], clicks[query, place]]),
            np.column_stack([first + lost, rng.integers(0, n_images, len(lost)), np.ones(len(lost))]),
        ]
    )


@dataclass(frozen=True, eq=False)
class WebData:
    """A click log with features of its pictures, and lists to rank.

    ``features`` are keyed by the name of a network and the part of the data set. ``lists`` are ranked in the test part;
    ``development`` in the development part, to choose weights and parameters by; each of ``elsewhere`` in the pictures
    of another data set, a part by the same name.
    """

    splits: DatasetSplits
    log: ClickLog
    features: Mapping[str, Mapping[str, FloatArray]]
    lists: Mapping[str, JudgedLists]
    development: JudgedLists
    text_encoder: Encoder
    elsewhere: Mapping[str, JudgedLists] = field(default_factory=dict)

    def logged(self, feature: str) -> FloatArray:
        """Return the features of the log's pictures, in its order."""
        rows: FloatArray = self.features[feature]["train"][self._rows]
        return rows

    @cached_property
    def _rows(self) -> IntArray:
        return self.log.image_rows(self.splits.train.ids.tolist())

    def every_list(self) -> dict[str, tuple[JudgedLists, str]]:
        """Return each list with the part whose pictures it ranks."""
        own = {name: (lists, "test") for name, lists in self.lists.items()} | {"captions": (self.development, "dev")}
        return own | {name: (lists, name) for name, lists in self.elsewhere.items()}


def flickr8k_web(*, seed: int = 0) -> WebData:
    """Return Flickr8k with clicks simulated on its training part, and the human judgements of its test part.

    Where Pascal Sentence is at hand, its photographs are another test that nothing is learned or chosen on.
    """
    splits = load_dataset("flickr8k")
    parts, elsewhere = dict(splits.parts), {}
    with suppress(MissingDataError):
        parts["pascal"] = load_dataset("pascal_sentence", test_size=900).test
        elsewhere["pascal"] = class_lists(parts["pascal"])
    lists = {
        "experts": expert_lists(splits),
        "crowd": crowd_lists(splits),
        "words": word_lists(splits.train, splits.test),
    }
    assert splits.dev is not None
    development = caption_lists(splits.dev)
    log = simulate_clicks(splits.train, seed=seed)
    return WebData(splits, log, _features(parts), lists, development, SentenceEncoder(), elsewhere)


def _features(parts: Mapping[str, Pairs]) -> dict[str, dict[str, FloatArray]]:
    """Return the features of every part by each network."""
    cache = FeatureCache()
    return {
        name: {part: cache.encode(EfficientNetLite(network=name), list(pairs.images)) for part, pairs in parts.items()}
        for name in FEATURES
    }


def mirflickr_web(*, seed: int = 0) -> WebData:
    """Return MIRFlickr with tags as clicks, and its annotated concepts as queries that rank every test photograph.

    This is the first experiment of Dong et al. (2018). Weights are chosen on a third of the training photographs, drawn
    at random, as the paper samples 5,000 of its 15,000.
    """
    splits = load_dataset("mirflickr")
    queries: tuple[str, ...] = splits.extra("queries")
    sample = np.random.default_rng(seed).permutation(splits.train.n_images)[: max(1, splits.train.n_images // 3)]
    splits = replace(splits, dev=splits.train.select(np.sort(sample)))
    assert splits.dev is not None
    log: ClickLog = splits.extra("tags_as_clicks")
    lists = {"words": annotated_lists(queries, splits.test)}
    development = annotated_lists(queries, splits.dev)
    return WebData(splits, log, _features(splits.parts), lists, development, SentenceEncoder())


def annotated_lists(queries: Sequence[str], pairs: Pairs) -> JudgedLists:
    """Return one query for each label; every picture is ranked, and those that have the label are relevant."""
    relevant = np.asarray(pairs.labels).T
    everything = np.indices(relevant.shape).reshape(2, -1)
    grades = sparse.csr_array((relevant.ravel().astype(float), everything), shape=relevant.shape)
    return JudgedLists("annotated concepts", tuple(queries), grades)


def clickture_web() -> WebData:
    """Return Clickture-Lite's clicks, and the judged queries of its development set.

    Every fifth query chooses weights, the others are measured, so that none does both. Clicks on pictures that the
    table of pictures lacks are left out.
    """
    splits = load_dataset("clickture")
    splits = replace(splits, dev=splits.test)
    columns = {name: column for column, name in enumerate(splits.test.ids.tolist())}
    asked: dict[str, dict[int, float]] = {}
    for one in splits.extra("judgements"):
        asked.setdefault(one.query, {})[columns[one.image_id]] = float(one.grade)
    judged = _listed("judged web images", list(asked.items()), splits.test.n_images)
    numbers = np.arange(len(judged.queries))
    chooses = numbers % _CHOOSING == _CHOOSING - 1 if len(numbers) >= _CHOOSING else numbers == 0
    log: ClickLog = splits.extra("clicks")
    known = set(splits.train.ids.tolist())
    log = log.select(np.array([str(name) in known for name in log.images])[log.image_ids])
    features = _features({"train": splits.train, "test": splits.test})
    features = {name: {**parts, "dev": parts["test"]} for name, parts in features.items()}
    lists = {"experts": judged.select(np.flatnonzero(~chooses))}
    return WebData(splits, log, features, lists, judged.select(np.flatnonzero(chooses)), SentenceEncoder())


WEB_DATA: Mapping[str, Callable[[], WebData]] = {
    "flickr8k": flickr8k_web,
    "mirflickr": mirflickr_web,
    "clickture": clickture_web,
}
"""What `bench clicks --data` knows: the paper's two data sets, and one whose judgements are public."""
