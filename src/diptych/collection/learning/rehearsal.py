"""Rehearsing a change of retriever: the present one and another answer a collection's own questions, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as Contents
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.collection import Collection
from diptych.collection.indexing.file_facts import content_hash, file_status
from diptych.collection.item import Item
from diptych.collection.learning.position_model import PositionModel
from diptych.collection.learning.rehearsal_report import (
    RECIPROCAL_RANK,
    QuestionKind,
    RehearsalReport,
    RehearsedQuestion,
    RehearsedQuestions,
)
from diptych.collection.learning.retriever_training import active_retriever, base_name
from diptych.collection.learning.search_log import Evidence, SearchLog, word_groups
from diptych.collection.retriever_protocol import RetrieverProtocol, without_disk_cache
from diptych.collection.searching.encoded_query import query_features
from diptych.collection.store.scoring import Scoring
from diptych.errors import CollectionError, InvalidInputError, counted
from diptych.metrics import GradedRelevance, MeanRank, RecallAtK, evaluate
from diptych.models.clicks.query_memory import ClickMixture
from diptych.retriever.base import RetrieverBase

_FIRST = 10
_TEXTS_AT_ONCE = 128
_PICTURES_AT_ONCE = 32
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class _Question:
    """A text, the rows of its right answers in the sample (none where they are not known), how often it was asked."""

    text: str
    right: tuple[int, ...]
    asked: float = 1.0


@dataclass(frozen=True)
class _LoggedQuery:
    """A query of the log, how often it was asked, and the items that people wanted for it."""

    text: str
    asked: float
    wanted: list[str]


def _logged_queries(log: SearchLog | None) -> tuple[list[_LoggedQuery], bool]:
    """Return the queries, the most frequent first, and whether clicks could be corrected for positions."""
    if log is None or not len(log):
        return [], False
    times = np.bincount(log.query_ids, log.voices, len(log.queries))
    seen = Evidence.of(log, PositionModel().fit(log.impressions()))
    is_wanted = ClickMixture().fit(seen.clicks, seen.looks).wanted(seen.clicks, seen.looks) > 0.5
    is_corrected = bool(is_wanted.any())
    if not is_corrected:
        is_wanted = seen.clicks > 0
    wanted: list[list[str]] = [[] for _ in log.queries]
    for query, item in zip(seen.query_ids[is_wanted], seen.item_ids[is_wanted], strict=True):
        wanted[query].append(log.items[item])
    order = np.argsort(-times, kind="stable").tolist()
    return [_LoggedQuery(log.queries[row], max(1.0, float(times[row])), wanted[row]) for row in order], is_corrected


class Rehearsal:
    """Compares the retriever of a collection with another one before anything is changed.

    A sample of the pictures is encoded by the candidate; the points of the present retriever come from the store, and
    nothing is written to the collection. Both then rank the same sample for the same questions. A caption should find
    its own picture; captions of one picture count as one in the test. A logged query should find what people clicked,
    corrected for positions and accidents as `Learning` does, and weighs as much as it was asked; spellings of one query
    count as one. Logged queries without clicks have no right answer: of these only the overlap of the first ten answers
    is told. A randomisation test and a bootstrap interval say how far luck explains the differences.

    Parameters
    ----------
    collection :
        The collection, with captions or clicks.
    candidate :
        The retriever that might replace the present one.
    sample : int
        How many pictures are drawn, those with captions or clicks first; fewer pictures are all taken.
    n_queries : int
        How many questions of each kind are asked at most: a draw of the captions, the most frequent queries.
    alpha : float
        The difference is taken for more than luck where p is below.
    random_state : int
        Of all draws.

    Examples
    --------
    >>> import tempfile
    >>> from diptych import Retriever
    >>> from diptych.collection import Collection
    >>> from diptych.collection.learning import Rehearsal
    >>> from diptych.data import load_dataset, read_captions
    >>> from diptych.data.datasets.scenes import write_folder
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA
    >>> pairs = load_dataset("scenes", n_train=60, n_test=20, size=32).train
    >>> encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> made = [Retriever(model=CCA(n_components=n), name=f"CCA {n}", cache=False, **encoders) for n in (1, 8)]
    >>> weak, strong = (retriever.fit(pairs, baseline=None) for retriever in made)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scenes = write_folder(f"{folder}/scenes", 20, size=32)
    ...     with Collection.create(f"{folder}/c", weak, root=folder) as collection:
    ...         _ = collection.add(read_captions(scenes / "captions.json", scenes).values())
    ...         report = Rehearsal(collection, strong).run()
    >>> report.n_sample, report.old, report.new, [group.kind for group in report.questions]
    (20, 'CCA 1', 'CCA 8', ['captions'])
    """

    def __init__(
        self,
        collection: Collection,
        candidate: RetrieverProtocol,
        *,
        sample: int = 500,
        n_queries: int = 1000,
        alpha: float = 0.05,
        random_state: int = 0,
    ) -> None:
        if sample < 2 or n_queries < 1:
            raise InvalidInputError(f"sample must be at least 2 and n_queries at least 1, got {sample} and {n_queries}")
        if not 0 < alpha < 1:
            raise InvalidInputError(f"alpha must lie between 0 and 1, got {alpha}")
        self._collection = collection
        self._present = active_retriever(collection)
        if candidate.fingerprint == self._present.fingerprint:
            raise InvalidInputError(
                f"the collection uses this search model already, as {self._present.name!r}, so there is nothing to "
                "compare; name another one"
            )
        # Its pace is to be measured, and the words of queries are nobody's business.
        self._candidate = without_disk_cache(candidate)
        self._new_name = candidate.name if candidate.name != self._present.name else f"{candidate.name} (new)"
        self._sample = sample
        self._n_queries = n_queries
        self._alpha = alpha
        self._random_state = random_state

    def run(self, log: SearchLog | None = None, *, progress: Progress | None = None) -> RehearsalReport:
        """Ask both retrievers, and return what came out; ``log`` has what was searched and clicked, if that is known.

        ``progress`` is told what is being done, how much of it is done, and how much there is.
        """
        tell: Progress = progress or (lambda *_: None)
        logged, is_corrected = _logged_queries(log)
        contents = self._contents(item for query in logged for item in query.wanted)
        clicked = set(contents.values())
        items, n_unreadable = self._draw(clicked)
        self._check(items, clicked)
        sample = _Sample.encoded(self._collection, self._candidate, items, tell)
        captions = self._captions(sample.items)
        judged, unjudged = self._logged(logged, contents, sample.items)
        of_captions = self._answers("captions", captions, sample, tell)
        of_judged, of_unjudged = (self._answers("queries", each, sample, tell) for each in (judged, unjudged))
        owners = np.array([row for question in captions for row in question.right], dtype=np.int64)
        groups = [
            self._compared("captions", captions, owners, of_captions, sample),
            self._compared("queries", judged, word_groups([question.text for question in judged]), of_judged, sample),
        ]
        status = self._collection.status()
        caption_seconds = of_captions[1].seconds / max(1, len(captions)) if of_captions else 0.0
        report = RehearsalReport(
            old=self._present.name,
            old_fingerprint=self._present.fingerprint,
            new=self._new_name,
            new_fingerprint=self._candidate.fingerprint,
            n_sample=len(sample.items),
            n_captioned=sum(bool(item.captions) for item in sample.items),
            n_clicked=sum(item.content_hash in clicked for item in sample.items),
            n_pictures=status.pictures,
            n_captions=status.captions,
            random_state=self._random_state,
            alpha=self._alpha,
            questions=tuple(group for group in groups if group is not None),
            n_unjudged=len(unjudged),
            overlap=_overlap(unjudged, of_unjudged),
            seconds=sample.seconds,
            reencode_seconds=sample.picture_seconds * status.pictures + caption_seconds * status.captions,
            reads_pictures=sample.reads_pictures,
        )
        n_left_out = n_unreadable + len(items) - len(sample.items)
        return replace(report, notes=tuple(self._notes(report, is_corrected, n_left_out)))

    def _draw(self, clicked: Contents[str]) -> tuple[list[Item], int]:
        """Return items with different pictures that can be read, and how many had to be passed over.

        Those whose content was clicked come first, then those with captions: others have nothing to be judged by.
        """
        items = [item for item in self._collection if item.path is not None and item.content_hash is not None]
        use = np.array([2 * (item.content_hash in clicked) + bool(item.captions) for item in items], dtype=np.int64)
        drawn = np.random.default_rng(self._random_state).permutation(len(items))
        chosen: dict[str, Item] = {}
        n_unreadable = 0
        for row in drawn[np.argsort(-use[drawn], kind="stable")].tolist():
            content = str(items[row].content_hash)
            if len(chosen) == self._sample:
                break
            if content in chosen:
                continue
            if _is_as_stored(self._collection, items[row]):
                chosen[content] = items[row]
            else:
                n_unreadable += 1
        return list(chosen.values()), n_unreadable

    def _contents(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the pictures of items by their ids; what the collection no longer has is left out."""
        found = {name: self._collection[name].content_hash for name in dict.fromkeys(ids) if name in self._collection}
        return {name: content for name, content in found.items() if content is not None}

    def _check(self, items: Sequence[Item], clicked: Contents[str]) -> None:
        if not items:
            raise InvalidInputError(
                "no picture of the collection can be read now, so that none can be encoded; bring the folder of the "
                "pictures back, or index it again with: diptych index FOLDER"
            )
        if not any(item.captions or item.content_hash in clicked for item in items):
            raise InvalidInputError(
                "the collection has neither captions nor clicks, so nothing says which answers are right; add captions "
                "with `diptych index FOLDER --captions FILE`, or search and click in `diptych serve`"
            )

    def _captions(self, items: Sequence[Item]) -> list[_Question]:
        """Return a draw of the captions as questions."""
        every = [_Question(text, (row,)) for row, item in enumerate(items) for text in dict.fromkeys(item.captions)]
        drawn = np.random.default_rng(self._random_state).permutation(len(every))[: self._n_queries]
        return [every[place] for place in np.sort(drawn).tolist()]

    def _logged(
        self, logged: Sequence[_LoggedQuery], contents: dict[str, str], items: Sequence[Item]
    ) -> tuple[list[_Question], list[_Question]]:
        """Return the most frequent logged queries with a wanted picture in the sample, and those without."""
        row_of = {item.content_hash: row for row, item in enumerate(items)}
        found: tuple[list[_Question], list[_Question]] = [], []
        for query in logged:
            right = {row_of[contents[item]] for item in query.wanted if contents.get(item) in row_of}
            found[not right].append(_Question(query.text, tuple(sorted(right)), query.asked))
        return found[0][: self._n_queries], found[1][: self._n_queries]

    def _answers(
        self, kind: QuestionKind, questions: Sequence[_Question], sample: _Sample, tell: Progress
    ) -> list[_Answers]:
        """Return what the present retriever and the candidate answer; nothing where there are no questions."""
        if not questions:
            return []
        texts, present = [question.text for question in questions], self._collection.retriever
        features = _text_features(present, kind, texts, tell)
        others, seconds = features, 0.0
        if self._candidate.text_fingerprint != present.text_fingerprint:
            started = time.perf_counter()
            others = _text_features(self._candidate, kind, texts, tell)
            seconds = time.perf_counter() - started
        return [
            _Answers.of(present, texts, features, sample.old),
            replace(_Answers.of(self._candidate, texts, others, sample.new), seconds=seconds),
        ]

    def _compared(
        self,
        kind: QuestionKind,
        questions: Sequence[_Question],
        units: IntArray,
        answers: Sequence[_Answers],
        sample: _Sample,
    ) -> RehearsedQuestions | None:
        if not questions:
            return None
        measures = (MeanRank(), RecallAtK(1), RecallAtK(10))
        shape = len(questions), len(sample.items)
        pairs = [(row, item) for row, question in enumerate(questions) for item in question.right]
        right = sparse.csr_array((np.ones(len(pairs)), tuple(np.array(pairs).T)), shape=shape)
        old, new = (each.evaluated(GradedRelevance(right), measures) for each in answers)
        ids = [item.id for item in sample.items]
        told = [
            RehearsedQuestion(
                question.text,
                question.asked,
                float(old[0][row]),
                float(new[0][row]),
                tuple(ids[item] for item in question.right),
                *(tuple(ids[item] for item in each.first[row].tolist()) for each in answers),
            )
            for row, question in enumerate(questions)
        ]
        names = [measure.label for measure in measures[1:]]
        values = [(RECIPROCAL_RANK, 1 / old[0], 1 / new[0]), *zip(names, old[1:], new[1:], strict=True)]
        no_match = answers[0].no_match, answers[1].no_match
        return RehearsedQuestions.measured(kind, told, units, no_match, values, random_state=self._random_state)

    def _notes(self, report: RehearsalReport, is_corrected: bool, n_left_out: int) -> list[str]:
        """Return what makes the comparison less fair, or less sure, than it looks."""
        notes, kinds = [], {group.kind for group in report.questions}
        if report.n_sample < report.n_pictures:
            notes.append(
                f"Ranks are those among the {report.n_sample:,} pictures of the sample; among all pictures right "
                "answers stand lower, with either search model."
            )
        base = base_name(self._collection, "clicks")
        if "captions" in kinds and _is_learned(self._collection.retriever_named(base)):
            notes.append(
                f"{base} was learned from captions, most likely from these: it has seen the answers, which favours "
                f"{report.old} here and not with new pictures."
            )
        if "captions" in kinds and _is_learned(self._candidate):
            notes.append(
                f"{report.new} was learned from captions; if these are among them it has seen the answers, which "
                "favours it here."
            )
        if "queries" in kinds:
            learned = "" if base == report.old else f" {report.old} was even learned from clicks."
            notes.append(
                f"People could only click what they were shown, mostly by {report.old}: clicks favour it.{learned}"
            )
            if not is_corrected:
                notes.append("The clicks are too few to correct them for positions, so they are taken as they are.")
        if n_left_out:
            notes.append(f"{counted(n_left_out, 'picture')} could not be read, or changed, and stood back for others.")
        return notes


