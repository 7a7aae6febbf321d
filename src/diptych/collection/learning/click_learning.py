"""Learning a better retriever from what people clicked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.collection import Collection
from diptych.collection.learning.corrected_clicks import CorrectedClicks, corrected_clicks, plain_clicks
from diptych.collection.learning.fusion_trial import PRESENT, FusionTrial, JudgedLists, LogGallery, Progress
from diptych.collection.learning.position_model import Impressions, PositionModel
from diptych.collection.learning.promotion import (
    LearningRecord,
    active_retriever,
    base_name,
    from_to,
    learning_history,
    promote,
    remember,
    utc_now,
)
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError
from diptych.metrics import NDCG, Measure, randomisation_test
from diptych.models.clicks import PSI, ClickModel, DeViSE, Text2Image
from diptych.models.fusion.fuse_scores import LinearForm
from diptych.retriever import Retriever


@dataclass(frozen=True, eq=False)
class LearningReport:
    """The comparison on held-out queries, and the retriever that won it, None where the present one stays.

    ``record`` says why, and is what the history keeps. ``positions`` is None for clicks without positions. ``held_out``
    are the queries of the comparison, with the values ``old`` and ``new`` of each.
    """

    record: LearningRecord
    retriever: Retriever | None = None
    positions: PositionModel | None = None
    held_out: tuple[str, ...] = ()
    old: FloatArray | None = None
    new: FloatArray | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_better(self) -> bool:
        """Whether the learned retriever won."""
        return self.retriever is not None


def word_groups(queries: Sequence[str]) -> IntArray:
    """Return a number for each query, the same for queries of the same words, which models of a log take for one.

    >>> word_groups(["a red ball", "dogs", "balls, red", "the"]).tolist()
    [0, 1, 0, 2]
    """
    numbers: dict[tuple[str, ...], int] = {}
    keys = [tuple(sorted(set(clean_query(query)))) or (query,) for query in queries]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def assign_folds(groups: IntArray, eligible: BoolArray, n_folds: int, seed: int) -> IntArray:
    """Return the fold of each query, −1 for groups without an eligible query; a group is dealt as a whole.

    >>> folds = assign_folds(np.array([0, 1, 0, 2]), np.array([True, True, False, False]), 2, seed=0)
    >>> bool(folds[0] == folds[2]), sorted(folds[:2].tolist()), int(folds[3])
    (True, [0, 1], -1)
    """
    candidates = np.random.default_rng(seed).permutation(np.unique(groups[eligible]))
    fold_of_group = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    fold_of_group[candidates] = np.arange(len(candidates)) % n_folds
    return np.asarray(fold_of_group[groups])


_EXAMPLES = 5


class Learning:
    """Learns from the clicks of a collection, and changes its retriever only for a better one.

    The queries are dealt into folds, by their words, so that no spelling of a held-out query is learned from. For each
    fold, models of the log (Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", IEEE
    TMM 2018) are learned from the corrected clicks of the other folds, and coordinate ascent weighs them against the
    retriever. Each held-out query then compares the fusion with the retriever by how far up each puts the wanted items
    among those shown. If the fusion is better and a randomisation test over the queries gives p < ``alpha``, the models
    are learned again from all queries and the fusion is promoted; otherwise everything stays as it is. No picture is
    read: features come from the store. A retriever that was learned from clicks before has seen the queries, so the one
    beneath it is compared, and the new models join that.

    Items that nobody saw count neither for nor against, and what the correction for positions gets wrong is wrong for
    both: interleaving two retrievers on live traffic is the unbiased check.

    Parameters
    ----------
    collection :
        The collection, with a :class:`diptych.Retriever` whose space is an inner product or a cosine.
    held_out : float
        The share of queries that is kept back at a time; 0.2 makes five folds.
    alpha : float
        The difference is taken for more than luck where p is below.
    seed : int
        Of all draws.
    measure : Measure or None
        Of an order, by grades from 0 to 3; None is NDCG of the first ten.
    parts : sequence of ClickModel or None
        Models of the log whose scores are inner products; None takes Text2Image, PSI and DeViSE.
    fewest_queries : int
        Fewer queries than these, with wanted and unwanted items, are too few to decide.

    Examples
    --------
    >>> import tempfile
    >>> from diptych import Retriever
    >>> from diptych.collection import Collection
    >>> from diptych.collection.learning import Impressions, Learning
    >>> from diptych.data import load_dataset
    >>> from diptych.data.datasets.scenes import write_folder
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA
    >>> pairs = load_dataset("scenes", n_train=60, n_test=20, size=32).train
    >>> encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> retriever = Retriever(model=CCA(n_components=8), cache=False, **encoders).fit(pairs, baseline=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_folder(f"{folder}/scenes", 6, size=32)
    ...     with Collection.create(f"{folder}/c", retriever, root=folder) as collection:
    ...         _ = collection.add(f"{folder}/scenes")
    ...         first, second, *_ = (item.id for item in collection)
    ...         seen = Impressions.from_rows([("a ball", first, 1, 99, 2), ("a ball", second, 2, 99, 30)])
    ...         print(Learning(collection).run(seen).record.reason)
    1 query tells wanted from unwanted items, and 50 are needed to decide; collect clicks on 49 more
    """

    def __init__(
        self,
        collection: Collection,
        *,
        held_out: float = 0.2,
        alpha: float = 0.01,
        seed: int = 0,
        measure: Measure | None = None,
        parts: Sequence[ClickModel] | None = None,
        fewest_queries: int = 50,
    ) -> None:
        if not 0 < held_out <= 0.5:
            raise InvalidInputError(f"held_out is a share of at most 0.5, got {held_out}")
        if not 0 < alpha < 1:
            raise InvalidInputError(f"alpha must lie between 0 and 1, got {alpha}")
        self._collection = collection
        self._base_name = base_name(collection)
        self._base = _learnable(collection, self._base_name)
        self._n_folds = max(2, round(1 / held_out))
        self._alpha = alpha
        self._seed = seed
        self._measure: Measure = NDCG(10, "ideal") if measure is None else measure
        self._parts: list[ClickModel] = [Text2Image(), PSI(), DeViSE()] if parts is None else list(parts)
        self._fewest = fewest_queries

    def run(
        self, clicks: Impressions | ClickLog, *, dry_run: bool = False, progress: Progress | None = None
    ) -> LearningReport:
        """Compare, promote what is better, and write it down; with ``dry_run`` compare only."""
        tell = progress or _tell_nobody
        report = self.compare(clicks, progress=tell)
        if dry_run:
            return report
        if report.retriever is None:
            remember(self._collection, report.record)
            return report
        record = promote(
            self._collection,
            report.retriever,
            report.record,
            progress=lambda step: tell("giving every item its new point", step.done, step.total),
        )
        return replace(report, record=record, retriever=report.retriever if record.action == "promoted" else None)

    def compare(self, clicks: Impressions | ClickLog, *, progress: Progress | None = None) -> LearningReport:
        """Learn, and compare on held-out queries; nothing is changed."""
        tell = progress or _tell_nobody
        positions: PositionModel | None = None
        if isinstance(clicks, Impressions):
            positions = PositionModel().fit(clicks)
            wanted = corrected_clicks(clicks, positions)
        else:
            wanted = plain_clicks(clicks)
        gallery = LogGallery.of(self._collection, wanted.items, retriever=self._base_name)
        drawn = np.random.default_rng(self._seed).permutation(len(gallery.ids))[:100]
        fillers = None if positions is not None else np.sort(drawn)
        lists = JudgedLists.of(wanted, gallery.row_of, fillers=fillers)
        report = LearningReport(self._record(clicks, wanted), positions=positions)
        if len(lists) < self._fewest:
            return replace(report, record=replace(report.record, reason=self._too_few(len(lists))))
        n_clicks, known = report.record.n_clicks, _learned_from(self._collection)
        if n_clicks < known / 2:
            reason = (
                f"the log has {n_clicks:,.0f} clicks, far fewer than the {known:,.0f} that the present retriever was "
                "learned from; roll back first to learn from this log alone"
            )
            return replace(report, record=replace(report.record, reason=reason))
        judged = set(lists.queries)
        eligible = np.array([query in judged for query in wanted.queries], dtype=bool)
        folds = assign_folds(word_groups(wanted.queries), eligible, self._n_folds, self._seed)
        if folds.max() < 1:
            reason = (
                "all queries that tell wanted from unwanted items have the same words, so none can be kept back; "
                "collect clicks on others"
            )
            return replace(report, record=replace(report.record, reason=reason))
        trial = FusionTrial(self._base, self._parts, wanted, gallery, lists, folds, progress=tell)
        old, new = trial.held_out(self._measure, self._seed)
        # Spellings of one query stand or fall together, so that they count as one.
        groups = word_groups(lists.queries)
        outcome = randomisation_test(_group_means(new, groups), _group_means(old, groups), seed=self._seed)
        weights = trial.weights(self._measure, self._seed)
        gained, lost = _examples(lists.queries, old, new)
        record = replace(
            report.record,
            reason=self._reason(outcome.difference, outcome.p_value, weights),
            old=float(old.mean()),
            new=float(new.mean()),
            p_value=outcome.p_value,
            n_held_out=len(lists),
            answered=trial.answered,
            parts=weights,
            gained=gained,
            lost=lost,
        )
        is_better = outcome.difference > 0 and outcome.p_value < self._alpha and len(weights) > 1
        return replace(
            report,
            record=record,
            retriever=trial.fused(weights, "learned from clicks") if is_better else None,
            held_out=lists.queries,
            old=old,
            new=new,
            notes=tuple(f"{name} was left out: {reason}" for name, reason in trial.failures.items()),
        )

    def _record(self, clicks: Impressions | ClickLog, wanted: CorrectedClicks) -> LearningRecord:
        now = active_retriever(self._collection)
        return LearningRecord(
            time=utc_now(),
            action="kept",
            **from_to(now, now),
            measure=self._measure.label,
            compared_with=self._base_name,
            alpha=self._alpha,
            n_queries=len(wanted.queries),
            n_clicks=clicks.n_clicks if isinstance(clicks, Impressions) else float(clicks.clicks.sum()),
        )

    def _too_few(self, n_judged: int) -> str:
        told = "1 query tells" if n_judged == 1 else f"{n_judged:,} queries tell"
        return (
            f"{told} wanted from unwanted items, and {self._fewest:,} are needed to decide; "
            f"collect clicks on {self._fewest - n_judged:,} more"
        )

    def _reason(self, difference: float, p_value: float, weights: dict[str, float]) -> str:
        if not any(weight for name, weight in weights.items() if name != PRESENT):
            return "the log adds nothing: its models got no weight"
        if difference <= 0:
            return "the fusion is not better on held-out queries"
        if p_value >= self._alpha:
            return f"the fusion is better on held-out queries, but that may be luck (p = {p_value:.3f})"
        return "the fusion is better on held-out queries, by more than luck"


def _learnable(collection: Collection, name: str | None) -> Retriever:
    found = collection.retriever_named(name)
    if not isinstance(found, Retriever):
        raise InvalidInputError(f"a collection with a {type(found).__name__} cannot learn from clicks")
    try:
        LinearForm.of(found.space, found.name)
    except InvalidInputError:
        raise InvalidInputError(
            f"the retriever {found.name!r} compares by {found.space.name}, which models of clicks cannot join; use one "
            "that compares by cosine or dot (`diptych train --method cca`)"
        ) from None
    return found


def _learned_from(collection: Collection) -> float:
    """Return how many clicks the retriever in force was learned from, 0 where it was not learned from any."""
    now = active_retriever(collection).fingerprint
    promotions = (each for each in reversed(learning_history(collection)) if each.action == "promoted")
    return next((each.n_clicks for each in promotions if each.after_fingerprint == now), 0.0)


def _group_means(values: FloatArray, groups: IntArray) -> FloatArray:
    return np.asarray(np.bincount(groups, values) / np.bincount(groups))


def _examples(
    queries: Sequence[str], old: FloatArray, new: FloatArray
) -> tuple[tuple[tuple[str, float, float], ...], tuple[tuple[str, float, float], ...]]:
    """Return the queries that gained and that lost most, with their values before and after."""
    order = np.argsort(old - new, kind="stable")
    told = [(queries[row], float(old[row]), float(new[row])) for row in order.tolist()]
    gained = tuple(each for each in told[:_EXAMPLES] if each[2] > each[1])
    lost = tuple(each for each in told[::-1][:_EXAMPLES] if each[2] < each[1])
    return gained, lost


def _tell_nobody(doing: str, done: int, total: int) -> None:
    del doing, done, total
