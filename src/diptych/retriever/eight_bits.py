"""Retrievers whose image networks compute with eight-bit integers: which have such, and whether it pays here."""

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
from diptych.cluster import available_processors
from diptych.data.folders import cache_folder
from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.encoders.image.encoding_plan import TRIAL_PHOTOGRAPHS
from diptych.encoders.networks.onnx_network import Network, idle_card_note, uses_card
from diptych.errors import InvalidInputError, counted
from diptych.estimators import clone
from diptych.retriever.retriever import Retriever

FEWEST_TIMES_FASTER = 1.3
"""Below this, other features than those of float32 are not worth having."""

# Processors without instructions for bytes may cut off sums of products, which shows.
_LEAST_COSINE = 0.98
_ROUNDS = 4


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
    squares = [plain.prepare(file)[None] for file in TRIAL_PHOTOGRAPHS]
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


def int8_retriever(retriever: Retriever) -> Retriever:
    """Return a retriever with the same model on image networks in eight bits, where it has such.

    Its points are others, so its fingerprint is: a collection keeps to the one that it was made with.
    """
    changed = copy(retriever)
    changed.image_encoder_ = in_int8(retriever.image_encoder_)
    if retriever.image_encoder is not None:
        changed.image_encoder = in_int8(retriever.image_encoder)
    return changed


# A trial of int8 takes a few seconds, and so do this many pictures.
_WORTH_A_TRIAL = 500


def in_precision(retriever: Retriever, precision: str, n_pictures: int, stored: str | None = None) -> Retriever:
    """Return a retriever in the precision that was asked for: ``float32``, ``int8`` or ``auto``.

    ``auto`` keeps to that of the collection whose points have the fingerprint ``stored``, and takes int8 for another
    only where many pictures gain by it on this machine.
    """
    if precision == "float32":
        return retriever
    rounded = int8_retriever(retriever)
    if precision == "int8" and rounded.fingerprint == retriever.fingerprint:
        raise InvalidInputError(f"the search model {retriever.name} has no int8 networks; leave out --precision")
    if precision == "int8" or stored == rounded.fingerprint:
        return rounded
    # Cards have no such networks.
    if stored == retriever.fingerprint or n_pictures < _WORTH_A_TRIAL or uses_card():
        return retriever
    return rounded if is_worth_int8(retriever.image_encoder_) else retriever


def check_precision(retriever: object, precision: str) -> None:
    """Raise unless the retriever of a collection computes with the numbers that were asked for."""
    encoder = getattr(retriever, "image_encoder_", None)
    if precision not in ("auto", "float32" if encoder is None else precision_of(encoder)):
        raise InvalidInputError(
            f"the collection was not made with {precision}; name its search model, too (--retriever), and all pictures "
            "are encoded again"
        )


def describe_encoding(retriever: object) -> list[str]:
    """Return what encodes pictures, and what could do it faster."""
    encoder = getattr(retriever, "image_encoder_", None)
    place = "an NVIDIA card" if uses_card() else counted(available_processors(), "core")
    numbers = "" if encoder is None else f" in {precision_of(encoder)}"
    return [f"encoding on {place}{numbers}", *filter(None, [idle_card_note()])]
