"""Epoch after epoch: when to stop, what to keep, what to report, and how to go on after a crash."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.atomic_files import atomic_write
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models.base import CrossModalModel

# Returns how good the towers are on the held-out part, the larger the better, and their recall there.
Judge = Callable[[], tuple[float, float]]

_MAY_CHANGE = ("epochs", "patience", "checkpoint")
_FORMAT = "diptych-checkpoint-1"


@dataclass(frozen=True)
class CheckpointFile:
    """One safetensors file: arrays, and JSON in its header.

    ``identity`` names parameters and data; the state of another training is refused instead of continued. A new state
    replaces the older one in one move, so that a crash at any time leaves a whole file.
    """

    path: Path
    identity: str

    @classmethod
    def within(cls, folder: str | PathLike[str], name: str, *, identity: str) -> CheckpointFile:
        """Return the file called ``name`` in ``folder``, which is made when it is first written."""
        return cls(Path(folder) / f"{name}.safetensors", identity)

    def write(self, arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> None:
        """Put the state in place of the one before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        header = {"format": _FORMAT, "identity": self.identity, "facts": json.dumps(facts)}
        content = save({name: np.ascontiguousarray(values) for name, values in arrays.items()}, metadata=header)
        # Of a fixed name: killed trainings leave at most one draft of hundreds of megabytes.
        with atomic_write(self.path, draft=self.path.with_name(f".{self.path.name}.draft"), durable=True) as draft:
            draft.write_bytes(content)

    def read(self) -> tuple[dict[str, AnyArray], dict[str, Any]] | None:
        """Return (arrays, facts); None where nothing has been written yet."""
        try:
            with safe_open(self.path, framework="np") as opened:
                header = opened.metadata() or {}
                names = opened.keys()
                arrays = {name: opened.get_tensor(name) for name in names}
        except FileNotFoundError:
            return None
        except SafetensorError:
            raise ModelFileError(f"{self.path} is damaged; delete it to train from the start") from None
        if header.get("format") != _FORMAT:
            raise ModelFileError(f"{self.path} is no checkpoint of this Diptych; delete it to train from the start")
        if header["identity"] != self.identity:
            raise InvalidInputError(
                f"{self.path} is of another training: parameters or data differ; choose another folder or delete it"
            )
        return arrays, json.loads(header["facts"])


