"""From what people type to values, encoders and retrievers."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from diptych.encoders import Concatenated, Encoder
from diptych.encoders.encoder import Modality
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.estimators import parameter_types
from diptych.lazy_exports import import_exports
from diptych.plugins import ENCODERS, installed_classes

if TYPE_CHECKING:
    from diptych.retriever import Retriever

# A plus joins encoders only where a name follows, so that numbers such as 1e+5 and most paths may hold one.
_JOINED = re.compile(r"\+(?=\s*[A-Za-z]\w*\s*(?:[:+]|$))")
_SEPARATE = re.compile(r"""(?:[^,"'\[\](]|"(?:\\.|[^"\\])*"|'[^']*'|\[[^\]]*\])+""")


def parse_value(text: str) -> Any:
    """Read a value as JSON where it is JSON, as Python writes it where that is usual, and else as a string.

    >>> [parse_value(text) for text in ("9", "1e-3", ".5", "true", "None", "null", "pearson", '"9"', "[1, 2]")]
    [9, 0.001, 0.5, True, None, None, 'pearson', '9', [1, 2]]
    """
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError):
            return read(text)
    return text


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Read every ``name=value``; ``option`` is where they were typed.

    >>> parse_assignments(["C=10", "correlation=kcca"], "--param")
    {'C': 10, 'correlation': 'kcca'}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        name = name.strip()
        if not mark or not name:
            raise InvalidInputError(f"{option} takes name=value, got {text!r}")
        if name in values:
            raise InvalidInputError(f"{option} sets {name!r} twice; give it once")
        values[name] = parse_value(value.strip())
    return values


def encoder_classes(modality: Modality | None = None) -> dict[str, type[Encoder]]:
    """Return every encoder that can be asked for by name, of pictures, of texts or of both, plugins included.

    >>> "ColourEdgeHistograms" in encoder_classes("image"), "ColourEdgeHistograms" in encoder_classes("text")
    (True, False)
    """
    further: dict[str, Any] = {cls.__name__: cls for cls in installed_classes(ENCODERS, Encoder)}  # type: ignore[type-abstract]
    return {
        name: found
        for name, found in sorted((further | import_exports("diptych.encoders")).items())
        if isinstance(found, type)
        and issubclass(found, Encoder)
        and not inspect.isabstract(found)
        and not issubclass(found, Concatenated)
        and modality in (None, found.modality)
    }


def find_encoder(name: str, modality: Modality | None = None) -> type[Encoder]:
    """Return the encoder of that name, whatever its case; a typo gets a suggestion."""
    known = encoder_classes(modality)
    for spelled, found in known.items():
        if spelled.lower() == name.lower():
            return found
    kind = {"image": "encoder of pictures", "text": "encoder of texts", None: "encoder"}[modality]
    raise UnknownNameError(kind, name, known)


def build_encoder(typed: str, modality: Modality, option: str) -> Encoder:
    """Return the encoder described as ``NAME[:parameter=value,...]``, or several joined with ``+``.

    >>> build_encoder("TfidfTopics:n_components=20,stop_words=None", "text", "--text-encoder")
    TfidfTopics(n_components=20, stop_words=None)
    """
    parts = tuple(_build_one(part.strip(), modality, option) for part in _JOINED.split(typed))
    return parts[0] if len(parts) == 1 else Concatenated(encoders=parts)


def build_encoders(image: str | None, text: str | None) -> tuple[Encoder | None, Encoder | None]:
    """Return the encoders that ``--image-encoder`` and ``--text-encoder`` describe."""
    return (
        build_encoder(image, "image", "--image-encoder") if image else None,
        build_encoder(text, "text", "--text-encoder") if text else None,
    )


def _build_one(typed: str, modality: Modality, option: str) -> Encoder:
    name, _, assignments = typed.partition(":")
    cls = find_encoder(name.strip(), modality)
    parameters = parse_assignments(_SEPARATE.findall(assignments), option)
    known = inspect.signature(cls).parameters
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of {cls.__name__}", parameter, known)
        if isinstance(parameters[parameter], list):
            # JSON has lists only.
            parameters[parameter] = tuple(parameters[parameter])
        value, hint = parameters[parameter], parameter_types(cls).get(parameter, Any)
        if not _fits(value, hint):
            takes = hint.__name__ if isinstance(hint, type) else hint
            raise InvalidInputError(f"{parameter!r} of {name} cannot be {value!r}; it takes {takes}")
    missing = [key for key, about in known.items() if about.default is about.empty and key not in parameters]
    if missing:
        raise InvalidInputError(f"{cls.__name__} needs {missing[0]!r}: {option} {cls.__name__}:{missing[0]}=...")
    return cls(**parameters)


def _fits(value: Any, hint: Any) -> bool:
    """Return True if a value is of a type; an int is a float, too, and a bool is neither."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kind = get_origin(hint) or hint
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def load_retriever(name: str) -> Retriever:
    """Return a retriever of the package, one on a joint model by its name or folder, or one saved in a folder."""
    from diptych.hub.place import find_model
    from diptych.retriever import Retriever
    from diptych.retriever.ready_made import READY_MADE

    if name == "default":
        return Retriever.default()
    if name in READY_MADE:
        return Retriever.ready_made(name)
    # Names come before folders of the current one, so that they mean the same everywhere.
    folder = find_model(name) or Path(name).expanduser()
    if (folder / "model.json").is_file():
        return Retriever.load(folder)
    if folder.is_dir():
        return Retriever.joint(folder)
    if folder.exists():
        raise InvalidInputError(f"{folder} is a file; --retriever takes {', '.join(READY_MADE)} or a folder")
    raise UnknownNameError(
        "search model (retriever)",
        name,
        READY_MADE,
        besides="a joint model that `diptych models list` names, or the folder of a model",
    )
