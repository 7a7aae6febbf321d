"""Where heavy work runs: the device that was chosen, what ONNX Runtime calls it, and PyTorch on a graphics card."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, UnknownNameError

DEVICE_VARIABLE = "DIPTYCH_DEVICE"
"""The environment variable that chooses among ``DEVICES``."""


class Accelerator(NamedTuple):
    """What runs image networks besides processors and NVIDIA's cards: its name, ONNX Runtime's, and how to get it."""

    name: str
    provider: str
    options: Mapping[str, str]
    install: str


ACCELERATORS = {
    "coreml": Accelerator(
        "Core ML",
        "CoreMLExecutionProvider",
        {"ModelFormat": "MLProgram", "MLComputeUnits": "ALL"},
        "it comes with onnxruntime on macOS",
    ),
    "directml": Accelerator(
        "DirectML", "DmlExecutionProvider", {}, "on Windows: pip install onnxruntime-directml in place of onnxruntime"
    ),
    "openvino": Accelerator(
        "OpenVINO",
        "OpenVINOExecutionProvider",
        {"device_type": "AUTO"},
        "pip install onnxruntime-openvino in place of onnxruntime",
    ),
}
DEVICES = ("auto", "cpu", "cuda", *ACCELERATORS)
"""``auto`` takes what is there, can be used and is faster."""

PROCESSOR, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_CUDA_OPTIONS = {
    # Products are rounded to ten bits by default, and points must be those of the processor.
    "use_tf32": "0",
    # By default every batch of another size is timed with every algorithm, which takes longer than the batch.
    "cudnn_conv_algo_search": "HEURISTIC",
}
_CARD_BATCH = 64
_INSTALL_CUDA = "pip install 'onnxruntime-gpu[cuda,cudnn]' in place of onnxruntime"
# A network of one node, |x|, as a file of ONNX holds it.
_SMALLEST_NETWORK = (
    b'\x08\x08:2\n\x0b\n\x01x\x12\x01y"\x03Abs\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x02\x10\r"
)

# Multiply-adds of some ten seconds on two cores: loading PyTorch and starting a card take two or three.
_WORTH_A_CARD = 5e11


def chosen_device() -> str:
    """Return the device that the environment asks for, ``auto`` by default."""
    chosen = os.environ.get(DEVICE_VARIABLE, "auto")
    if chosen not in DEVICES:
        raise UnknownNameError("device", chosen, DEVICES)
    return chosen


def has_nvidia_card() -> bool:
    """Say whether the machine has an NVIDIA card, without loading anything."""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def execution_providers(accelerator: str | None = None) -> list[Any]:
    """Return the providers of ONNX Runtime for an accelerator, or for what was chosen.

    What was chosen and is not there is an error with the fix.
    """
    if accelerator is not None:
        known = ACCELERATORS[accelerator]
        return [(known.provider, dict(known.options)), PROCESSOR]
    chosen = chosen_device()
    if chosen not in ("auto", "cuda") or not _cuda_runs():
        if chosen == "cuda":
            raise InvalidInputError(f"ONNX Runtime cannot use CUDA here; {_INSTALL_CUDA}, or leave out --device cuda")
        return [PROCESSOR]
    return [(_CUDA, _CUDA_OPTIONS), PROCESSOR]


def accelerators() -> list[str]:
    """Return the accelerators to try for image networks: the one that was chosen, which has to be there, or all."""
    chosen = chosen_device()
    if chosen in ACCELERATORS and not _runs(chosen):
        known = ACCELERATORS[chosen]
        raise InvalidInputError(
            f"ONNX Runtime cannot use {known.name} here ({known.install}), or leave out --device {chosen}"
        )
    wanted = ACCELERATORS if chosen == "auto" and not uses_card() else ACCELERATORS.keys() & {chosen}
    return [device for device in wanted if _runs(device)]


@lru_cache(maxsize=len(ACCELERATORS))
def _runs(accelerator: str) -> bool:
    known = ACCELERATORS[accelerator]
    return _runs_smallest(known.provider, known.options)


def _runs_smallest(provider: str, options: Mapping[str, str]) -> bool:
    """Say whether a network runs with a provider: it may be there without the libraries that it needs."""
    if find_spec("onnxruntime") is None:
        return False
    import onnxruntime

    if provider not in onnxruntime.get_available_providers():
        return False
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            _SMALLEST_NETWORK, quiet, providers=[(provider, dict(options)), PROCESSOR]
        )
    except Exception:
        # The runtime raises types of its own, without a common base.
        return False
    return provider in session.get_providers()


@lru_cache(maxsize=1)
def _cuda_runs() -> bool:
    if not has_nvidia_card() or find_spec("onnxruntime") is None:
        return False
    import onnxruntime

    if _CUDA in onnxruntime.get_available_providers():
        # The libraries that pip installs, or PyTorch has brought, are not on the system's search path.
        onnxruntime.preload_dlls()
        # It prints an error for every convolution in float16 that its first choice cannot plan, and takes the second.
        onnxruntime.set_default_logger_severity(4)
    return _runs_smallest(_CUDA, _CUDA_OPTIONS)


def uses_card() -> bool:
    """Say whether networks run on an NVIDIA card."""
    return execution_providers() != [PROCESSOR]


def batch_for_card(batch_size: int) -> int:
    """Return how many pictures a network takes at once: on a card, which is idle between small batches, more."""
    return max(batch_size, _CARD_BATCH) if uses_card() else batch_size


def idle_card_note() -> str | None:
    """Return a sentence where there is an NVIDIA card that nothing uses for want of a package."""
    if chosen_device() not in ("auto", "cuda") or not has_nvidia_card() or uses_card():
        return None
    return f"an NVIDIA card is here, but ONNX Runtime cannot use it; {_INSTALL_CUDA}"


class _CardMemory(ctypes.Structure):
    """What NVIDIA's management library tells of the memory of a card."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def free_card_bytes() -> int:
    """Return how much memory of the first NVIDIA card is free, 0 where nobody can tell; nothing starts on the card."""
    memory = _CardMemory()
    told = _ask_card(lambda library, card: library.nvmlDeviceGetMemoryInfo(card, ctypes.byref(memory)))
    return int(memory.free) if told else 0


