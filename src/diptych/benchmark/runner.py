"""Runs what is not done yet, in processes of this machine or on a Dask cluster, and keeps what is."""

from __future__ import annotations

import os
import platform
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from types import TracebackType
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from diptych._version import __version__
from diptych.arrays import FloatArray
from diptych.benchmark.catalogue import Catalogue, Unit
from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.task import Method, Reads, Task, one_line
from diptych.cluster import connect, dask_distributed
from diptych.codes import code_statistics
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError, MissingDataError, MissingPackageError
from diptych.estimators import clone
from diptych.metrics import (
    AP,
    CMC,
    CMCCurve,
    Curve,
    CurvePoints,
    HammingLookup,
    InterpolatedPrecisionRecall,
    MeanRank,
    Measure,
    PrecisionScope,
    Ties,
)
from diptych.models import CrossModalModel
from diptych.protocols import (
    DevelopmentPart,
    EncodedRetrieval,
    Fold,
    Retrieval,
    Training,
    TwoWayEvaluation,
    evaluate_model,
    evaluate_retrieval,
    tune,
)
from diptych.protocols.journal import Progress
from diptych.protocols.tuning import class_list
from diptych.space import DIRECTIONS, Direction, opposite

_ATTEMPTS = 3
_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_DIGITS = 6
_RADIUS = 2
_CMC = CMCCurve()
_FIRST_RANK = MeanRank()
# Exact but for queries with large groups of ties, those of short hash codes; of these two random orders are averaged.
# The exact expectation takes time with the fourth power of a group. The standard error of a level is at most
# 1/(2·√2·√queries), 0.013 for 693; no other number of a record is sampled.
_PRECISION_RECALL = InterpolatedPrecisionRecall(samples=2)
# Threads of linear algebra and the peak of memory belong to the whole process.
_ONE_AT_A_TIME = threading.Lock()

Stage = Callable[[str], AbstractContextManager[Progress]]


@contextmanager
def silent_stage(title: str) -> Iterator[Progress]:
    """Enter a long step without reporting progress."""
    del title
    yield lambda done, total: None


def package_versions() -> dict[str, str]:
    """Return the versions of Diptych, Python and what numbers are computed with."""
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"diptych": __version__, "python": platform.python_version(), **packages}


def machine_name() -> str:
    """Return the system, the processor's kind and the number of cores."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def provenance() -> dict[str, Any]:
    """Return what a written document of numbers says of its origin: when, by which versions, on which machine."""
    written = datetime.now(UTC).isoformat(timespec="seconds")
    return {"written": written, "versions": package_versions(), "machine": machine_name()}


def plain_value(value: Any) -> Any:
    """Return a value of a parameter as JSON has it, or its representation where JSON has none."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


class PeakMemory:
    """By how many bytes a piece of work raised the peak of the resident memory of this process.

    Work that stays below an earlier peak shows 0; measure it in a process of its own.
    """

    bytes: int = 0

    @property
    def megabytes(self) -> float:
        """The same in millions of bytes."""
        return self.bytes / 1e6

    def __enter__(self) -> PeakMemory:
        self._start = _peak_resident_bytes()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bytes = _peak_resident_bytes() - self._start


def _peak_resident_bytes() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024


@dataclass(frozen=True)
class Choice:
    """A fitted model, the parameters it was given, and how they did on the hold-outs (None where nothing was tried)."""

    model: CrossModalModel
    parameters: dict[str, Any]
    mean: float | None
    deviation: float | None
    trials: int
    tune_seconds: float
    fit_seconds: float


