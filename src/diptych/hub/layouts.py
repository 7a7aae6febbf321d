"""Which files of a repository make a joint model, and names that no honest repository has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diptych.errors import DiptychError

NEVER_FETCHED = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".py", ".npz", ".npy", ".zip", ".tar", ".gz", ".armnn")
"""Kinds of files that are never fetched: pickles and programs could execute something, archives hide what they hold."""
EDITIONS = ("full", "fp16", "quantized", "int8", "uint8", "q4", "q4f16", "bnb4")
"""Editions of an ONNX network, the most exact first."""

_DRIVE = re.compile(r"[A-Za-z]:")
_WEIGHT_PART = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_PREPROCESSORS = ("preprocessor_config.json", "processor_config.json")


class HubError(DiptychError):
    """What the hub offers or sends cannot be used, or it cannot be reached; trying again later may help."""


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: its path, size, and digest: SHA-256 of a large one, Git's SHA-1 of any other."""

    path: str
    size: int
    digest: str

    @property
    def part(self) -> str:
        """The path of what has come of the file: bytes of another content have another one."""
        return f"{self.path}.{self.digest[:12]}.part"


@dataclass(frozen=True)
class Choice:
    """The files to fetch; of ``beside_graphs`` those alone that a graph names for its weights."""

    layout: str
    edition: str
    files: tuple[HubFile, ...]
    beside_graphs: tuple[HubFile, ...] = ()

    @property
    def n_files(self) -> int:
        """The number of files, at most."""
        return len(self.files) + len(self.beside_graphs)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in (*self.files, *self.beside_graphs))


@dataclass(frozen=True)
class _Layout:
    """Each of ``needed`` is a choice of names, all of ``optional`` are taken; ``{}`` is the edition."""

    name: str
    needed: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...] = ()
    editions: tuple[str, ...] = EDITIONS[:1]


# The first one that a repository has is taken.
_LAYOUTS = (
    _Layout(
        "ONNX",
        (
            ("onnx/vision_model{}.onnx",),
            ("onnx/text_model{}.onnx",),
            ("tokenizer.json",),
            _PREPROCESSORS,
        ),
        ("config.json", *_PREPROCESSORS, *_TOKENIZERS[:3]),
        EDITIONS,
    ),
    _Layout(
        "ONNX of a photo server",
        (
            ("visual/model.onnx",),
            ("textual/model.onnx",),
            ("config.json",),
            ("visual/preprocess_cfg.json",),
            ("textual/tokenizer.json", "tokenizer.json"),
        ),
        (*_TOKENIZERS[:3], *(f"textual/{name}" for name in _TOKENIZERS[:3])),
    ),
    _Layout("OpenCLIP", (("open_clip_config.json",), ("open_clip_model.safetensors",)), _TOKENIZERS),
    _Layout(
        "Transformers",
        (
            ("config.json",),
            ("model.safetensors", "model.safetensors.index.json"),
            ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model"),
            _PREPROCESSORS,
        ),
        (*_PREPROCESSORS, *_TOKENIZERS),
    ),
)


def choose_files(repository: str, tree: Sequence[HubFile], edition: str | None) -> Choice:
    """Return the files of a joint model among those of a repository, in one edition.

    A repository with a name that leads out of a folder is refused whole, whether the file is chosen or not.
    """
    for file in tree:
        _check_name(repository, file.path)
    by_path = {file.path: file for file in tree}
    if len({path.casefold() for path in by_path}) < len(by_path):
        raise HubError(f"{repository} has files whose names differ in capitals alone; nothing was fetched")
    for layout in _LAYOUTS:
        for one in layout.editions if edition is None else (edition,):
            paths = _paths(layout, one, by_path) if one in layout.editions else None
            if paths is not None:
                return _choice(layout.name, one, paths, by_path)
    raise HubError(f"{repository} holds no joint model that can be used: {_what_lacks(by_path, edition)}")


def _check_name(repository: str, path: str) -> None:
    parts = path.split("/")
    leads_out = any(part in ("", ".", "..") for part in parts) or "\\" in path or _DRIVE.match(path) is not None
    if leads_out or not path.isprintable():
        raise HubError(f"{repository} has a file named {path!r}, which leads out of its folder; nothing was fetched")


def _paths(layout: _Layout, edition: str, by_path: Mapping[str, HubFile]) -> list[str] | None:
    """Return the paths of a layout that a repository has, or None where one that is needed is missing."""
    suffix = "" if edition == EDITIONS[0] else f"_{edition}"
    found = [
        next((path for name in names if (path := name.format(suffix)) in by_path), None) for names in layout.needed
    ]
    needed = [path for path in found if path is not None]
    return needed if len(needed) == len(found) else None


def _choice(layout: str, edition: str, needed: Sequence[str], by_path: Mapping[str, HubFile]) -> Choice:
    paths = set(needed) | {path for one in _LAYOUTS if one.name == layout for path in one.optional if path in by_path}
    paths |= by_path.keys() & {"README.md", "LICENSE", "LICENSE.md", "LICENSE.txt"}
    if "model.safetensors.index.json" in paths:
        paths |= {path for path in by_path if _WEIGHT_PART.fullmatch(path)}
    beside: set[str] = set()
    for graph in (path for path in needed if path.endswith(".onnx")):
        paths |= {path for path in (f"{graph}_data", f"{graph}.data") if path in by_path}
        if graph.endswith("/model.onnx"):
            folder = graph.removesuffix("model.onnx")
            beside |= {path for path in by_path if path.startswith(folder) and "/" not in path.removeprefix(folder)}
    beside = {path for path in beside - paths if not path.lower().endswith((*NEVER_FETCHED, ".json", ".txt", ".onnx"))}
    return Choice(
        layout, edition, tuple(by_path[path] for path in sorted(paths)), tuple(by_path[path] for path in sorted(beside))
    )


def _what_lacks(by_path: Mapping[str, HubFile], edition: str | None) -> str:
    if edition not in (None, *EDITIONS):
        return f"there is no edition {edition!r}; choose from {', '.join(EDITIONS)}"
    if edition is not None:
        return f"it has no edition {edition!r} of both towers; leave --edition out"
    pickles = [path for path in by_path if path.lower().endswith((".bin", ".pt", ".pth"))]
    if pickles and not any(path.endswith((".safetensors", ".onnx")) for path in by_path):
        return f"its weights are pickles ({pickles[0]}), which may execute anything and are never fetched"
    return (
        "it needs onnx/vision_model.onnx and onnx/text_model.onnx, or visual/model.onnx and textual/model.onnx, or "
        "open_clip_model.safetensors, or model.safetensors, each with tokenizer and configuration"
    )
