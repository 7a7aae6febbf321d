"""Learning a better retriever from what people clicked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from diptych.collection.collection import Collection
from diptych.collection.learning.position_model import PositionModel
from diptych.collection.learning.retriever_training import (
    active_retriever,
    base_name,
    promote,
)
from diptych.collection.learning.search_log import SearchLog
from diptych.collection.learning.traffic_trial import MARGIN, Gain, LogGallery, Progress, TrafficTrial
from diptych.collection.learning.visual_consistency import VisualConsistencyTest
from diptych.collection.store.model_history import LearningRecord, from_to, utc_now
from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError, counted
from diptych.models.fusion.score_fusion import LinearForm
from diptych.retriever import Retriever

_EXAMPLES = 5
# Σ j^−1.5 over all j, so that all shares of the budget together are the whole.
_ZETA = 2.612375
_STRICTER = 10.0
# Fewer repeated queries are too few to decide.
_FEWEST_QUERIES = 30


@dataclass(frozen=True, eq=False)
class LearningReport:
    """The comparison on later searches, and the retriever that won it, None where the present one stays.

    ``record`` says why, and is what the history keeps. ``positions`` is None for clicks without positions.
    """

    record: LearningRecord
    retriever: Retriever | None = None
    positions: PositionModel | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_better(self) -> bool:
        """Whether the learned retriever won."""
        return self.retriever is not None


def spent_alpha(alpha: float, n_before: int) -> float:
    """Return what the next comparison may use of an error budget after ``n_before`` others: α j^−1.5 / Σ j^−1.5.

    All of them together use no more than ``alpha``, so that trying again and again does not buy a promotion.

    >>> from diptych.collection.learning.click_learning import spent_alpha
    >>> [round(spent_alpha(0.01, tried), 5) for tried in (0, 1, 9)]
    [0.00383, 0.00135, 0.00012]
    """
    return float(alpha * (n_before + 1) ** -1.5 / _ZETA)


class Learning:
    """Learns from the clicks of a collection, and changes its retriever only for a better one.

    A :class:`~diptych.models.QueryMemory` is learned from the earlier searches, with clicks corrected for where people
    look, and one voice for each visitor and query. It joins the retriever, and both are judged by the later searches of
    other people: how far up do the items come that they wanted, every search counting alike. It is promoted when three
    things hold: the gain on queries that are asked again is more than luck, whether people or queries are drawn anew
    (p below what the error budget leaves); what is clicked looks alike and scores high beyond luck
    (`VisualConsistencyTest`); and new queries are not worse by more than 1 %. Queries that nobody asked are
    answered exactly as before, unless whole queries that were kept back show that similar ones help.

    What was learned from clicks before is compared as it is, on searches that neither has seen; the new memory joins
    the retriever beneath. Items that nobody saw count neither for nor against. No picture is read: features come from
    the store.

    Parameters
    ----------
    collection :
        The collection, with a :class:`diptych.Retriever` whose space is an inner product or a cosine.
    held_out : float
        The share of searches, the latest, that judge.
    alpha : float
        The error budget: the chance that clicks without meaning are ever promoted, however often they are tried. A
        promotion renews it. Logs that do not tell visitors get a tenth of it.

    Examples
    --------
    >>> import tempfile
    >>> from diptych import Retriever
    >>> from diptych.collection import Collection
    >>> from diptych.collection.learning import Learning, SearchLog
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
    ...         shown = [item.id for item in collection]
    ...         log = SearchLog.from_searches([(n, f"visitor {n}", n, "a ball", 1, shown, {2}) for n in range(99)])
    ...         print(Learning(collection).run(log).record.reason)
    1 query was asked again by others, and 30 are needed to decide; collect clicks on 29 more
    """

    def __init__(self, collection: Collection, *, held_out: float = 0.3, alpha: float = 0.01) -> None:
        if not 0 < held_out <= 0.5:
            raise InvalidInputError(f"held_out is a share of at most 0.5, got {held_out}")
        if not 0 < alpha < 1:
            raise InvalidInputError(f"alpha must lie between 0 and 1, got {alpha}")
        self._collection = collection
        self._base_name = base_name(collection, "clicks")
        self._base = _learnable(collection, self._base_name)
        self._present = _learnable(collection, active_retriever(collection).name)
        self._held_out = held_out
        self._alpha = alpha

    def run(
        self,
        clicks: SearchLog | ClickLog,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> LearningReport:
        """Compare, promote what is better, and write it down; with ``dry_run`` compare only."""
        tell: Progress = progress or (lambda *_: None)
        report = self.compare(clicks, progress=tell)
        if dry_run:
            return report
        if report.retriever is None:
            self._collection.note_retriever(report.record)
            return report
        record = promote(
            self._collection,
            report.retriever,
            report.record,
            progress=lambda step: tell("reading every item with the new search model", step.done, step.total),
        )
        return replace(report, record=record, retriever=report.retriever if record.action == "promoted" else None)

    def compare(self, clicks: SearchLog | ClickLog, *, progress: Progress | None = None) -> LearningReport:
        """Learn, and compare on later searches; nothing is changed."""
        log, gallery = self._read(clicks)
        report = LearningReport(self._record(log), notes=_notes(log))
        before = _last_promotion(self._collection)
        seen_until = float(before.gate.get("seen_until", -np.inf)) if before else -np.inf
        trial = TrafficTrial(
            self._base,
            self._present,
            log,
            gallery,
            later=self._held_out,
            seen_until=seen_until,
            progress=progress or (lambda *_: None),
        )
        report = replace(report, positions=None if log.is_examined else trial.positions)
        if trial.n_repeated < _FEWEST_QUERIES:
            verb = "was" if trial.n_repeated == 1 else "were"
            since = "" if before is None else " since the present search model was learned"
            reason = (
                f"{counted(trial.n_repeated, 'query', 'queries')} {verb} asked again by others{since}, and "
                f"{_FEWEST_QUERIES} are needed to decide; collect clicks on {_FEWEST_QUERIES - trial.n_repeated} more"
            )
            return replace(report, record=replace(report.record, reason=reason))
        kept_back = trial.held_out()
        allowed = self._allowed(log)
        reach = kept_back.relative > 0 and kept_back.p_value < allowed
        repeated, new, examples = trial.gains(reach=reach)
        gains = {"repeated": repeated, "new": new, "held_out": kept_back}
        consistency = trial.visual_consistency()
        is_taken, reason = _decide(repeated, new, consistency, allowed)
        gate = {
            **{name: {**asdict(gain), "relative": gain.relative} for name, gain in gains.items()},
            "visual_consistency": asdict(consistency),
            "reach": reach,
            "margin": MARGIN,
            "allowed": allowed,
            "seen_until": float(log.times.max(initial=0.0)),
            "log": _digest(log),
        }
        examples.sort(key=lambda each: each[1] - each[2])
        record = replace(
            report.record,
            reason=reason,
            old=repeated.old,
            new=repeated.new,
            # Both must be more than luck: the larger p decides.
            p_value=max(repeated.p_value, consistency.p_value),
            alpha=allowed,
            n_held_out=repeated.n_queries,
            answered=repeated.share,
            gained=tuple(each for each in examples[:_EXAMPLES] if each[2] > each[1]),
            lost=tuple(each for each in examples[::-1][:_EXAMPLES] if each[2] < each[1]),
            gate=gate,
        )
        won = trial.fused("learned from clicks", reach=reach) if is_taken else None
        return replace(report, record=record, retriever=won)

    def _read(self, clicks: SearchLog | ClickLog) -> tuple[SearchLog, LogGallery]:
        if isinstance(clicks, ClickLog):
            gallery = LogGallery.of(self._collection, list(clicks.images), retriever=self._base_name)
            clicks = SearchLog.from_triads(clicks, gallery.ids)
        if not clicks.n_clicks:
            raise InvalidInputError(
                "the log has no click on a picture that was found by words; search and click in `diptych serve` first"
            )
        return clicks, LogGallery.of(self._collection, clicks.items, retriever=self._base_name)

    def _record(self, log: SearchLog) -> LearningRecord:
        now = active_retriever(self._collection)
        return LearningRecord(
            time=utc_now(),
            action="kept",
            **from_to(now, now),
            measure="DCG",
            compared_with=now.name,
            alpha=self._alpha,
            n_queries=len(log.queries),
            n_clicks=log.n_clicks,
        )

    def _allowed(self, log: SearchLog) -> float:
        """Return the largest p that changes anything: what is left of the error budget since the last promotion."""
        tried = set()
        for each in reversed(self._collection.retriever_history()):
            if each.origin != "clicks" or each.p_value is None:
                continue
            if each.action == "promoted":
                break
            tried.add(each.gate.get("log", each.time))
        # The same log again is the same comparison.
        share = spent_alpha(self._alpha, len(tried - {_digest(log)}))
        return share if log.has_visitors else share / _STRICTER


def _decide(repeated: Gain, new: Gain, consistency: VisualConsistencyTest, allowed: float) -> tuple[bool, str]:
    """Return whether what was learned is promoted, and why."""
    if repeated.relative <= 0:
        return False, "what was learned does not help with later searches"
    if consistency.p_value >= allowed:
        return False, (
            "what people click for a query has nothing in common that could be seen "
            f"(p = {consistency.p_value:.3g}), so nothing can be learned from it"
        )
    if repeated.p_value >= allowed:
        return False, f"later searches are answered better, but that may be luck (p = {repeated.p_value:.3g})"
    if not (new.is_no_worse and repeated.is_no_worse):
        return False, f"it cannot be ruled out that new queries lose more than {MARGIN:.0%}"
    return True, "later searches are answered better, by more than luck"


def _learnable(collection: Collection, name: str | None) -> Retriever:
    found = collection.retriever_named(name)
    if not isinstance(found, Retriever):
        raise InvalidInputError(f"a collection with a {type(found).__name__} cannot learn from clicks")
    try:
        LinearForm.of(found.space, found.name)
    except InvalidInputError:
        raise InvalidInputError(
            f"the search model {found.name!r} compares by {found.space.name}, which models of clicks cannot join; use "
            "one that compares by cosine or dot (`diptych train --method cca`)"
        ) from None
    return found


def _last_promotion(collection: Collection) -> LearningRecord | None:
    """Return how the retriever in force was learned from clicks, None where it was not."""
    now = active_retriever(collection).fingerprint
    promotions = (each for each in reversed(collection.retriever_history()) if each.action == "promoted")
    return next((each for each in promotions if each.after_fingerprint == now and each.origin == "clicks"), None)


def _notes(log: SearchLog) -> tuple[str, ...]:
    if log.is_examined:
        return ("the log tells neither positions nor what else was shown; other pictures were drawn for that",)
    if not log.has_visitors:
        return (
            "the log does not tell visitors apart, so one of them may have many voices; a tenth of alpha is allowed",
        )
    return ()


def _digest(log: SearchLog) -> str:
    """Return what tells logs apart: how much there is, and when it was last asked."""
    last = datetime.fromtimestamp(float(log.times.max(initial=0.0)), UTC).isoformat(timespec="seconds")
    return f"{len(log)} searches, {log.n_clicks} clicks, until {last}"