def choose(method: Method, training: Training, measure: Measure, progress: Progress | None = None) -> Choice:
    """Try every setting on the hold-outs, and fit the best on all training pairs.

    Training pairs are all that comes in; a single setting is fitted without a trial, and looked at on the development
    part where there is one, so that methods can be chosen by it.
    """
    from sklearn.model_selection import ParameterGrid

    settings = list(ParameterGrid([{name: list(values) for name, values in part.items()} for part in method.grid]))
    # Of the processor, like the fit's: units run side by side, and would slow each other's clock.
    start = time.process_time()
    if len(settings) == 1:
        model = training.fit(clone(method.model).set_params(**settings[0]), own_classes=method.own_classes)
        seconds = time.process_time() - start
        mean = None
        if isinstance(training.hold_outs, DevelopmentPart):
            mean = evaluate_model(model, training.hold_outs.held_out, [measure]).average(measure)
        return Choice(model, dict(settings[0]), mean, None, 0, 0.0, seconds)
    if training.pairs is None:
        raise InvalidInputError(f"{method.name} has settings to choose, and there is no pair to try them on")
    tuning = tune(
        method.model,
        training.pairs,
        method.grid,
        training.hold_outs,
        measure=measure,
        rescaled=method.rescaled,
        more=training.more,
        progress=progress,
    )
    spent = time.process_time() - start - tuning.fit_seconds
    best = tuning.best
    trials = len(tuning.trials)
    return Choice(tuning.model, best.parameters, best.mean, best.deviation, trials, spent, tuning.fit_seconds)


@dataclass(frozen=True)
class Failure:
    """What went wrong, in one line; ``missing`` where nothing is wrong but a package or data set is not here."""

    unit: Unit
    message: str
    missing: bool = False

    @classmethod
    def of(cls, unit: Unit, error: BaseException, *, missing: bool = False) -> Failure:
        """Describe an error in one line."""
        text = " ".join(str(error).split()) or "no message"
        return cls(unit, text if missing else f"{type(error).__name__}: {text}", missing)


def run_unit(catalogue: Catalogue, unit: Unit) -> Record | Failure:
    """Choose, fit and ask one method on one fold; whatever goes wrong becomes a `Failure`.

    Linear algebra runs on one thread, so that numbers do not depend on how many units run at once.
    """
    try:
        with _ONE_AT_A_TIME, threadpool_limits(limits=1):
            return measure_unit(catalogue, unit)
    except (MissingPackageError, MissingDataError) as error:
        return Failure.of(unit, error, missing=True)
    except Exception as error:
        return Failure.of(unit, error)


def measure_unit(catalogue: Catalogue, unit: Unit) -> Record:
    """Return the record of one unit; errors come through."""
    task = catalogue.task(unit.task)
    declared = task.method(unit.method)
    method = declared.seeded(unit.fold) if task.seeds_by_fold else declared
    fold = _fold(catalogue, unit.task, unit.fold, method.reads)
    record = measure_fold(task, method, fold, seed=catalogue.seed).record
    return replace(record, fingerprint=task.fingerprint(declared))


@dataclass(frozen=True, eq=False)
class Measured:
    """A record, and the fitted model, the points and the evaluation that it was made of."""

    record: Record
    choice: Choice
    encoded: EncodedRetrieval
    result: TwoWayEvaluation


