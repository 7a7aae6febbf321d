"""Model folders: JSON and safetensors, written whole, checked when read, never executed.

A folder holds ``model.json`` (class, parameters, learned scalars, versions, provenance, checksums) and
``arrays.safetensors`` (learned arrays). A nested model is a nested JSON object whose arrays carry its path as prefix.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from diptych._version import __version__
from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, ModelFileError
from diptych.estimators import BaseEstimator
from diptych.lazy_exports import import_exports
from diptych.plugins import ENCODERS, METHODS, installed_classes

FORMAT = "diptych-model"
FORMAT_VERSION = 2
_PACKAGES = ("diptych.encoders", "diptych.models")
_JSON, _ARRAYS = "model.json", "arrays.safetensors"
_SWAP_ATTEMPTS = 20
_MOST_STRING_BYTES = 2**29
_PLAIN = frozenset({str, int, float, bool, type(None)})


def write_model(model: BaseEstimator, folder: str | PathLike[str]) -> None:
    """Write ``model`` to ``folder`` through a sibling folder and a rename, so that a crash leaves no half model."""
    # Resolved, so that a link keeps pointing where it did.
    target = Path(folder).resolve()
    check_replaceable(target)
    draft = _beside(target, "draft")
    draft.mkdir(parents=True)
    try:
        arrays: dict[str, AnyArray] = {}
        content = _pack_model(model, "", arrays)
        save_file(arrays, draft / _ARRAYS)
        document = {**_header(draft / _ARRAYS), "model": content}
        text = json.dumps({**document, "checksum": _checksum(document)}, indent=2, allow_nan=False)
        (draft / _JSON).write_text(f"{text}\n", encoding="utf-8")
        for name in (_ARRAYS, _JSON):
            with (draft / name).open("rb") as stream:
                os.fsync(stream.fileno())
        # The writer of arrays makes private files; both should be readable to the same people.
        (draft / _ARRAYS).chmod((draft / _JSON).stat().st_mode)
        _swap(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class KnownClasses:
    """The classes under ``roots`` that a file may name: what is imported, and what our packages export.

    These are imported for a class that is not there yet alone, which a search hardly ever meets.
    """

    def __init__(self, *roots: type[BaseEstimator]) -> None:
        self._roots = roots

    def find(self, name: str, module: str | None) -> type[BaseEstimator] | None:
        """Return the class of a name; of several the one from the module that saved the model, then the first."""
        for is_last in (False, True):
            candidates = known_classes(*self._roots).get(name, [])
            same = [cls for cls in candidates if cls.__module__ == module or _are_ours(cls.__module__, module)]
            if same or is_last:
                break
            for package in _PACKAGES:
                import_exports(package)
            for group in (METHODS, ENCODERS):
                installed_classes(group, BaseEstimator)
        return next(iter([*same, *candidates]), None)


def _are_ours(*modules: str | None) -> bool:
    """Return True if all are modules of Diptych, whose classes have one name each wherever they move."""
    return all(module is not None and module.startswith("diptych.") for module in modules)


def read_model(folder: str | PathLike[str], known: KnownClasses) -> BaseEstimator:
    """Read a model built of ``known`` classes alone; any defect of the folder is one clear error."""
    source = Path(folder)
    document = _read_json(source)
    arrays = _read_arrays(source, document)
    try:
        model = _unpack_model(document["model"], arrays, known)
    except ModelFileError:
        raise
    except (Exception, RecursionError) as problem:
        # Constructors of models, too, fail on nonsense in every way they can.
        said = f"{source / _JSON} does not describe a whole model ({problem!r:.300})"
        raise ModelFileError(f"{said}; save it again") from None
    if arrays:
        raise ModelFileError(f"{source / _ARRAYS} holds arrays the model does not use: {', '.join(sorted(arrays))}")
    return model


def model_digest(model: BaseEstimator, *, parameters: Collection[str] | None = None) -> str:
    """Return a digest of a model's class, parameters and everything it learned; equal digests encode alike.

    ``parameters`` names those that count, for a model that needs the others only to learn; by default all do. The
    module of a class is not part of it, so that a class can be moved.
    """
    arrays: dict[str, AnyArray] = {}
    content = _digested_model(_pack_model(model, "", arrays, parameters))
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"\0{name}{values.dtype.str}{values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]


def known_classes(*roots: type[BaseEstimator]) -> dict[str, list[type[BaseEstimator]]]:
    """Return the imported classes under ``roots`` by name, ours first; one's own loads as soon as it is imported."""
    found: list[type[BaseEstimator]] = []
    waiting = list(roots)
    while waiting:
        found += waiting
        waiting = [subclass for cls in waiting for subclass in cls.__subclasses__()]
    known: dict[str, list[type[BaseEstimator]]] = {}
    for cls in sorted(found, key=lambda cls: not cls.__module__.startswith("diptych.")):
        known.setdefault(cls.__name__, []).append(cls)
    return known


