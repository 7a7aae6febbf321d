"""File names that a model's own files give."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath


def leads_outside(name: str) -> bool:
    """Say whether a name, read as a path below a folder, leads out of it on any system.

    Only the name is judged: a link in the folder was put there by its owner, as download caches do.

    >>> from diptych.encoders.network.inner_names import leads_outside
    >>> [leads_outside(name) for name in ("model-1.safetensors", "onnx/weights.bin", "../weights.bin", "C:weights.bin")]
    [False, False, True, True]
    """
    windows = PureWindowsPath(name)
    return bool(windows.anchor) or ".." in windows.parts or PurePosixPath(name).is_absolute()
