"""How this machine runs a network over many pictures soonest: measured once, and remembered in the cache folder."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder
from diptych.encoders.networks.onnx_network import processor_kind, runtime_version
from diptych.errors import ModelFileError, NoMemoryError

# A machine that does something else for a moment makes one plan look better than another.
_LEAST_GAIN = 1.1
LEAST_COSINE = 0.9995
"""How near features have to come to those of the processor in float32 to count as the same."""
ACCELERATED_PICTURES = 32
"""Pictures that an accelerator takes at once."""
_ROUNDS = 2
_FEW, _MANY = 4, 8

_NUMBERS = "n_runs", "threads_each", "pictures_each"

_PHOTOGRAPHS = Path(__file__).parents[2] / "data" / "photographs"
TRIAL_PHOTOGRAPHS = tuple(_PHOTOGRAPHS / name for name in ("astronaut.jpg", "cat.jpg", "coffee.jpg"))
"""Photographs of the package, on which networks are tried."""


@dataclass(frozen=True)
class EncodingPlan:
    """So many runs of a network at once, each on so many threads and of so many pictures.

    ``accelerator`` is what the network runs on besides the processor.
    """

    n_runs: int
    threads_each: int
    pictures_each: int
    accelerator: str | None = None

    @classmethod
    def accelerated(cls, accelerator: str, n_threads: int) -> EncodingPlan:
        """Return what is done on an accelerator, which takes many pictures at once, and one batch after another."""
        return cls(1, n_threads, ACCELERATED_PICTURES, accelerator)

    @classmethod
    def usual(cls, n_threads: int, n_pictures: int) -> EncodingPlan:
        """Return what is done where nothing was measured.

        Threads that run the network each for a picture of their own do not wait for each other after every layer, and
        what one picture needs stays in the caches of a core. Fewer pictures than threads share all of them.
        """
        return cls(1, n_threads, n_pictures) if n_pictures < n_threads else cls(n_threads, 1, 1)

    @property
    def pictures_at_once(self) -> int:
        """Pictures that keep all runs busy."""
        return self.n_runs * self.pictures_each

    def parts(self, prepared: Sequence[AnyArray]) -> list[AnyArray]:
        """Return pictures as the inputs of runs, none of which is idle while another has several."""
        each = max(1, min(self.pictures_each, math.ceil(len(prepared) / self.n_runs)))
        return [np.stack(prepared[start : start + each]) for start in range(0, len(prepared), each)]


PlannedRun = Callable[[EncodingPlan, Sequence[AnyArray]], FloatArray]


def candidate_plans(n_threads: int, usual: EncodingPlan) -> list[EncodingPlan]:
    """Return what may be fastest, the usual plan first: cores may share caches, or be two threads of one."""
    others = [
        EncodingPlan(n_threads, 1, 1),
        EncodingPlan(n_threads, 1, _FEW),
        EncodingPlan(1, n_threads, _MANY),
        *([EncodingPlan(n_threads // 2, 1, 1)] if n_threads >= 4 else []),
    ]
    return list(dict.fromkeys([usual, *others]))


def known_plan(network_name: str, n_threads: int) -> EncodingPlan | None:
    """Return the plan that was measured for a network on so many threads of such a processor, if one was."""
    plans = _read_plans(_plans_file(), _modified(_plans_file()))
    return plans.get(_key(network_name, n_threads)) if plans else None


def measure_plan(
    network_name: str,
    n_threads: int,
    usual: EncodingPlan,
    pictures: Sequence[AnyArray],
    run: PlannedRun,
    accelerators: Sequence[str] = (),
) -> EncodingPlan:
    """Try the plans on some pictures, again and again, and remember the fastest.

    A plan other than the usual one has to gain a tenth, and to make the same features: on the processor to the last
    bit, on an accelerator to a cosine of 0.9995.
    """
    plans = [*candidate_plans(n_threads, usual), *(EncodingPlan.accelerated(name, n_threads) for name in accelerators)]
    count = max(plan.pictures_at_once for plan in plans)
    many = [pictures[place % len(pictures)] for place in range(count)]
    expected = run(usual, many)
    same = [usual, *(plan for plan in plans[1:] if _makes_the_same(run, plan, many, expected))]
    # In turns, and the best of each.
    rounds = [{plan: _seconds(run, plan, many) for plan in same} for _ in range(_ROUNDS)]
    seconds = {plan: min(each[plan] for each in rounds) for plan in same}
    fastest = min(same, key=seconds.__getitem__)
    chosen = fastest if seconds[usual] >= _LEAST_GAIN * seconds[fastest] else usual
    _remember(_key(network_name, n_threads), chosen)
    return chosen


def _makes_the_same(run: PlannedRun, plan: EncodingPlan, pictures: Sequence[AnyArray], expected: FloatArray) -> bool:
    if plan.accelerator is None:
        return np.array_equal(run(plan, pictures), expected)
    try:
        return is_near(run(plan, pictures), expected)
    except (ModelFileError, NoMemoryError):
        # It is there, and cannot run this network.
        return False


def is_near(features: FloatArray, others: FloatArray) -> bool:
    """Say whether two devices have made what counts as the same features."""
    return bool((unit_rows(features) * unit_rows(others)).sum(axis=1).min() >= LEAST_COSINE)


def _seconds(run: PlannedRun, plan: EncodingPlan, pictures: Sequence[AnyArray]) -> float:
    started = time.perf_counter()
    run(plan, pictures)
    return time.perf_counter() - started


def _plans_file() -> Path:
    return cache_folder() / "networks" / "encoding_plans.json"


def _modified(file: Path) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def _key(network_name: str, n_threads: int) -> str:
    return " | ".join((processor_kind(), f"onnxruntime {runtime_version()}", f"{n_threads} threads", network_name))


@lru_cache(maxsize=1)
def _read_plans(file: Path, modified: int) -> dict[str, EncodingPlan]:
    del modified  # Another process may write it meanwhile.
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        plans = {
            str(name): EncodingPlan(
                **{number: int(of[number]) for number in _NUMBERS}, accelerator=of.get("accelerator")
            )
            for name, of in content.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # It can be made again.
        return {}
    return {name: plan for name, plan in plans.items() if min(plan.n_runs, plan.threads_each, plan.pictures_each) >= 1}


def _remember(key: str, plan: EncodingPlan) -> None:
    file = _plans_file()
    plans = {**_read_plans(file, _modified(file)), key: plan}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as draft:
            draft.write_text(
                json.dumps({name: asdict(each) for name, each in plans.items()}, indent=1), encoding="utf-8"
            )