def fitted_state(model: BaseEstimator) -> dict[str, Any]:
    """Return the learned attributes of ``model``: those whose names end in an underscore."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


def check_replaceable(target: Path) -> None:
    """Raise unless a model can be saved at ``target`` without losing anything but an older model."""
    if target.is_file():
        raise InvalidInputError(f"{target} is a file; choose a folder to save the model in")
    try:
        names = {path.name for path in target.iterdir()}
    except FileNotFoundError:
        return
    if names and not ({_JSON} <= names <= {_JSON, _ARRAYS} and _is_ours(target / _JSON)):
        raise InvalidInputError(f"{target} holds other files than a model of ours; choose an empty or new folder")


def _is_ours(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("format") == FORMAT)
    except FileNotFoundError:
        # Seen a moment ago: another process is replacing its model right now.
        return True
    except (OSError, ValueError, AttributeError):
        return False


def _header(arrays: Path) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {"diptych": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "arrays_sha256": _digest(arrays),
    }


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checksum(document: Mapping[str, Any]) -> str:
    content = {key: value for key, value in document.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _beside(target: Path, purpose: str) -> Path:
    """Return a fresh hidden name next to ``target``."""
    return target.with_name(f".{target.name}.{purpose}-{uuid.uuid4().hex[:12]}")


def _swap(draft: Path, target: Path) -> None:
    """Put ``draft`` in place of ``target``; between the two renames the old model still exists beside it."""
    for attempt in range(_SWAP_ATTEMPTS):
        previous = _beside(target, "previous")
        try:
            if target.is_dir():
                target.rename(previous)
            draft.rename(target)
        except OSError:
            # Another process may have saved here between the two renames; then its model is the one to replace.
            with suppress(OSError):
                previous.rename(target)
            shutil.rmtree(previous, ignore_errors=True)
            if attempt == _SWAP_ATTEMPTS - 1:
                raise
        else:
            shutil.rmtree(previous, ignore_errors=True)
            return


def _read_json(source: Path) -> dict[str, Any]:
    path = source / _JSON
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError:
        resolved = source.resolve()
        left = sorted(resolved.parent.glob(f".{resolved.name}.previous-*"))
        hint = f"; an interrupted save left the older model in {left[-1]}, rename it" if left else ""
        raise ModelFileError(f"{source} is not a model folder: {_JSON} is missing{hint}") from None
    except (ValueError, RecursionError):
        raise ModelFileError(
            f"{path} is not valid JSON: the file is truncated or damaged; save the model again"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} was not written by Diptych: its format is not {FORMAT!r}")
    version = document.get("format_version")
    # True equals 1, and is no version.
    if type(version) is not int or version != FORMAT_VERSION:
        versions = document.get("versions")
        writer = versions.get("diptych", "") if isinstance(versions, dict) else ""
        raise ModelFileError(
            f"{path} has format version {version}, this Diptych {__version__} reads {FORMAT_VERSION}: "
            f"install Diptych {writer or 'of that time'} or fit the model again"
        )
    if document.get("checksum") != _checksum(document):
        raise ModelFileError(
            f"{path} was changed after it was saved: its checksum does not match; save the model again"
        )
    return document


def _read_arrays(source: Path, document: Mapping[str, Any]) -> dict[str, AnyArray]:
    path = source / _ARRAYS
    try:
        intact = _digest(path) == document.get("arrays_sha256")
        arrays = dict(load_file(path)) if intact else {}
    except OSError:
        raise ModelFileError(f"{source} is not a whole model: {_ARRAYS} is missing") from None
    except Exception as problem:
        # Numbers that NumPy has not, BF16 and F8 among them, are other errors than those of a damaged file.
        said = f"{path} is not a safetensors file of numbers that NumPy knows ({problem!r:.300})"
        raise ModelFileError(f"{said}; save the model again") from None
    if not intact:
        raise ModelFileError(f"{path} is truncated or was changed: its checksum does not match; save the model again")
    for name, values in arrays.items():
        # What was not measured while a model was trained is missing in its history, and computes nothing.
        is_number = name.endswith("history_") or values.dtype.kind != "f" or not np.isnan(values).any()
        if values.dtype.kind not in "biuf" or not is_number:
            raise ModelFileError(f"{path} holds {name} with values that are no numbers; fit the model again")
    return arrays


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _pack_model(
    model: BaseEstimator, prefix: str, arrays: dict[str, AnyArray], parameters: Collection[str] | None = None
) -> dict[str, Any]:
    given = {n: v for n, v in sorted(model.get_params(deep=False).items()) if parameters is None or n in parameters}
    return {
        "class": type(model).__name__,
        "module": type(model).__module__,
        "parameters": {name: _pack(value, f"{prefix}{name}.", arrays) for name, value in given.items()},
        "learned": {name: _pack(value, f"{prefix}{name}.", arrays) for name, value in fitted_state(model).items()},
    }


def _pack(value: Any, path: str, arrays: dict[str, AnyArray]) -> Any:
    # What scikit-learn itself fits holds state that no file of ours can.
    if isinstance(value, BaseEstimator) and not type(value).__module__.startswith("sklearn."):
        return {"$model": _pack_model(value, path, arrays)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "U":
            return {"$strings": value.tolist()}
        if value.dtype.kind not in "biuf":
            raise InvalidInputError(f"{path[:-1]} has dtype {value.dtype}, which no model file can hold")
        arrays[path[:-1]] = np.ascontiguousarray(value)
        return {"$array": path[:-1]}
    if isinstance(value, np.generic):
        return _pack(value.item(), path, arrays)
    if isinstance(value, list | tuple):
        is_plain = _are_plain(value)
        items = list(value) if is_plain else [_pack(item, f"{path}{n}.", arrays) for n, item in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInputError(f"{path[:-1]} is a {type(value).__name__}, which no model file can hold")


def _are_plain(values: Sequence[Any]) -> bool:
    """Whether values are what JSON holds as it is; a vocabulary is a hundred thousand of them."""
    return _PLAIN.issuperset(map(type, values))


def _digested_model(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a packed model as a digest reads it: without its module."""
    parts = ("parameters", "learned")
    values = {part: {key: _digested(value) for key, value in content[part].items()} for part in parts}
    return {"class": content["class"], **values}


