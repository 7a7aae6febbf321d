"""Where networks run: on the processor, or on a graphics card that ONNX Runtime can use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from diptych.errors import InvalidInputError, UnknownNameError

DEVICE_VARIABLE = "DIPTYCH_DEVICE"
"""The environment variable that chooses among ``DEVICES``."""
DEVICES = ("auto", "cpu", "cuda")
"""``auto`` takes the card where there is one that can be used."""

_PROCESSOR, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# Products are rounded to ten bits by default, and points must be those of the processor.
_CUDA_OPTIONS = {"use_tf32": "0"}


def execution_providers() -> list[Any]:
    """Return the providers of ONNX Runtime for the chosen device; one that is not there is an error with the fix."""
    import onnxruntime

    chosen = os.environ.get(DEVICE_VARIABLE, "auto")
    if chosen not in DEVICES:
        raise UnknownNameError("device", chosen, DEVICES)
    has_cuda = _CUDA in onnxruntime.get_available_providers()
    if chosen == "cuda" and not has_cuda:
        raise InvalidInputError(
            "ONNX Runtime has no CUDA here; install it with `pip install onnxruntime-gpu` in place of onnxruntime, or "
            "leave out --device cuda"
        )
    return [(_CUDA, _CUDA_OPTIONS), _PROCESSOR] if has_cuda and chosen != "cpu" else [_PROCESSOR]


def uses_card() -> bool:
    """Say whether networks run on a graphics card."""
    return execution_providers() != [_PROCESSOR]


def idle_card_note() -> str | None:
    """Return a sentence where there is an NVIDIA card that nothing uses for want of a package."""
    has_card = Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None
    if not has_card or uses_card() or os.environ.get(DEVICE_VARIABLE) == "cpu":
        return None
    return "an NVIDIA card is here, but ONNX Runtime cannot use it; pip install onnxruntime-gpu in place of onnxruntime"
