"""Files of models: configurations, digests that are remembered, and the external weights of ONNX files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder
from diptych.errors import MissingPackageError, ModelFileError, import_package


def digest_of_files(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, whatever their names.

    The digest of each file is remembered in the cache folder by path, inode, size and times of change, so that
    gigabytes of weights are read through once and not at every start.
    """
    parts = [_digest_in_state(file, file_state(file)) for file in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check_known_file(file: Path, sha256: str) -> None:
    """Raise unless a file of a package is the one whose digest was written down; as above, it is read through once."""
    found = _digest_in_state(file, file_state(file))
    if found != sha256:
        raise ModelFileError(
            f"{file} is not the file this version of Diptych knows (sha256 {found}, expected {sha256}); "
            f"install its package again"
        )


def packaged_file(package: str, path: str, purpose: str, requirement: str) -> Path:
    """Return a file that an installed package brings, or say which to install; no code of the package is run."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(purpose, requirement)
    return Path(spec.submodule_search_locations[0], path)


def file_state(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return what changes whenever a file is written or replaced."""
    return state_of(os.stat(path))


def state_of(state: os.stat_result) -> tuple[int, ...]:
    """Return the same of a file whose status is known."""
    # A copy may keep size and time of the file it replaces; the time of the last change to the entry cannot be set.
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def read_model_json(file: Path, default: Any = None) -> Any:
    """Read a configuration file, an object unless ``default``, for a file that may be missing, is a list."""
    if default is not None and not file.is_file():
        return default
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(f"{file.parent} lacks {file.name}; copy the whole model folder") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{file} cannot be read ({error}); copy the file again") from error
    wanted = list if isinstance(default, list) else dict
    if not isinstance(content, wanted):
        raise ModelFileError(f"{file} does not hold a JSON {'list' if wanted is list else 'object'}; copy it again")
    return content


# Every search asks, and even a look at the note would be a fourth of its time.
@lru_cache(maxsize=256)
def _digest_in_state(file: Path, facts: tuple[int, ...]) -> str:
    key = hashlib.sha256("\0".join(map(str, (file.resolve(), *facts))).encode()).hexdigest()
    note = cache_folder() / "networks" / "digests" / key
    with suppress(OSError):
        remembered = note.read_text(encoding="ascii")
        if len(remembered) == hashlib.sha256().digest_size * 2:
            return remembered
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    # Where nothing can be written, the file is read again the next time; that is all.
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(note, private=True) as draft:
            draft.write_text(digest, encoding="ascii")
    return digest


def is_outside_folder(name: str) -> bool:
    """Return True if a name, read as a path below a folder, leads out of it on any system.

    Only the name is judged: a link in the folder was put there by its owner, as download caches do.
    """
    windows = PureWindowsPath(name)
    return bool(windows.anchor) or ".." in windows.parts or PurePosixPath(name).is_absolute()


def onnx_package() -> Any:
    """Return the module onnx, which reads and writes networks without running them."""
    return import_package("onnx", "reading or writing a network", "onnx")


@dataclass(frozen=True)
class OnnxFacts:
    """What an ONNX file says of itself before it is run."""

    external: tuple[Path, ...]
    """The files beside it that hold its weights, whatever they are called, in order of their names."""

    quantises_batches: bool
    """Whether it rounds by the range of all that it is given at once, so that items change each other's results."""


def onnx_facts(file: Path) -> OnnxFacts:
    """Read an ONNX file without its external weights, which must lie beside it."""
    onnx = onnx_package()
    try:
        model = onnx.load(file, load_external_data=False)
    except Exception as error:
        # The parser's errors have no base in common with those of the file system.
        raise ModelFileError(f"{file} cannot be read as ONNX ({error}); copy the file again") from error
    graphs = list(_graphs(model.graph))
    locations = sorted({location for graph in graphs for location in _external_locations(graph)})
    for location in locations:
        if is_outside_folder(location):
            raise ModelFileError(f"{file} keeps weights in {location!r}, outside its folder; do not use this model")
        if not (file.parent / location).is_file():
            raise ModelFileError(
                f"{file.parent} lacks {location}, which {file.name} needs; copy the whole model folder"
            )
    operators = {node.op_type for graph in graphs for node in graph.node}
    return OnnxFacts(
        external=tuple(file.parent / location for location in locations),
        quantises_batches=any(name.startswith("DynamicQuantize") for name in operators),
    )


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _graphs(inner)


def _external_locations(graph: Any) -> Iterator[str]:
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    inner = [tensor for attribute in attributes for tensor in (attribute.t, *attribute.tensors)]
    for tensor in (*graph.initializer, *inner):
        for entry in tensor.external_data:
            if entry.key == "location":
                yield entry.value
