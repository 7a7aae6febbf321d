"""Image networks in eight-bit integers: which encoders have them, and whether they are worth it on this machine."""

from __future__ import annotations

import json
import platform
import time
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import FloatArray, unit_rows
from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder
from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.encoders.networks.onnx_network import Network
from diptych.estimators import clone

FEWEST_TIMES_FASTER = 1.3
"""Below this, other features than those of float32 are not worth having."""

# Processors without instructions for bytes may cut off sums of products, which shows.
_LEAST_COSINE = 0.98
_ROUNDS = 4
_PHOTOGRAPHS = Path(__file__).parents[1] / "data" / "photographs"
_TRIAL_PHOTOGRAPHS = ("astronaut.jpg", "cat.jpg", "coffee.jpg")


@dataclass(frozen=True)
class Int8Trial:
    """How many times faster a network runs in eight bits than in float32, and the mean cosine of their features."""

    times_faster: float
    cosine: float

    @property
    def passes(self) -> bool:
        """Whether eight bits are worth having."""
        return self.times_faster >= FEWEST_TIMES_FASTER and self.cosine >= _LEAST_COSINE


def in_int8(encoder: Encoder) -> Encoder:
    """Return an encoder with its networks in eight bits where it has such; the features are others than before.

    >>> from diptych.encoders import EfficientNetLite, SideBySide
    >>> in_int8(SideBySide(encoders=(EfficientNetLite(network="lite0"),))).encoders[0].precision
    'int8'
    """
    if isinstance(encoder, EfficientNetLite):
        return clone(encoder).set_params(precision="int8")
    if not isinstance(encoder, Concatenated):
        return encoder
    changed = copy(encoder)
    for name in ("encoders", "encoders_"):
        if hasattr(encoder, name):
            setattr(changed, name, tuple(in_int8(part) for part in getattr(encoder, name)))
    return changed


def precision_of(encoder: Encoder) -> str:
    """Return what the networks of an encoder compute with, ``int8`` or ``float32``."""
    return "int8" if any(getattr(source, "precision", None) == "int8" for source in encoder.sources) else "float32"


def is_worth_int8(encoder: Encoder) -> bool:
    """Say whether this machine runs every network of an encoder well in eight bits; tried once and remembered."""
    networks = [source for source in encoder.sources if isinstance(source, EfficientNetLite)]
    return bool(networks) and all(int8_trial(network).passes for network in networks)


def int8_trial(encoder: EfficientNetLite) -> Int8Trial:
    """Return how an encoder does in eight bits: remembered by processor, runtime and network, or tried now."""
    file = cache_folder() / "networks" / "int8_trials.json"
    rounded = clone(encoder).set_params(precision="int8")
    name = " | ".join((_processor(), f"onnxruntime {version('onnxruntime')}", rounded.network_name))
    trials = _read_trials(file)
    if name not in trials:
        trials[name] = _try(clone(encoder).set_params(precision=None), rounded)
        with suppress(OSError), atomic_write(file) as draft:
            draft.write_text(json.dumps({key: asdict(trial) for key, trial in trials.items()}, indent=1))
    return trials[name]


def _read_trials(file: Path) -> dict[str, Int8Trial]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): Int8Trial(float(of["times_faster"]), float(of["cosine"])) for name, of in content.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # It can be made again.
        return {}


def _try(plain: EfficientNetLite, rounded: EfficientNetLite) -> Int8Trial:
    squares = [plain.prepare(_PHOTOGRAPHS / name)[None] for name in _TRIAL_PHOTOGRAPHS]
    networks = [encoder.open_network(1) for encoder in (plain, rounded)]
    # In turns, and the best of each: a machine that is busy for a moment slows down one of them.
    rounds = [[_timed(network, squares) for network in networks] for _ in range(_ROUNDS)]
    seconds = [min(each[place][0] for each in rounds) for place in range(len(networks))]
    cosines = (unit_rows(rounds[0][0][1]) * unit_rows(rounds[0][1][1])).sum(axis=1)
    return Int8Trial(round(seconds[0] / seconds[1], 2), round(float(cosines.mean()), 4))


def _timed(network: Network, squares: list[NDArray[np.uint8]]) -> tuple[float, FloatArray]:
    started = time.perf_counter()
    features = np.concatenate([network.run("features", {"pixels": square}) for square in squares])
    return time.perf_counter() - started, features


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