@dataclass(frozen=True, eq=False)
class _Answers:
    """What one retriever answers: its points, the rows it puts first, and whether even the best is no good match.

    ``seconds`` is what encoding the questions took.
    """

    retriever: RetrieverProtocol
    queries: AnyArray
    gallery: AnyArray
    first: IntArray
    no_match: BoolArray
    seconds: float = 0.0

    @classmethod
    def of(
        cls, retriever: RetrieverProtocol, texts: Sequence[str], features: FloatArray, gallery: AnyArray
    ) -> _Answers:
        queries = retriever.texts_to_points(features)
        first, best = [], []
        for _, scores in retriever.space.blocks(queries, gallery, "text_query"):
            first += [np.argsort(-line, kind="stable")[:_FIRST] for line in scores]
            best.append(scores.max(axis=1))
        top = np.concatenate(best)
        # Retrievers of one's own may have one cut-off for everything.
        if isinstance(retriever, RetrieverBase):
            has_match = retriever.has_match(texts, queries, top, len(gallery))
        else:
            has_match = retriever.probability(top, "text_to_image") >= retriever.cutoff
        # Words in which the encoder finds nothing have no good match, as in every search.
        is_unknown = ~np.any(features, axis=1)
        return cls(retriever, queries, gallery, np.stack(first), ~has_match | is_unknown)

    def evaluated(self, relevance: GradedRelevance, measures: Sequence[MeanRank | RecallAtK]) -> list[FloatArray]:
        """Return the value of each question under each measure."""
        found = evaluate(self.queries, self.gallery, self.retriever.space, relevance, measures, direction="text_query")
        return [found.values[measure] for measure in measures]


