"""PyTorch, which only training needs, imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models.parameters import check_choice

Device = Literal["auto", "cpu", "cuda"]


def torch_package(name: str = "torch") -> Any:
    """Return PyTorch, or say how to install it.

    >>> from diptych.models.neural.torch_package import torch_package
    >>> torch_package("no_such_module")
    Traceback (most recent call last):
    diptych.errors.MissingPackageError: training a network needs a package that is not installed: \
pip install 'diptych[deep]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError("training a network", "'diptych[deep]'") from None


def choose_device(device: Device) -> str:
    """Return where to train: ``auto`` is the graphics card where PyTorch finds one, else the processor."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    if device == "cpu":
        return "cpu"
    found = bool(torch_package().cuda.is_available())
    if device == "cuda" and not found:
        raise InvalidInputError("device is 'cuda', but PyTorch finds no graphics card; use 'auto' or 'cpu'")
    return "cuda" if found else "cpu"
