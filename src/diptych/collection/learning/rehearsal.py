"""Rehearsing a change of retriever: the present one and another answer a collection's own questions, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.collection import Collection
from diptych.collection.item import Item
from diptych.collection.learning.position_model import Impressions, PositionModel, corrected_clicks
from diptych.collection.learning.rehearsal_report import (
    RECIPROCAL_RANK,
    QuestionKind,
    RehearsalReport,
    RehearsedQuestion,
    RehearsedQuestions,
)
from diptych.collection.learning.rehearsal_sample import PictureSample, Progress, draw_items
from diptych.collection.learning.retriever_training import active_retriever, base_name
from diptych.collection.learning.search_log import word_groups
from diptych.collection.retriever_protocol import RetrieverProtocol, without_disk_cache
from diptych.collection.searching.encoded_query import query_features
from diptych.errors import InvalidInputError, counted
from diptych.metrics import GradedRelevance, MeanRank, RecallAtK, evaluate

_FIRST = 10
_TEXTS_AT_ONCE = 128


@dataclass(frozen=True)
class _Question:
    """A text, the rows of its right answers in the sample (none where nobody knows), and how often it was asked."""

    text: str
    right: tuple[int, ...]
    asked: float = 1.0


@dataclass(frozen=True, eq=False)
class _LoggedQueries:
    """Queries of a log by how often they were asked, and the items that people wanted for each."""

    asked: dict[str, float]
    wanted: dict[str, list[str]]
    is_corrected: bool

    @classmethod
    def of(cls, clicks: Impressions | None) -> _LoggedQueries:
        if clicks is None or not len(clicks.queries):
            return cls({}, {}, is_corrected=False)
        # Whoever searches sees the first position; later pages are further looks at the same search.
        times = np.bincount(clicks.query_ids, clicks.shown * (clicks.positions == 1), len(clicks.queries))
        order = np.argsort(-times, kind="stable").tolist()
        asked = {clicks.queries[row]: max(1.0, float(times[row])) for row in order}
        different, pair = clicks.pairs
        is_wanted = np.zeros(len(different), dtype=bool)
        if clicks.n_clicks:
            is_wanted = corrected_clicks(clicks, PositionModel().fit(clicks)).grades > 0
        is_corrected = bool(is_wanted.any())
        if not is_corrected:
            is_wanted = np.bincount(pair, clicks.clicked, len(different)) > 0
        wanted: dict[str, list[str]] = {}
        for query, item in zip(*np.divmod(different[is_wanted], len(clicks.items)), strict=True):
            wanted.setdefault(clicks.queries[query], []).append(clicks.items[item])
        return cls(asked, wanted, is_corrected)


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

    def run(self, clicks: Impressions | None = None, *, progress: Progress | None = None) -> RehearsalReport:
        """Ask both retrievers, and return what came out; ``clicks`` are what was shown and clicked, if that is known.

        ``progress`` is told what is being done, how much of it is done, and how much there is.
        """
        tell: Progress = progress or (lambda *_: None)
        logged = _LoggedQueries.of(clicks)
        contents = self._contents(item for found in logged.wanted.values() for item in found)
        items, n_unreadable = draw_items(self._collection, self._sample, set(contents.values()), self._random_state)
        self._check(items, contents)
        sample = PictureSample.encoded(self._collection, self._candidate, items, tell)
        captions, owners = self._captions(sample.items)
        judged, unjudged = self._logged(logged, contents, sample.items)
        answers, text_seconds = self._answers(captions, [*judged, *unjudged], sample, tell)
        n_captions = len(captions)
        parts = slice(0, n_captions), slice(n_captions, n_captions + len(judged))
        groups = [
            self._compared("captions", captions, owners, [each.part(parts[0]) for each in answers], sample),
            self._compared("queries", judged, _units(judged), [each.part(parts[1]) for each in answers], sample),
        ]
        first = [each.first[n_captions + len(judged) :] for each in answers]
        weights = np.array([question.asked for question in unjudged])
        status = self._collection.status()
        clicked = set(contents.values())
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
            overlap=float(np.average(_overlap(*first), weights=weights)) if unjudged else None,
            seconds=sample.seconds,
            reencode_seconds=sample.picture_seconds * status.pictures + text_seconds * status.captions,
            reads_pictures=sample.reads_pictures,
        )
        n_left_out = n_unreadable + len(items) - len(sample.items)
        return replace(report, notes=tuple(self._notes(report, logged, n_left_out)))

    def _contents(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the pictures of items by their ids; what the collection no longer has is left out."""
        found = {name: self._collection[name].content_hash for name in dict.fromkeys(ids) if name in self._collection}
        return {name: content for name, content in found.items() if content is not None}

    def _check(self, items: Sequence[Item], contents: dict[str, str]) -> None:
        if not items:
            raise InvalidInputError(
                "no picture of the collection can be read now, so that none can be encoded; bring the folder of the "
                "pictures back, or index it again with: diptych index FOLDER"
            )
        clicked = set(contents.values())
        if not any(item.captions or item.content_hash in clicked for item in items):
            raise InvalidInputError(
                "the collection has neither captions nor clicks, so nothing says which answers are right; add captions "
                "with `diptych index FOLDER --captions FILE`, or search and click in `diptych serve`"
            )

    def _captions(self, items: Sequence[Item]) -> tuple[list[_Question], IntArray]:
        """Return a draw of the captions as questions, and the picture of each."""
        every = [(text, row) for row, item in enumerate(items) for text in dict.fromkeys(item.captions)]
        drawn = np.random.default_rng(self._random_state).permutation(len(every))[: self._n_queries]
        chosen = [every[place] for place in np.sort(drawn).tolist()]
        return [_Question(text, (row,)) for text, row in chosen], np.array([row for _, row in chosen], dtype=np.int64)

    def _logged(
        self, logged: _LoggedQueries, contents: dict[str, str], items: Sequence[Item]
    ) -> tuple[list[_Question], list[_Question]]:
        """Return the most frequent logged queries with a wanted picture in the sample, and those without."""
        row_of = {item.content_hash: row for row, item in enumerate(items)}
        judged: list[_Question] = []
        unjudged: list[_Question] = []
        for text, asked in logged.asked.items():
            rows = {row_of.get(contents.get(item, "")) for item in logged.wanted.get(text, ())}
            right = tuple(sorted(row for row in rows if row is not None))
            (judged if right else unjudged).append(_Question(text, right, asked))
        return judged[: self._n_queries], unjudged[: self._n_queries]

    def _answers(
        self, captions: Sequence[_Question], queries: Sequence[_Question], sample: PictureSample, tell: Progress
    ) -> tuple[list[_Answers], float]:
        """Return what the present retriever and the candidate answer, and what a caption takes the candidate."""
        texts = [question.text for question in captions], [question.text for question in queries]
        present = self._collection.retriever
        features = _text_features(present, *texts, tell)
        is_shared = self._candidate.text_fingerprint == present.text_fingerprint
        started = time.perf_counter()
        others = features if is_shared else _text_features(self._candidate, *texts, tell)
        seconds = 0.0 if is_shared else (time.perf_counter() - started) / len(others)
        asked = (present, features, sample.old), (self._candidate, others, sample.new)
        return [_Answers.of(*each) for each in asked], seconds

    def _compared(
        self,
        kind: QuestionKind,
        questions: Sequence[_Question],
        units: IntArray,
        answers: Sequence[_Answers],
        sample: PictureSample,
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

    def _notes(self, report: RehearsalReport, logged: _LoggedQueries, n_left_out: int) -> list[str]:
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
            if not logged.is_corrected:
                notes.append("The clicks are too few to correct them for positions, so they are taken as they are.")
        if n_left_out:
            notes.append(f"{counted(n_left_out, 'picture')} could not be read, or changed, and stood back for others.")
        return notes


@dataclass(frozen=True, eq=False)
class _Answers:
    """What one retriever answers: its points, the rows it puts first, and whether even the best is no good match."""

    retriever: RetrieverProtocol
    queries: AnyArray
    gallery: AnyArray
    first: IntArray
    no_match: BoolArray

    @classmethod
    def of(cls, retriever: RetrieverProtocol, features: FloatArray, gallery: AnyArray) -> _Answers:
        queries = retriever.texts_to_points(features)
        first, best = [], []
        for _, scores in retriever.space.blocks(queries, gallery, "text_query"):
            first += [np.argsort(-line, kind="stable")[:_FIRST] for line in scores]
            best.append(scores.max(axis=1))
        probability = retriever.probability(np.concatenate(best), "text_to_image")
        # Words in which the encoder finds nothing have no good match, as in every search.
        is_unknown = ~np.any(features, axis=1)
        return cls(retriever, queries, gallery, np.stack(first), (probability < retriever.cutoff) | is_unknown)

    def part(self, rows: slice) -> _Answers:
        """Return the answers to some of the questions."""
        return replace(self, queries=self.queries[rows], first=self.first[rows], no_match=self.no_match[rows])

    def evaluated(self, relevance: GradedRelevance, measures: Sequence[MeanRank | RecallAtK]) -> list[FloatArray]:
        """Return the value of each question under each measure."""
        found = evaluate(self.queries, self.gallery, self.retriever.space, relevance, measures, direction="text_query")
        return [found.values[measure] for measure in measures]


def _text_features(
    retriever: RetrieverProtocol, captions: Sequence[str], queries: Sequence[str], progress: Progress
) -> FloatArray:
    """Return the features of captions, from the cache where they are known, and of queries, which are never kept."""
    parts = []
    done, total = 0, len(captions) + len(queries)
    for encode, texts in ((retriever.text_features, captions), (partial(query_features, retriever), queries)):
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            progress(f"asking {retriever.name}", done, total)
            parts.append(encode(texts[start : start + _TEXTS_AT_ONCE]))
            done += len(parts[-1])
    progress(f"asking {retriever.name}", done, total)
    return np.concatenate(parts)


def _units(questions: Sequence[_Question]) -> IntArray:
    return word_groups([question.text for question in questions])


def _overlap(old: IntArray, new: IntArray) -> FloatArray:
    """Return the share of first answers that two retrievers have in common, for each question.

    >>> _overlap(np.array([[1, 2, 3, 4]]), np.array([[4, 1, 7, 8]])).tolist()
    [0.5]
    """
    return np.asarray((old[:, :, None] == new[:, None, :]).any(axis=2).mean(axis=1))


def _is_learned(retriever: RetrieverProtocol) -> bool:
    """Return True if a retriever was fitted on pairs by its owner; those of the package have no comparison."""
    comparison = getattr(retriever, "comparison_", None)
    return comparison is not None and bool(comparison.replaced)