def _text_features(
    retriever: RetrieverProtocol, kind: QuestionKind, texts: Sequence[str], progress: Progress
) -> FloatArray:
    """Return the features of captions, from the cache where they are known, or of queries, which are never kept."""
    encode = retriever.text_features if kind == "captions" else partial(query_features, retriever)
    parts = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        progress(f"asking {retriever.name}", start, len(texts))
        parts.append(encode(texts[start : start + _TEXTS_AT_ONCE]))
    progress(f"asking {retriever.name}", len(texts), len(texts))
    return np.concatenate(parts)


def _overlap(questions: Sequence[_Question], answers: Sequence[_Answers]) -> float | None:
    """Return the share of first answers that two retrievers have in common; None without questions."""
    if not questions:
        return None
    old, new = (each.first for each in answers)
    shares = (old[:, :, None] == new[:, None, :]).any(axis=2).mean(axis=1)
    return float(np.average(shares, weights=[question.asked for question in questions]))


def _is_learned(retriever: RetrieverProtocol) -> bool:
    """Return True if a retriever was fitted on pairs by its owner; those of the package have no comparison."""
    comparison = getattr(retriever, "comparison_", None)
    return comparison is not None and bool(comparison.replaced)


def _is_as_stored(collection: Collection, item: Item) -> bool:
    """Return True if the file of an item can be opened and is still the picture that the stored point was made of."""
    path = collection.picture_of(item)
    if path is None:
        return False
    try:
        status = file_status(path)
        return (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns) or (
            content_hash(path) == item.content_hash
        )
    except InvalidInputError:
        return False


