"""Where heavy work runs: the device that was chosen, and PyTorch on a graphics card for large products and sorts."""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import UnknownNameError

DEVICE_VARIABLE = "DIPTYCH_DEVICE"
"""The environment variable that chooses among ``DEVICES``."""
DEVICES = ("auto", "cpu", "cuda")
"""``auto`` takes the card where there is one that can be used."""

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


class _CardMemory(ctypes.Structure):
    """What NVIDIA's management library tells of the memory of a card."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def free_card_bytes() -> int:
    """Return how much memory of the first NVIDIA card is free, 0 where nobody can tell; nothing starts on the card."""
    handle, memory = ctypes.c_void_p(), _CardMemory()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        steps = (
            library.nvmlInit_v2(),
            library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)),
            library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)),
        )
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return 0
    return 0 if any(steps) else int(memory.free)


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
    if chosen == "cpu" or (chosen == "auto" and multiply_adds < _WORTH_A_CARD) or not has_nvidia_card():
        return None
    return _torch_card()


@lru_cache(maxsize=1)
def _torch_card() -> Card | None:
    if find_spec("torch") is None:
        return None
    torch = import_module("torch")
    return Card(torch) if torch.cuda.is_available() else None