def training_identity(
    parameters: Mapping[str, object],
    *data: AnyArray | None,
    may_change: Collection[str] = _MAY_CHANGE,
    facts: Mapping[str, object] | None = None,
) -> str:
    """Return a digest of parameters, data and further ``facts``, equal for two trainings only if these are.

    What ``may_change`` from one call to the next is left out: by default how long to train and where to keep the state.

    >>> rows = np.ones((3, 2))
    >>> training_identity({"random_state": 0}, rows) == training_identity({"random_state": 1}, rows)
    False
    """
    deciding = {name: repr(value) for name, value in sorted(parameters.items()) if name not in may_change}
    deciding |= {name: repr(value) for name, value in (facts or {}).items()}
    digest = hashlib.sha256(json.dumps(deciding).encode())
    for rows in data:
        if rows is None:
            digest.update(b"none")
            continue
        digest.update(f"{rows.dtype.str}{rows.shape}".encode())
        for block in row_blocks(len(rows)):
            digest.update(np.ascontiguousarray(rows[block]).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class EpochReport:
    """The mean loss of an epoch, how the held-out part fares after it (NaN where that is not measured), and speed."""

    epoch: int
    loss: float
    judged: float  # decides when to stop, the larger the better
    recall: float  # share of held-out queries that find a right answer among the first ten
    items_per_second: float


Progress = Callable[[EpochReport], None]


class ResumableModel(CrossModalModel):
    """A model whose training reports its epochs and, with ``checkpoint``, goes on after a crash."""

    checkpoint: str | None

    _progress: Progress | None = None

    def fit(
        self, images: ArrayLike, texts: ArrayLike, labels: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Learn from aligned rows and return the model itself; a picture with several texts is repeated.

        ``labels`` are one class per row, or a 0/1 indicator matrix with one column per class. ``progress`` is called
        with an `EpochReport` after each epoch: loss, how the held-out part fares where it is looked at, and speed.
        """
        self._progress = progress
        try:
            return super().fit(images, texts, labels)
        finally:
            del self._progress

    def _checkpoint_file(
        self, name: str, *data: AnyArray | None, may_change: Collection[str] = _MAY_CHANGE
    ) -> CheckpointFile | None:
        """Return where the state of a training on this data is kept, if it is."""
        if self.checkpoint is None:
            return None
        identity = training_identity(self.get_params(deep=False), *data, may_change=may_change)
        return CheckpointFile.within(self.checkpoint, name, identity=identity)


def timed_epoch(train: Callable[[], float], judge: Judge | None, n_items: int) -> Callable[[int], EpochReport]:
    """Return what trains once over ``n_items`` items, whose mean loss ``train`` returns, judges and reports."""

    def epoch(number: int) -> EpochReport:
        started = time.perf_counter()
        loss = train()
        seconds = time.perf_counter() - started
        judged, recall = judge() if judge else (math.nan, math.nan)
        return EpochReport(number, loss, judged, recall, n_items / max(seconds, 1e-9))

    return epoch


def epoch_table(reports: Sequence[object], columns: Sequence[str]) -> FloatArray:
    """Return one row of numbers for each epoch; those of speed, which no two trainings share, are best left out."""
    rows = [[getattr(report, name) for name in columns] for report in reports]
    return np.array(rows, dtype=np.float64).reshape(len(reports), len(columns))


class Judged(Protocol):
    """A data class about an epoch that says, at least, how it left the held-out part; NaN where there is none."""

    @property
    def judged(self) -> float:
        """The larger the better."""


class Stateful(Protocol):
    """Towers, or what moves them."""

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of everything that training changes, by name."""

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""


Report = TypeVar("Report", bound=Judged)


@dataclass(frozen=True)
class TrainingLoop(Generic[Report]):
    """Trains until ``epochs`` are done, or ``patience`` of them have brought nothing on the held-out part.

    The best epoch is kept (of equally good ones the last, or with ``keep_first`` the first), the last where nothing is
    held out. With a checkpoint, everything that the next epoch depends on is written after each one, and `run` goes on
    from there: on the processor, to the same bits as a training that was never interrupted.
    """

    epochs: int
    patience: int | None
    checkpoint: CheckpointFile | None = None
    progress: Callable[[Report], None] | None = None
    keep_first: bool = False

    def run(
        self,
        towers: Sequence[Stateful],
        descents: Sequence[Stateful],
        epoch: Callable[[int], Report],
        kind: type[Report],
        rng: np.random.Generator | None = None,
    ) -> list[Report]:
        """Train the towers and return a report of each epoch, which is a ``kind``.

        What ``epoch`` draws comes from ``rng``, from the towers, or from generators that its number alone decides.
        """
        reports, best = self._restore(towers, descents, kind, rng)
        while len(reports) < self.epochs and not self._is_over(reports):
            reports.append(epoch(len(reports) + 1))
            if self._is_best(reports):
                best = [tower.state() for tower in towers]
            self._save(towers, descents, rng, reports, best)
            if self.progress:
                self.progress(reports[-1])
        if best:
            for tower, state in zip(towers, best, strict=True):
                tower.restore(state)
        return reports

    def _is_over(self, reports: list[Report]) -> bool:
        values = _judged(reports)
        return self.patience is not None and len(values) - int(np.argmax([*values, -math.inf])) > self.patience

    def _is_best(self, reports: list[Report]) -> bool:
        last, highest = reports[-1].judged, max(_judged(reports[:-1]), default=-math.inf)
        return last > highest or (last == highest and not self.keep_first)

    def _save(
        self,
        towers: Sequence[Stateful],
        descents: Sequence[Stateful],
        rng: np.random.Generator | None,
        reports: list[Report],
        best: list[dict[str, AnyArray]],
    ) -> None:
        if self.checkpoint is None:
            return
        parts = {f"descent{number}": descent.state() for number, descent in enumerate(descents)}
        parts |= {f"tower{number}": tower.state() for number, tower in enumerate(towers)}
        parts |= {f"best{number}": state for number, state in enumerate(best)}
        arrays = {f"{part}.{name}": values for part, state in parts.items() for name, values in state.items()}
        draws = None if rng is None else rng.bit_generator.state
        self.checkpoint.write(arrays, {"reports": [_plain(report) for report in reports], "draws": draws})

    def _restore(
        self,
        towers: Sequence[Stateful],
        descents: Sequence[Stateful],
        kind: type[Report],
        rng: np.random.Generator | None,
    ) -> tuple[list[Report], list[dict[str, AnyArray]]]:
        found = self.checkpoint.read() if self.checkpoint else None
        if found is None:
            return [], []
        arrays, facts = found
        parts: dict[str, dict[str, AnyArray]] = {}
        for name, values in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = values
        for number, descent in enumerate(descents):
            descent.restore(parts[f"descent{number}"])
        for number, tower in enumerate(towers):
            tower.restore(parts[f"tower{number}"])
        if rng is not None:
            rng.bit_generator.state = facts["draws"]
        reports = [
            kind(**{name: math.nan if value is None else value for name, value in values.items()})
            for values in facts["reports"]
        ]
        return reports, [parts[f"best{number}"] for number in range(len(towers))] if _judged(reports) else []


def _judged(reports: Sequence[Judged]) -> list[float]:
    """Return the scores of the epochs after which the held-out part was looked at."""
    return [report.judged for report in reports if not math.isnan(report.judged)]


def _plain(report: Any) -> dict[str, Any]:
    """Return the report as JSON can hold it, without NaN."""
    return {name: None if math.isnan(value) else value for name, value in asdict(report).items()}