@dataclass(frozen=True, eq=False)
class _Sample:
    """Pictures with their points of two retrievers: stored ones of the old, fresh ones of the new.

    ``seconds`` is what encoding took, ``picture_seconds`` what a picture took, the first ones, which wait for the
    networks to be loaded, left out. ``reads_pictures`` is False where stored features serve the new retriever as well.
    """

    items: tuple[Item, ...]
    old: AnyArray
    new: AnyArray
    seconds: float
    picture_seconds: float
    reads_pictures: bool

    @classmethod
    def encoded(
        cls, collection: Collection, candidate: RetrieverProtocol, items: Sequence[Item], progress: Progress
    ) -> _Sample:
        """Take the stored points of some items, and encode their pictures with the candidate."""
        ids, old = collection.points("image", [item.id for item in items])
        known = {item.id: item for item in items}
        started = time.perf_counter()
        keeper = _with_same_features(collection, candidate)
        if keeper is None:
            files = [Path(str(collection.picture_of(known[item_id]))) for item_id in ids]
            rows, features, picture_seconds = _encoded_pictures(candidate, files, progress)
        else:
            found, features = collection.features("image", ids, keeper)
            row_of = {item_id: row for row, item_id in enumerate(ids)}
            rows, picture_seconds = [row_of[item_id] for item_id in found], 0.0
        if not rows:
            raise InvalidInputError(
                f"{candidate.name} cannot read any of the {len(items):,} pictures that were drawn; check the folder of "
                "the pictures with: diptych index FOLDER"
            )
        scoring, new_scoring = Scoring(collection.retriever.space, "text_query"), Scoring(candidate.space, "text_query")
        # As they would be stored, so that both retrievers are rounded alike.
        new = new_scoring.stored(candidate.images_to_points(features))
        return cls(
            items=tuple(known[ids[row]] for row in rows),
            old=scoring.comparable(old[rows], "image"),
            new=new_scoring.comparable(new, "image"),
            seconds=time.perf_counter() - started,
            picture_seconds=picture_seconds,
            reads_pictures=keeper is None,
        )


