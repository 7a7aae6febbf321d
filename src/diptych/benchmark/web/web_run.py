"""One method with one kind of features, measured once and kept."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.web.peak_memory import PeakMemory
from diptych.benchmark.web.web_data import WebData
from diptych.benchmark.web.web_methods import WebMethod

_REVISION = 1


@dataclass(frozen=True, eq=False)
class WebRun:
    """The scores a method gives to every list, and what learning and scoring cost."""

    method: str
    feature: str
    scores: Mapping[str, FloatArray]
    fit_seconds: float
    fit_megabytes: float
    test_seconds: float
    test_megabytes: float


def measure_run(data: WebData, method: WebMethod, feature: str, folder: Path | None = None) -> WebRun:
    """Fit and score, or read what an earlier run of the same settings on the same data left in ``folder``."""
    scorer = method.scorer()
    file = None if folder is None else folder / f"{method.name}-{feature}-{_digest(data, scorer.settings, feature)}.npz"
    if file is not None and file.is_file():
        return _read(file, method.name, feature)
    fitting, testing = PeakMemory(), PeakMemory()
    start = time.perf_counter()
    with fitting.watch():
        scorer.fit(data, feature)
    fitted = time.perf_counter()
    with testing.watch():
        scores = {
            name: np.asarray(scorer.scores(lists.queries, part), dtype=np.float32)
            for name, (lists, part) in data.every_list().items()
        }
    costs = (fitted - start, fitting.megabytes, time.perf_counter() - fitted, testing.megabytes)
    run = WebRun(method.name, feature, scores, *costs)
    if file is not None:
        _write(file, run, costs)
    return run


def _digest(data: WebData, settings: Mapping[str, object], feature: str) -> str:
    """Return a name for everything the scores depend on."""
    plain = json.dumps({name: repr(value) for name, value in settings.items()}, sort_keys=True)
    digest = hashlib.sha256(f"{_REVISION} {feature} {plain}".encode())
    for array in (data.log.query_ids, data.log.image_ids, data.log.clicks, data.log.queries.content):
        digest.update(array.tobytes())
    for lists, part in data.every_list().values():
        digest.update("\n".join(lists.queries).encode())
        digest.update(data.features[feature][part].tobytes())
    return digest.hexdigest()[:24]


def _read(file: Path, method: str, feature: str) -> WebRun:
    with np.load(file, allow_pickle=False) as stored:
        scores = {name.removeprefix("scores/"): stored[name] for name in stored.files if name.startswith("scores/")}
        return WebRun(method, feature, scores, *stored["costs"].tolist())


def _write(file: Path, run: WebRun, costs: tuple[float, ...]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".part")
    arrays: dict[str, Any] = {f"scores/{name}": values for name, values in run.scores.items()}
    with draft.open("wb") as stream:
        np.savez(stream, costs=np.array(costs), **arrays)
    draft.replace(file)