def measure_fold(
    task: Task,
    method: Method,
    fold: Fold,
    *,
    seed: int = 0,
    ties: Ties = "expected",
    further: Sequence[Measure | Curve] = (),
    stage: Stage = silent_stage,
) -> Measured:
    """Choose, fit and ask one method on one fold; ``further`` measures are in the evaluation, not in the record."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with PeakMemory() as memory:
        # All that a method may see goes in here, and nothing else.
        with stage(f"fitting {method.name}") as advance:
            choice = choose(method, fold.training, task.measures[0], advance)
        with stage("asking"):
            begun = time.perf_counter()
            encoded = EncodedRetrieval.of(choice.model, fold.retrieval, relevant=task.relevant)
            encode_seconds = time.perf_counter() - begun
            begun = time.perf_counter()
            scope = None if task.is_brief else _precision_scope(fold.retrieval)
            curves: list[Measure | Curve] = [] if scope is None else [_FIRST_RANK, _CMC, _PRECISION_RECALL, scope]
            result = encoded.evaluate([*task.measures, *curves, *further], ties=ties)
            evaluate_seconds = time.perf_counter() - begun
            elsewhere = {
                name: evaluate_retrieval(choice.model, asked, [task.measures[0], AP()])
                for name, asked in fold.elsewhere.items()
            }
    seconds = {"tune": choice.tune_seconds, "fit": choice.fit_seconds}
    seconds |= {"encode": encode_seconds, "evaluate": evaluate_seconds}
    record = Record(
        task=task.name,
        dataset=task.dataset,
        setting=task.protocol.setting,
        features=task.features.label,
        method=method.name,
        method_title=method.title,
        fold=fold.number,
        group=method.group,
        n_bits=method.n_bits,
        seed=seed,
        train_classes=list(fold.train_classes),
        test_classes=list(fold.test_classes),
        n_train=0 if fold.training.pairs is None else fold.training.pairs.n_texts,
        train_class_counts=_class_counts(fold.training.pairs),
        **({} if task.is_brief else _query_counts(task, fold.retrieval)),
        **_measured(task.measures, result, scope, elsewhere),
        confusion=None if task.is_brief else _confusion(task, fold.retrieval, encoded),
        parameters={name.removeprefix("model__"): plain_value(value) for name, value in choice.parameters.items()},
        model=one_line(choice.model),
        validation={"mean": choice.mean, "deviation": choice.deviation, "trials": choice.trials},
        seconds={name: round(spent, 4) for name, spent in seconds.items()},
        peak_memory_bytes=memory.bytes,
        code_statistics=_code_facts(task, method, choice.model, fold.retrieval, encoded),
        space=encoded.space.name,
        versions=package_versions(),
        machine=machine_name(),
        started=started,
    )
    return Measured(record, choice, encoded, result)


@lru_cache(maxsize=2)
def _splits(catalogue: Catalogue, task: str, reads: Reads) -> DatasetSplits:
    return catalogue.task(task).load(reads)


@lru_cache(maxsize=2)
def _fold(catalogue: Catalogue, name: str, number: int, reads: Reads) -> Fold:
    """Return a fold; units of one fold follow one another, so that the last ones are enough to keep."""
    task = catalogue.task(name)
    sharing = (other.name for other in catalogue.tasks().values() if other.data_key == task.data_key)
    first = next(sharing, name)
    return task.fold(_splits(catalogue, first, reads), number, reads)


def measure_key(measure: Measure) -> str:
    """Return the name of a measure in records: ``AP()``, or its label such as ``CMC@1``."""
    return "AP()" if measure == AP() else measure.label


def _precision_scope(retrieval: Retrieval) -> PrecisionScope:
    most = min(retrieval.gallery.n_images, retrieval.gallery.n_texts)
    return PrecisionScope(tuple(scope for scope in (10, 20, 50, *range(100, 1001, 100)) if scope <= most) or (1,))


def _query_counts(task: Task, retrieval: Retrieval) -> dict[str, Any]:
    queries, gallery = retrieval.queries, retrieval.gallery
    counts: dict[str, Any] = {
        "n_queries": {"image_query": queries.n_images, "text_query": queries.n_texts},
        "n_gallery": {"image_query": gallery.n_texts, "text_query": gallery.n_images},
    }
    if _has_classes(task, queries):
        names = class_list(queries)
        positions = {name: number for number, name in enumerate(names)}
        numbers = [positions[name] for name in queries.image_classes().tolist()]
        counts["classes"] = list(names)
        counts["query_classes"] = {"image_query": numbers, "text_query": [numbers[row] for row in queries.owners]}
    return counts


def _class_counts(pairs: Pairs | None) -> dict[str, int]:
    if pairs is None or pairs.labels is None or pairs.is_multi_label:
        return {}
    names, counts = np.unique(pairs.image_classes(), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _has_classes(task: Task, pairs: Pairs) -> bool:
    return task.relevant != "instance" and pairs.labels is not None


def _measured(
    measures: Sequence[Measure],
    result: TwoWayEvaluation,
    scope: PrecisionScope | None,
    elsewhere: Mapping[str, TwoWayEvaluation],
) -> dict[str, Any]:
    per_query = [measure for measure in measures if measure in (AP(), CMC(1))] if scope else [measures[0]]
    asked = [(measure_key(one), one, result) for one in measures]
    asked += [
        (f"{measure_key(one)}, {name}", one, other) for name, other in elsewhere.items() for one in (measures[0], AP())
    ]
    means: dict[str, Any] = {
        "measures": {key: {way: float(of[way].mean[one]) for way in DIRECTIONS} for key, one, of in asked},
        "chance": {key: {way: float(of[way].chance[one]) for way in DIRECTIONS} for key, one, of in asked},
        "per_query": {
            measure_key(one): {way: _rounded(result[way].values[one]) for way in DIRECTIONS} for one in per_query
        },
    }
    if scope is None:
        return means
    return means | {
        "curves": {
            "cmc": {way: _points(_at_ranks(result[way][_CMC])) for way in DIRECTIONS},
            "precision_recall": {way: _points(result[way][_PRECISION_RECALL]) for way in DIRECTIONS},
            "precision_scope": {way: _points(result[way][scope]) for way in DIRECTIONS},
        },
        "per_query": {
            **means["per_query"],
            "first_rank": {way: _rounded(result[way].values[_FIRST_RANK]) for way in DIRECTIONS},
        },
    }


def _at_ranks(curve: CurvePoints) -> CurvePoints:
    ranks = [rank for rank in _RANKS if rank <= len(curve.x)]
    rows = np.array([rank - 1 for rank in ranks])
    return CurvePoints(curve.x[rows], curve.y[rows], curve.x_label, curve.y_label)


def _points(curve: CurvePoints) -> dict[str, list[float | None]]:
    return {"x": _rounded(curve.x), "y": _rounded(curve.y)}


def _rounded(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), _DIGITS) for value in values]


def _confusion(task: Task, retrieval: Retrieval, encoded: EncodedRetrieval) -> dict[str, Any] | None:
    pairs = retrieval.queries
    if not _has_classes(task, pairs) or pairs.is_multi_label:
        return None
    matrices = {way: encoded.confusion(way) for way in DIRECTIONS}
    return {
        way: {"classes": [pairs.class_name(value) for value in matrix.classes], "counts": matrix.counts.tolist()}
        for way, matrix in matrices.items()
    }


def _code_facts(
    task: Task, method: Method, model: CrossModalModel, retrieval: Retrieval, encoded: EncodedRetrieval
) -> dict[str, Any] | None:
    """Return statistics of the codes of the gallery; where the task asks for it, what a lookup finds, too."""
    if method.n_bits is None:
        return None
    sides = {"image": encoded.gallery["image_query"], "text": encoded.gallery["text_query"]}
    facts: dict[str, Any] = {side: asdict(code_statistics(codes, method.n_bits)) for side, codes in sides.items()}
    if task.describes_codes:
        unified = evaluate_retrieval(model, retrieval, (AP(),), gallery="unified", relevant=task.relevant)
        lookups = look_up(encoded, method.n_bits)
        radius = min(_RADIUS, method.n_bits)
        facts |= {
            "unified_map": {way: unified[way].mean[AP()] for way in DIRECTIONS},
            "precision_within_2": {way: lookups[way].precision(radius) for way in DIRECTIONS},
            "unanswered_within_2": {way: lookups[way].unanswered(radius) for way in DIRECTIONS},
            "lookup": {way: _points(lookups[way].micro_curve()) for way in DIRECTIONS},
        }
    return facts


def look_up(encoded: EncodedRetrieval, n_bits: int) -> dict[Direction, HammingLookup]:
    """Return what lies within each Hamming radius of a query, for both directions."""
    return {
        way: HammingLookup.from_codes(
            encoded.queries[way], encoded.gallery[opposite(way)], encoded.relevance(way), n_bits=n_bits
        )
        for way in DIRECTIONS
    }


Outcome = Record | Failure
RunProgress = Callable[[Outcome | None, Sequence[Unit], int], None]


def _run_here(catalogue: Catalogue, units: Sequence[Unit], jobs: int) -> Iterator[Outcome]:
    """Yield what each unit gave, run in ``jobs`` processes, or in this one when there is one job.

    A process that is killed takes its siblings along; the units without a result are then started again, and given up
    after three deaths without a result between them.
    """
    if jobs == 1:
        yield from (run_unit(catalogue, unit) for unit in units)
        return
    waiting = dict.fromkeys(units)
    deaths = 0
    while waiting and deaths < _ATTEMPTS:
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        try:
            for outcome in parallel(delayed(run_unit)(catalogue, unit) for unit in list(waiting)):
                deaths = 0
                del waiting[_unit_of(outcome)]
                yield outcome
        except TerminatedWorkerError:
            deaths += 1
    for unit in waiting:
        yield Failure(unit, "its process was killed, perhaps for want of memory; run again with --jobs 1")


def _run_on_cluster(catalogue: Catalogue, units: Sequence[Unit], address: str) -> Iterator[Outcome]:
    """Yield what each unit gave, run on the workers of a Dask scheduler.

    Workers need Diptych in the version of the driver and see the same data folder; results come back over the network.
    When a worker dies, the scheduler gives its units to others, and because a unit is decided by its declaration alone
    the results are the same.
    """
    with connect(address) as client:
        futures = {client.submit(run_unit, catalogue, unit, pure=False): unit for unit in units}
        for future in dask_distributed().as_completed(list(futures), loop=client.loop):
            error = future.exception()
            yield future.result() if error is None else Failure.of(futures[future], error)
            future.release()


def _unit_of(outcome: Outcome) -> Unit:
    return outcome.unit if isinstance(outcome, Failure) else Unit(outcome.task, outcome.fold, outcome.method)


@dataclass(frozen=True)
class RunReport:
    """What a run did: records it made, how many it found done, and what gave no result.

    ``outdated`` counts results of another declaration that were made anew.
    """

    done: tuple[Unit, ...]
    kept: int
    outdated: int
    failures: tuple[Failure, ...]

    @property
    def failed(self) -> list[Failure]:
        """Units that went wrong."""
        return [failure for failure in self.failures if not failure.missing]

    @property
    def missing(self) -> list[Failure]:
        """Units whose data or packages are not here."""
        return [failure for failure in self.failures if failure.missing]


def run_benchmark(
    catalogue: Catalogue,
    units: Sequence[Unit],
    results: ResultFolder,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: RunProgress | None = None,
) -> RunReport:
    """Run every unit that has no record of the present declaration, and write each record the moment it comes.

    Units run in ``jobs`` processes, or on the workers of the Dask ``scheduler`` at an address. A run that was stopped
    goes on where it was. A unit that fails leaves the others alone. ``progress`` is
    called with each outcome, the units still waiting, and the total; first with None before anything has run.

    >>> import tempfile
    >>> from diptych.benchmark import Catalogue, ResultFolder, run_benchmark
    >>> catalogue = Catalogue(folds=1)
    >>> units = catalogue.units(["extendable-scenes-unseen"], ["random", "cfa"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run_benchmark(catalogue, units, ResultFolder(folder))
    ...     second = run_benchmark(catalogue, units, ResultFolder(folder))
    >>> len(first.done), len(second.done), second.kept
    (2, 0, 2)
    """
    waiting, failures, outdated, kept = _plan(catalogue, units, results)
    done: list[Unit] = []
    total = len(waiting)
    todo = list(waiting)
    outcomes = _run_here(catalogue, todo, jobs) if scheduler is None else _run_on_cluster(catalogue, todo, scheduler)
    if progress is not None:
        progress(None, todo, total)
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            failures.append(outcome)
        else:
            results.write(outcome)
            done.append(_unit_of(outcome))
        waiting.pop(_unit_of(outcome), None)
        if progress is not None:
            progress(outcome, list(waiting), total)
    return RunReport(tuple(done), kept, outdated, tuple(failures))


def _plan(
    catalogue: Catalogue, units: Sequence[Unit], results: ResultFolder
) -> tuple[dict[Unit, None], list[Failure], int, int]:
    """Return the units to run, those whose data are not here, and how many records are outdated or kept."""
    absent: dict[str, str] = {}
    for name in {unit.task for unit in units}:
        try:
            catalogue.task(name).data.folder()
        except MissingDataError as error:
            absent[name] = str(error)
    waiting: dict[Unit, None] = {}
    missing: list[Failure] = []
    outdated = kept = 0
    for unit in units:
        task = catalogue.task(unit.task)
        known = _known_record(results, unit)
        if known is not None and known.fingerprint == task.fingerprint(task.method(unit.method)):
            kept += 1
        elif unit.task in absent:
            missing.append(Failure(unit, absent[unit.task], missing=True))
        else:
            outdated += known is not None
            waiting[unit] = None
    return waiting, missing, outdated, kept


def _known_record(results: ResultFolder, unit: Unit) -> Record | None:
    """Return the record of a unit; a file that is none is made anew."""
    try:
        return results.find(unit.task, unit.method, unit.fold)
    except InvalidInputError:
        return None