def card_name() -> str:
    """Return what the first NVIDIA card is called, nothing where nobody can tell."""
    name = ctypes.create_string_buffer(96)
    told = _ask_card(lambda library, card: library.nvmlDeviceGetName(card, name, len(name)))
    return name.value.decode(errors="replace") if told else ""


def _ask_card(question: Callable[[Any, ctypes.c_void_p], int]) -> bool:
    """Put a question about the first card to NVIDIA's management library, and say whether it was answered."""
    card = ctypes.c_void_p()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        steps = (
            library.nvmlInit_v2(),
            library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)),
            question(library, card),
        )
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return False
    return not any(steps)


@dataclass(frozen=True)
class Card:
    """PyTorch, and the device on which its tensors live.

    Whoever computes with it gives the results of NumPy to rounding: sums are float64 here as there, and products of
    float32 are not shortened to fewer digits.
    """

    torch: Any
    device: str = "cuda"

    def tensor(self, values: AnyArray) -> Any:
        """Return a copy of an array on the card."""
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def zeros(self, shape: int | tuple[int, ...]) -> Any:
        """Return float64 zeros on the card."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def ones(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return ones on the card."""
        return self.torch.ones(shape, dtype=dtype, device=self.device)


def as_array(values: Any) -> AnyArray:
    """Return a tensor as an array of this machine's memory; an array is returned as it is."""
    return values if isinstance(values, np.ndarray) else np.asarray(values.cpu().numpy())


def card_for(multiply_adds: float) -> Card | None:
    """Return a card for work of that size, or None where the processor does it.

    ``DIPTYCH_DEVICE=cuda`` takes the card for work of any size, ``auto`` for work that outlasts loading PyTorch.
    Without PyTorch, or without a card that it can use, all work is the processor's.
    """
    chosen = chosen_device()
    if chosen not in ("auto", "cuda") or (chosen == "auto" and multiply_adds < _WORTH_A_CARD) or not has_nvidia_card():
        return None
    return _torch_card()


@lru_cache(maxsize=1)
def _torch_card() -> Card | None:
    if find_spec("torch") is None:
        return None
    torch = import_module("torch")
    return Card(torch) if torch.cuda.is_available() else None