def _digested(value: Any) -> Any:
    if isinstance(value, list):
        return value if _are_plain(value) else [_digested(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return {kind: _digested_model(content) if kind == "$model" else _digested(content)}


def _unpack_model(content: Mapping[str, Any], arrays: dict[str, AnyArray], known: KnownClasses) -> BaseEstimator:
    name = content["class"]
    cls = known.find(name, content.get("module"))
    if cls is None:
        raise ModelFileError(
            f"the model is a {name}, which this Diptych does not know: import its class and use its load"
        )
    unpack = partial(_unpack, arrays=arrays, known=known)
    model = cls(**{key: unpack(value) for key, value in content["parameters"].items()})
    for key, value in content["learned"].items():
        if not key.endswith("_") or key.startswith("_"):
            raise ModelFileError(f"{key!r} is no learned attribute of a {name}")
        setattr(model, key, unpack(value))
    return model


def _unpack(value: Any, *, arrays: dict[str, AnyArray], known: KnownClasses) -> Any:
    unpack = partial(_unpack, arrays=arrays, known=known)
    if isinstance(value, list):
        return value if _are_plain(value) else [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "$model":
        return _unpack_model(content, arrays, known)
    if kind == "$array":
        return arrays.pop(content)
    if kind == "$strings":
        # NumPy gives every string the room of the longest.
        if 4 * len(content) * max(map(len, content), default=0) > _MOST_STRING_BYTES:
            raise ModelFileError(f"{len(content):,} strings, one of which is very long, are no learned attribute")
        return np.array([str(text) for text in content], dtype=str)
    if kind == "$tuple":
        return tuple(unpack(content))
    raise ModelFileError(f"{kind!r} is no kind of value this Diptych knows")
