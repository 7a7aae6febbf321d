"""Weights: arrays out of files of PyTorch, read without running them, and what training on captions changed in them."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import check_known_file, digest_of_files

CHANGES_FOLDER = Path(__file__).parents[1] / "changes"
"""Where the package keeps its files of changes; ``scripts/tune_networks.py`` writes them."""
_STORAGE_TYPES: dict[str, np.dtype[Any]] = {"torch FloatStorage": np.dtype("<f4"), "torch LongStorage": np.dtype("<i8")}
_TENSOR, _TUPLE_ENDS = "torch._utils _rebuild_tensor_v2", ("TUPLE", "TUPLE1", "TUPLE2", "EMPTY_TUPLE")
_END = ("tuple", None)


class _Tensor(NamedTuple):
    name: str
    storage: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_weights(path: Path, sha256: str) -> dict[str, AnyArray]:
    """Return the tensors of a weight file of PyTorch's first format by name, after checking that it is the known file.

    Such a file is three pickles about the format, one that describes the tensors, one with the order of their storages,
    and raw numbers. The pickles are listed with :mod:`pickletools`, which executes nothing.
    """
    check_known_file(path, sha256)
    stream = io.BytesIO(path.read_bytes())
    for _ in range(3):
        _listed(stream)
    tensors = list(_described_tensors(_listed(stream)))
    dtypes = {tensor.storage: tensor.dtype for tensor in tensors}
    storages: dict[str, AnyArray] = {}
    for key in (str(value) for operation, value in _listed(stream) if operation == "text"):
        count = int.from_bytes(stream.read(8), "little")
        storages[key] = np.frombuffer(stream.read(count * dtypes[key].itemsize), dtype=dtypes[key])
    arrays = {}
    for tensor in tensors:
        steps = tuple(stride * tensor.dtype.itemsize for stride in tensor.strides)
        view = np.lib.stride_tricks.as_strided(storages[tensor.storage], tensor.shape, steps, writeable=False)
        arrays[tensor.name] = np.ascontiguousarray(view)
    return arrays


def _listed(stream: io.BytesIO) -> list[tuple[str, Any]]:
    """Return the texts, names, whole numbers and ends of tuples of one pickle, in their order."""
    found: list[tuple[str, Any]] = []
    memo: dict[Any, tuple[str, Any]] = {}
    for operation, argument, _ in pickletools.genops(stream):
        name = operation.name
        if name == "BINUNICODE":
            found.append(("text", argument))
        elif name == "GLOBAL":
            found.append(("name", argument))
        elif name in ("BININT", "BININT1", "BININT2"):
            found.append(("number", argument))
        elif name in _TUPLE_ENDS:
            found.append(_END)
        elif name in ("BINPUT", "LONG_BINPUT") and found:
            memo[argument] = found[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            found.append(memo[argument])
    return found


def _described_tensors(listed: list[tuple[str, Any]]) -> Iterator[_Tensor]:
    """Yield the tensors that a pickle describes, each of which begins its storage.

    A tensor is its name, how it is made, "storage", its type, its storage, where that was, the number of its entries,
    the end of this tuple, the first entry, the shape and its end, and the strides and their end.
    """
    numbers = [value for _, value in listed]
    for place, value in enumerate(listed):
        if value != ("name", _TENSOR):
            continue
        (_, name), (_, kind), (_, storage) = listed[place - 1], listed[place + 2], listed[place + 3]
        middle = listed.index(_END, place + 8)
        end = listed.index(_END, middle + 1)
        shape, strides = tuple(numbers[place + 8 : middle]), tuple(numbers[middle + 1 : end])
        yield _Tensor(name, storage, _STORAGE_TYPES[kind], shape, strides)


class WeightChanges:
    """The changes of one network.

    A convolution is changed by steps of eight bits, of a size of its own for each output channel; a matrix by the
    product of two thin ones (Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022).
    """

    def __init__(self, name: str) -> None:
        self._file = CHANGES_FOLDER / f"{name}.safetensors"

    @cached_property
    def _arrays(self) -> dict[str, FloatArray]:
        # The digest is asked for at every start, and the numbers only once.
        return read_arrays(self._file)

    @property
    def digest(self) -> str:
        """The digest of the file."""
        return digest_of_files((self._file,))

    def convolution(self, layer: str) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the kernel and the bias of a convolution with its normalisation folded in."""
        steps, sizes = self._arrays[f"{layer}.steps"], self._arrays[f"{layer}.size"]
        return np.asarray(steps * sizes[:, None, None, None]), self._arrays[f"{layer}.bias"]

    def matrix(self, name: str) -> FloatArray | None:
        """Return what is added to a matrix, None where it stays as it was."""
        if f"{name}.left" not in self._arrays:
            return None
        return np.asarray(self._arrays[f"{name}.left"] @ self._arrays[f"{name}.right"])


def read_arrays(file: Path) -> dict[str, FloatArray]:
    """Read a safetensors file of the package, all numbers as float32."""
    return {name: values.astype(np.float32) for name, values in load_file(file).items()}
