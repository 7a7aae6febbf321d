"""Whether a folder holds a joint model that can be used: its files, what it is, and how fast it is here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from diptych.encoders.joint.joint_folder import LAYOUT_FILES
from diptych.encoders.joint.joint_model import JointModel, open_joint_folder
from diptych.encoders.joint.onnx_folder import (
    IMAGE_TOWER_NAMES,
    OPEN_CLIP_CONFIG,
    OPEN_CLIP_PREPROCESSOR,
    TEXT_TOWER_NAMES,
    find_tower,
    has_tower,
)
from diptych.errors import DiptychError, ModelFileError

# Another file that does as well, or several that do together.
_INSTEAD = {
    "model.safetensors": (("model.safetensors.index.json",),),
    "preprocessor_config.json": (("processor_config.json",), (OPEN_CLIP_CONFIG,), (OPEN_CLIP_PREPROCESSOR,)),
    "tokenizer.json": (("textual/tokenizer.json",), ("vocab.json",), ("spiece.model",), ("tokenizer.model",)),
}
_OPTIONAL = ("tokenizer_config.json",)
_TOWERS = {"onnx/vision_model.onnx": IMAGE_TOWER_NAMES, "onnx/text_model.onnx": TEXT_TOWER_NAMES}
_N_PICTURES, _N_TEXTS = 8, 32
_PICTURE_SHAPE = (480, 640, 3)


@dataclass(frozen=True)
class FolderCheck:
    """What was found in the folder of a joint model.

    ``files`` has, for each file of the layout, what was found for it: its own name, that of another that does as well,
    or None. ``problem`` is the error that the model would raise, None for one that works.
    """

    folder: str
    layout: str
    files: dict[str, str | None] = field(default_factory=dict)
    problem: str | None = None
    family: str | None = None
    n_features: int | None = None
    max_tokens: int | None = None
    preparation: str | None = None
    pictures_per_second: float | None = None
    texts_per_second: float | None = None

    @property
    def missing(self) -> list[str]:
        """The files that are not there and are needed."""
        return [name for name, found in self.files.items() if found is None and name not in _OPTIONAL]


def check_joint_folder(folder: Path) -> FolderCheck:
    """Look at the files of a model folder, open it, and encode a few pictures and texts with it."""
    path = folder.expanduser()
    if not path.is_dir():
        raise ModelFileError(f"there is no folder {path}; pass the folder of a joint model")
    try:
        opened = open_joint_folder(path)
    except DiptychError as error:
        layout = _likely_layout(path)
        return FolderCheck(str(path), layout, _files(path, layout), problem=str(error))
    layout = opened.layout
    files = _files(path, layout)
    try:
        pictures, texts = _speeds(path)
        return FolderCheck(
            folder=str(path),
            layout=layout,
            files=files,
            family=opened.family,
            n_features=opened.n_features,
            max_tokens=len(opened.open_text_tower(None).tokens(["word " * 1000])[0]),
            preparation=opened.preparation_in_words,
            pictures_per_second=pictures,
            texts_per_second=texts,
        )
    except DiptychError as error:
        return FolderCheck(str(path), layout, files, problem=str(error), family=opened.family)


def _likely_layout(path: Path) -> str:
    if has_tower(path):
        return "ONNX"
    return "OpenCLIP" if (path / OPEN_CLIP_CONFIG).is_file() else "Transformers"


def _files(path: Path, layout: str) -> dict[str, str | None]:
    return {name: _found(path, name) for name in LAYOUT_FILES[layout]}


def _found(path: Path, name: str) -> str | None:
    if name in _TOWERS:
        try:
            return find_tower(path, _TOWERS[name]).relative_to(path).as_posix()
        except ModelFileError:
            return None
    for choice in ((name,), *_INSTEAD.get(name, ())):
        if all((path / part).is_file() for part in choice):
            return ", ".join(choice)
    return None


def _speeds(path: Path) -> tuple[float, float]:
    model = JointModel.from_folder(path)
    noise = np.random.default_rng(0).integers(0, 256, (_N_PICTURES, *_PICTURE_SHAPE), dtype=np.uint8)
    pictures = [Image.fromarray(pixels) for pixels in noise]
    texts = [f"a photograph of {number} boats on a lake in the evening" for number in range(_N_TEXTS)]
    # The first of each also opens the network, which is no part of its speed.
    image, text = model.image_encoder.transform(pictures[:1]), model.text_encoder.transform(texts[:1])
    if image.shape != text.shape:
        raise ModelFileError(
            f"{path}: pictures get {image.shape[1]} numbers and texts {text.shape[1]}, so they cannot be compared; "
            "export both towers with their projections"
        )
    return (
        _N_PICTURES / _seconds(lambda: model.image_encoder.transform(pictures)),
        _N_TEXTS / _seconds(lambda: model.text_encoder.transform(texts)),
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
