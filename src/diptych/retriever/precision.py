"""Retrievers whose image networks compute with narrower numbers than float32: which can, and whether it pays here."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.atomic_files import atomic_write
from diptych.cluster import available_processors
from diptych.data.folders import cache_folder
from diptych.devices import ACCELERATORS, accelerators, card_name, chosen_device, idle_card_note, uses_card
from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import NARROW, EfficientNetLite, Narrow
from diptych.encoders.image.encoding_plan import ACCELERATED_PICTURES, LEAST_COSINE, TRIAL_PHOTOGRAPHS
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.encoders.networks.onnx_network import runtime_version
from diptych.errors import InvalidInputError, counted
from diptych.estimators import clone
from diptych.retriever.retriever import Retriever

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture

_ROUNDS = 4
# What keeps a card busy.
_CARD_PICTURES = 256
# Whoever reads a photo also hashes it, makes a thumbnail, and looks for what it says of itself.
_LEAST_WAITING = 1.5


@dataclass(frozen=True)
class PrecisionTrial:
    """How many times faster a network runs than in float32, and the mean cosine of their features.

    ``plain_pace`` are the pictures a second in float32.
    """

    times_faster: float
    cosine: float
    plain_pace: float = 0.0

    def passes(self, precision: Narrow) -> bool:
        """Say whether it is worth having: what changes features more has to gain more.

        Processors without instructions for bytes may cut off sums of products, which shows in the cosine.
        """
        fewest_times_faster, least_cosine = {"int8": (1.3, 0.98), "float16": (1.1, LEAST_COSINE)}[precision]
        return self.times_faster >= fewest_times_faster and self.cosine >= least_cosine


def narrowed(encoder: Encoder, precision: Narrow) -> Encoder:
    """Return an encoder with its networks in a precision where it has such; the features are others than before.

    >>> from diptych.encoders import EfficientNetLite, SideBySide
    >>> narrowed(SideBySide(encoders=(EfficientNetLite(network="lite0"),)), "int8").encoders[0].precision
    'int8'
    """
    if isinstance(encoder, EfficientNetLite):
        return clone(encoder).set_params(precision=precision)
    if not isinstance(encoder, Concatenated):
        return encoder
    changed = copy(encoder)
    for name in ("encoders", "encoders_"):
        if hasattr(encoder, name):
            setattr(changed, name, tuple(narrowed(part, precision) for part in getattr(encoder, name)))
    return changed


def precision_of(encoder: Encoder) -> str:
    """Return what the networks of an encoder compute with: ``float32``, ``float16`` or ``int8``."""
    chosen = {getattr(source, "precision", None) for source in encoder.sources}
    return next((precision for precision in NARROW if precision in chosen), "float32")


def is_worth(encoder: Encoder, precision: Narrow, examples: Sequence[Picture] = ()) -> bool:
    """Say whether this machine runs every network of an encoder well in a precision; tried once and remembered.

    A graphics card has to be what keeps those waiting who read pictures such as the ``examples``, too: it takes seconds
    to plan convolutions in float16.
    """
    networks = [source for source in encoder.sources if isinstance(source, EfficientNetLite)]
    trials = [precision_trial(network, precision) for network in networks]
    if not trials or not all(trial.passes(precision) for trial in trials):
        return False
    if not uses_card():
        return True
    return _LEAST_WAITING / sum(1 / trial.plain_pace for trial in trials) < _reading_pace(networks[0], examples)


def _reading_pace(encoder: EfficientNetLite, examples: Sequence[Picture]) -> float:
    """Return how many of the examples all cores together read in a second."""
    n_cores = available_processors()
    with ThreadPoolExecutor(n_cores) as pool:
        # The first ones load what reading needs.
        list(pool.map(partial(_can_read, encoder), examples[:n_cores]))
        started = time.perf_counter()
        n_read = sum(pool.map(partial(_can_read, encoder), examples))
        return n_read / (time.perf_counter() - started)


def _can_read(encoder: EfficientNetLite, picture: Picture) -> bool:
    with suppress(InvalidInputError, OSError):
        encoder.read(picture)
        return True
    return False


def precision_trial(encoder: EfficientNetLite, precision: Narrow) -> PrecisionTrial:
    """Return how an encoder does in a precision: remembered by device, runtime and network, or tried now."""
    file = cache_folder() / "networks" / "precision_trials.json"
    plain, narrow = (clone(encoder).set_params(precision=each) for each in (None, precision))
    name = " | ".join((card_name() if uses_card() else _processor(), runtime_version(), narrow.network_name))
    trials = _read_trials(file)
    if name not in trials:
        trials[name] = _try(plain, narrow)
        with suppress(OSError), atomic_write(file) as draft:
            draft.write_text(json.dumps({key: asdict(trial) for key, trial in trials.items()}, indent=1))
    return trials[name]


def _read_trials(file: Path) -> dict[str, PrecisionTrial]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        facts = ("times_faster", "cosine", "plain_pace")
        return {str(name): PrecisionTrial(*(float(of[fact]) for fact in facts)) for name, of in content.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # It can be made again.
        return {}


def _try(plain: EfficientNetLite, narrow: EfficientNetLite) -> PrecisionTrial:
    squares = [plain.prepare(file) for file in TRIAL_PHOTOGRAPHS]
    runs = [
        _many_at_once(encoder, squares) if uses_card() else _on_a_core(encoder, squares) for encoder in (plain, narrow)
    ]
    # In turns, and the best of each: a machine that is busy for a moment slows down one of them.
    rounds = [[_timed(run) for run in runs] for _ in range(_ROUNDS)]
    seconds = [min(each[place][0] for each in rounds) for place in range(len(runs))]
    cosines = (unit_rows(rounds[0][0][1]) * unit_rows(rounds[0][1][1])).sum(axis=1)
    pace = len(rounds[0][0][1]) / seconds[0]
    return PrecisionTrial(round(seconds[0] / seconds[1], 2), round(float(cosines.mean()), 6), round(pace, 1))


def _on_a_core(encoder: EfficientNetLite, squares: Sequence[AnyArray]) -> Callable[[], FloatArray]:
    network = encoder.open_network(1)
    return lambda: np.concatenate([network.run("features", {"pixels": square[None]}) for square in squares])


def _many_at_once(encoder: EfficientNetLite, squares: Sequence[AnyArray]) -> Callable[[], FloatArray]:
    many = [squares[place % len(squares)] for place in range(_CARD_PICTURES if uses_card() else ACCELERATED_PICTURES)]
    return lambda: encoder.encode_prepared(many)


def _seconds_of_many(encoder: EfficientNetLite) -> float:
    run = _many_at_once(encoder, [encoder.prepare(file) for file in TRIAL_PHOTOGRAPHS])
    return min(_timed(run)[0] for _ in range(_ROUNDS))


def _timed(run: Callable[[], FloatArray]) -> tuple[float, FloatArray]:
    started = time.perf_counter()
    features = run()
    return time.perf_counter() - started, features


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def narrow_retriever(retriever: Retriever, precision: Narrow) -> Retriever:
    """Return a retriever with the same model on image networks in a precision, where it has such.

    Its points are others, so its fingerprint is: a collection keeps to the one that it was made with.
    """
    changed = copy(retriever)
    changed.image_encoder_ = narrowed(retriever.image_encoder_, precision)
    if retriever.image_encoder is not None:
        changed.image_encoder = narrowed(retriever.image_encoder, precision)
    return changed


def any_precision(retriever: Retriever) -> dict[str, Retriever]:
    """Return a retriever in each precision by fingerprint, its own last."""
    return {each.fingerprint: each for each in (*(narrow_retriever(retriever, of) for of in NARROW), retriever)}


# A trial takes a few seconds, and so do this many pictures.
_WORTH_A_TRIAL, _WORTH_A_CARD_TRIAL = 500, 20_000


def in_precision(
    retriever: Retriever,
    precision: str,
    n_pictures: int,
    stored: str | None = None,
    examples: Sequence[Picture] = (),
) -> Retriever:
    """Return a retriever in the precision that was asked for: ``float32``, ``float16``, ``int8`` or ``auto``.

    ``auto`` keeps to that of the collection whose points have the fingerprint ``stored``. For another it takes float16
    on a graphics card and int8 elsewhere, where so many pictures, such as the ``examples``, gain by it on this machine.
    """
    if precision == "float32":
        return retriever
    if precision != "auto":
        narrow = narrow_retriever(retriever, "int8" if precision == "int8" else "float16")
        if narrow.fingerprint == retriever.fingerprint:
            raise InvalidInputError(
                f"the search model {retriever.name} has no {precision} networks; leave out --precision"
            )
        return narrow
    if stored is not None and (kept := any_precision(retriever).get(stored)) is not None:
        return kept
    candidate: Narrow
    candidate, fewest = ("float16", _WORTH_A_CARD_TRIAL) if uses_card() else ("int8", _WORTH_A_TRIAL)
    encoder = retriever.image_encoder_
    if n_pictures < fewest or _is_outrun(encoder) or not is_worth(encoder, candidate, examples):
        return retriever
    return narrow_retriever(retriever, candidate)


def _is_outrun(encoder: Encoder) -> bool:
    """Say whether an accelerator, which has no eight bits, is faster than the processor in these, or was chosen."""
    networks = [source for source in encoder.sources if isinstance(source, EfficientNetLite)]
    if uses_card() or not networks or not accelerators():
        return False
    for network in (each for each in networks if each.lacks_plan):
        network.measure_plan()
    if chosen_device() in ACCELERATORS or _accelerator(encoder) is None:
        return _accelerator(encoder) is not None
    rounded = [clone(network).set_params(precision="int8") for network in networks]
    return sum(map(_seconds_of_many, networks)) < sum(map(_seconds_of_many, rounded))


def _accelerator(encoder: Encoder) -> str | None:
    """Return what runs the networks of an encoder besides processors and NVIDIA's cards, None where nothing does."""
    networks = [source for source in encoder.sources if isinstance(source, ConvolutionalEncoder)]
    return next(filter(None, (network.accelerator for network in networks)), None)


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
    if encoder is not None and (accelerator := _accelerator(encoder)) is not None:
        place = ACCELERATORS[accelerator].name
    numbers = "" if encoder is None else f" in {precision_of(encoder)}"
    return [f"encoding on {place}{numbers}", *filter(None, [idle_card_note()])]
