"""Arrays out of a PyTorch weight file, without PyTorch and without running anything the file says."""

from __future__ import annotations

import hashlib
import io
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import ModelFileError

_STORAGE_TYPES: dict[str, np.dtype[Any]] = {"torch FloatStorage": np.dtype("<f4"), "torch LongStorage": np.dtype("<i8")}
_HEADER_PICKLES = 3
_MARK = object()


@dataclass(frozen=True)
class _Tensor:
    storage: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_weights(path: Path, sha256: str) -> dict[str, AnyArray]:
    """Return the tensors of a weight file of PyTorch's first format by name, after checking that it is the known file.

    Such a file is a few pickles followed by raw numbers. The pickles are listed with :mod:`pickletools`, which executes
    nothing, and only the handful of operations that describe tensors are understood.
    """
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ModelFileError(
            f"{path} is not the file this version of Diptych knows (sha256 {found}, expected {sha256}); "
            f"install its package again"
        )
    stream = io.BytesIO(content)
    for _ in range(_HEADER_PICKLES):
        _described(stream)
    tensors = _described(stream)
    storage_keys = _described(stream)
    storages = _storages(stream, storage_keys, {tensor.storage: tensor.dtype for tensor in tensors.values()})
    return {name: _array(tensor, storages[tensor.storage]) for name, tensor in tensors.items()}


def _storages(stream: io.BytesIO, keys: list[str], dtypes: dict[str, np.dtype[Any]]) -> dict[str, AnyArray]:
    storages = {}
    for key in keys:
        count = int.from_bytes(stream.read(8), "little")
        storages[key] = np.frombuffer(stream.read(count * dtypes[key].itemsize), dtype=dtypes[key])
    return storages


def _array(tensor: _Tensor, storage: AnyArray) -> AnyArray:
    steps = tuple(stride * tensor.dtype.itemsize for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, steps, writeable=False)
    return np.ascontiguousarray(view)


def _described(stream: io.BytesIO) -> Any:
    """Read one pickle as a description: mappings, lists, numbers, names and tensors still without numbers."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for operation, argument, _ in pickletools.genops(stream):
        name = operation.name
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in ("GLOBAL", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"):
            stack.append(argument)
        elif name in _STEPS:
            _STEPS[name](stack)
        elif name not in ("PROTO", "STOP"):
            raise ModelFileError(f"a weight file uses the operation {name}, which no plain list of tensors needs")
    return stack.pop()


def _popped_to_mark(stack: list[Any]) -> list[Any]:
    # Compared by identity: entries may be arrays or mappings, for which == means something else.
    place = next(place for place in range(len(stack) - 1, -1, -1) if stack[place] is _MARK)
    above = stack[place + 1 :]
    del stack[place:]
    return above


def _tuple_of(count: int) -> Callable[[list[Any]], None]:
    def step(stack: list[Any]) -> None:
        entries = tuple(stack[-count:])
        del stack[-count:]
        stack.append(entries)

    return step


def _set_item(stack: list[Any]) -> None:
    key, value = stack[-2:]
    del stack[-2:]
    stack[-1][key] = value


def _set_items(stack: list[Any]) -> None:
    entries = _popped_to_mark(stack)
    stack[-1].update(zip(entries[::2], entries[1::2], strict=True))


def _extend(stack: list[Any]) -> None:
    entries = _popped_to_mark(stack)
    stack[-1].extend(entries)


def _call(stack: list[Any]) -> None:
    function, arguments = stack[-2:]
    del stack[-2:]
    if function == "collections OrderedDict":
        stack.append({})
    elif function == "torch._utils _rebuild_tensor_v2":
        (_, storage_type, key, *_), offset, shape, strides = arguments[:4]
        stack.append(_Tensor(key, _STORAGE_TYPES[storage_type], offset, shape, strides))
    else:
        raise ModelFileError(f"a weight file asks for {function!r}, which is not a tensor")


_STEPS: dict[str, Callable[[list[Any]], None]] = {
    "MARK": lambda stack: stack.append(_MARK),
    "NONE": lambda stack: stack.append(None),
    "NEWTRUE": lambda stack: stack.append(True),
    "NEWFALSE": lambda stack: stack.append(False),
    "EMPTY_TUPLE": lambda stack: stack.append(()),
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "TUPLE": lambda stack: stack.append(tuple(_popped_to_mark(stack))),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPENDS": _extend,
    "REDUCE": _call,
    # A storage is referred to by a tuple that names it; the tuple itself serves as the reference.
    "BINPERSID": lambda stack: None,
    # The state of a mapping holds PyTorch's own version notes.
    "BUILD": lambda stack: stack.pop(),
}
