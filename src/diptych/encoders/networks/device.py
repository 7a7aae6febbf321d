"""ONNX Runtime's execution providers for the chosen device: the processor, or a graphics card."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from diptych.errors import InvalidInputError
from diptych.graphics_card import chosen_device, has_nvidia_card

_PROCESSOR, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_CUDA_OPTIONS = {
    # Products are rounded to ten bits by default, and points must be those of the processor.
    "use_tf32": "0",
    # By default every batch of another size is timed with every algorithm, which takes longer than the batch.
    "cudnn_conv_algo_search": "HEURISTIC",
}
_CARD_BATCH = 64
_INSTALL = "pip install 'onnxruntime-gpu[cuda,cudnn]' in place of onnxruntime"
# A network of one node, |x|, as a file of ONNX holds it.
_SMALLEST_NETWORK = (
    b'\x08\x08:2\n\x0b\n\x01x\x12\x01y"\x03Abs\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x02\x10\r"
)


def execution_providers() -> list[Any]:
    """Return the providers of ONNX Runtime for the chosen device; one that is not there is an error with the fix."""
    chosen = chosen_device()
    if chosen == "cpu" or not _cuda_runs():
        if chosen == "cuda":
            raise InvalidInputError(f"ONNX Runtime cannot use CUDA here; {_INSTALL}, or leave out --device cuda")
        return [_PROCESSOR]
    return [(_CUDA, _CUDA_OPTIONS), _PROCESSOR]


@lru_cache(maxsize=1)
def _cuda_runs() -> bool:
    """Say whether a network runs with CUDA: its provider may be there without the libraries that it needs."""
    if not has_nvidia_card() or find_spec("onnxruntime") is None:
        return False
    import onnxruntime

    if _CUDA not in onnxruntime.get_available_providers():
        return False
    # The libraries that pip installs, or PyTorch has brought, are not on the system's search path.
    onnxruntime.preload_dlls()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(_SMALLEST_NETWORK, options, providers=[(_CUDA, _CUDA_OPTIONS), _PROCESSOR])
    return _CUDA in session.get_providers()


def uses_card() -> bool:
    """Say whether networks run on a graphics card."""
    return execution_providers() != [_PROCESSOR]


def batch_for_card(batch_size: int) -> int:
    """Return how many pictures a network takes at once: on a card, which is idle between small batches, more."""
    return max(batch_size, _CARD_BATCH) if uses_card() else batch_size


def idle_card_note() -> str | None:
    """Return a sentence where there is an NVIDIA card that nothing uses for want of a package."""
    if chosen_device() == "cpu" or not has_nvidia_card() or uses_card():
        return None
    return f"an NVIDIA card is here, but ONNX Runtime cannot use it; {_INSTALL}"