def _with_same_features(collection: Collection, candidate: RetrieverProtocol) -> str | None:
    """Return the name of a stored retriever whose image features are those of the candidate."""
    for stored in collection.retrievers():
        # Its encoders may not be on this machine.
        with suppress(CollectionError):
            if collection.retriever_named(stored.name).image_fingerprint == candidate.image_fingerprint:
                return stored.name
    return None


def _encoded_pictures(
    retriever: RetrieverProtocol, files: Sequence[Path], progress: Progress
) -> tuple[list[int], FloatArray, float]:
    """Return which files could be read, their features, and the seconds for each."""
    found: dict[int, AnyArray] = {}
    pace: list[float] = []
    for start in range(0, len(files), _PICTURES_AT_ONCE):
        progress(f"encoding pictures with {retriever.name}", start, len(files))
        began = time.perf_counter()
        part = files[start : start + _PICTURES_AT_ONCE]
        for batch in retriever.stream_image_features(part):
            found |= {start + row: features for row, features in zip(batch.rows, batch.features, strict=True)}
        pace.append((time.perf_counter() - began) / len(part))
    progress(f"encoding pictures with {retriever.name}", len(files), len(files))
    rows = sorted(found)
    features = np.stack([found[row] for row in rows]) if rows else np.zeros((0, 0), dtype=np.float32)
    return rows, features, float(np.mean(pace[1:] or pace or [0.0]))
