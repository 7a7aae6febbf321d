"""Pretrained weights in safetensors files, and what training on captions changed in them."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError, safe_open

from diptych.arrays import FloatArray
from diptych.encoders.networks.model_files import digest_of_files, is_outside_folder
from diptych.errors import ModelFileError

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
SAFETENSORS_FILES = (_SINGLE, _INDEX)
"""A model folder has one of these."""

_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "open_clip_pytorch_model.bin")
WEIGHTS_FILES = (*SAFETENSORS_FILES, *_PICKLED)
"""The same, or one of these, whose conversion :meth:`Weights.of_folder` explains."""


class Weights:
    """The named arrays of one or several safetensors files, read one at a time as float32.

    Half-precision numbers, also those with eight bits of exponent (bfloat16), are widened, which is exact.
    """

    def __init__(self, files: tuple[Path, ...]) -> None:
        self.files = files
        self._prefix = ""
        self._places = {name: file for file in files for name in _names_in(file)}

    @classmethod
    def of_folder(cls, folder: Path, single: str = _SINGLE) -> Self:
        """Open the weights of a model folder: one file, or the parts that an index lists."""
        if (folder / single).is_file():
            return cls((folder / single,))
        if (folder / _INDEX).is_file():
            return cls(_indexed_files(folder))
        pickled = [name for name in _PICKLED if (folder / name).is_file()]
        if pickled:
            raise ModelFileError(
                f"{folder / pickled[0]} is a pickle, which could run code when read, so it is not; convert it once, "
                f"{_conversion(folder, pickled[0])}"
            )
        raise ModelFileError(f"{folder} has no {single}; copy the whole model folder, weights included")

    def under(self, prefix: str) -> Self:
        """Return the arrays whose names start with ``prefix``, named without it."""
        part = copy(self)
        part._prefix = self._prefix + prefix
        return part

    @property
    def digest(self) -> str:
        """A digest of the contents of all files."""
        return digest_of_files(self.files)

    def __contains__(self, name: str) -> bool:
        return self._holds(self._prefix + name)

    def __getitem__(self, name: str) -> FloatArray:
        return self._array(self._prefix + name)

    def optional(self, name: str) -> FloatArray | None:
        """Return an array, or None where there is none of that name."""
        if name not in self:
            return None
        return self[name]

    def _holds(self, name: str) -> bool:
        return name in self._places

    def _array(self, name: str) -> FloatArray:
        if name not in self._places:
            where = ", ".join(file.name for file in self.files)
            raise ModelFileError(
                f"{self.files[0].parent} lacks the weight {name!r} (in {where}); configuration and weights do not "
                "belong together, or the files are incomplete: copy the model folder again"
            )
        return _read_tensor(self._places[name], name)


def _conversion(folder: Path, pickled: str) -> str:
    if pickled.startswith("open_clip"):
        return (
            "in Python with open_clip and safetensors installed: "
            f"safetensors.torch.save_model(open_clip.create_model('local-dir:{folder}'), "
            f"{str(folder / 'open_clip_model.safetensors')!r})"
        )
    return (
        "in Python with transformers installed: "
        f"AutoModel.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
    )


def _names_in(file: Path) -> list[str]:
    with _opened(file) as content:
        return list(content.keys())


def _read_tensor(file: Path, name: str) -> FloatArray:
    with _opened(file) as content:
        if content.get_slice(name).get_dtype() == "BF16":
            return _read_bfloat16(file, name)
        return np.asarray(content.get_tensor(name), dtype=np.float32)


def _read_bfloat16(file: Path, name: str) -> FloatArray:
    # NumPy has no such type, but its bits are the upper half of a float32.
    with file.open("rb") as content:
        header_length = int.from_bytes(content.read(8), "little")
        place = json.loads(content.read(header_length))[name]
        start, end = place["data_offsets"]
        content.seek(8 + header_length + start)
        upper = np.frombuffer(content.read(end - start), dtype="<u2")
    return (upper.astype(np.uint32) << 16).view(np.float32).reshape(place["shape"])


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="np")
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"{file} cannot be read as safetensors ({error}); copy the file again") from error


def _indexed_files(folder: Path) -> tuple[Path, ...]:
    try:
        places = json.loads((folder / _INDEX).read_text(encoding="utf-8"))["weight_map"]
        files = tuple(folder / name for name in sorted(set(places.values())))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{folder / _INDEX} is not an index of weights ({error!r}); copy it again") from error
    outside = sorted(name for name in set(places.values()) if is_outside_folder(name))
    if outside:
        raise ModelFileError(
            f"{folder / _INDEX} names {outside[0]!r}, which is outside the folder; do not use this model"
        )
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelFileError(f"{folder} lacks {', '.join(missing)}, listed in {_INDEX}; copy the missing parts")
    return files


CHANGES_FOLDER = Path(__file__).parents[1] / "changes"
"""Where the package keeps its files of changes; ``scripts/tune_networks.py`` writes them."""


class WeightChanges:
    """The changes of one network.

    A convolution is changed by steps of eight bits, of a size of its own for each output channel; a matrix by the
    product of two thin ones (Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022).
    """

    def __init__(self, name: str) -> None:
        self._arrays = Weights((CHANGES_FOLDER / f"{name}.safetensors",))

    @property
    def digest(self) -> str:
        """The digest of the file."""
        return self._arrays.digest

    def convolution(self, layer: str) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the kernel and the bias of a convolution with its normalisation folded in."""
        steps, sizes = self._arrays[f"{layer}.steps"], self._arrays[f"{layer}.size"]
        return np.asarray(steps * sizes[:, None, None, None]), self._arrays[f"{layer}.bias"]

    def matrix(self, name: str) -> FloatArray | None:
        """Return what is added to a matrix, None where it stays as it was."""
        if f"{name}.left" not in self._arrays:
            return None
        return np.asarray(self._arrays[f"{name}.left"] @ self._arrays[f"{name}.right"])


class ChangedWeights(Weights):
    """The weights of a network with the changes of their matrices added."""

    def __init__(self, weights: Weights, changes: WeightChanges) -> None:
        self.files, self._prefix = weights.files, ""
        self._weights, self._changes = weights, changes

    def _holds(self, name: str) -> bool:
        return name in self._weights

    def _array(self, name: str) -> FloatArray:
        array, change = self._weights[name], self._changes.matrix(name)
        return array if change is None else np.asarray(array + change)
