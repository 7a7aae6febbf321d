"""Whether a folder holds a joint model that can be used: what it is, and how fast it is here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from diptych.encoders.joint.joint_model import JointImageEncoder, JointTextEncoder, open_joint_folder
from diptych.errors import DiptychError, ModelFileError

_N_PICTURES, _N_TEXTS = 8, 32
_PICTURE_SHAPE = (480, 640, 3)


@dataclass(frozen=True)
class FolderCheck:
    """What was found in the folder of a joint model; ``problem`` is the error that it would raise, None if it works."""

    folder: str
    problem: str | None = None
    layout: str | None = None
    family: str | None = None
    n_features: int | None = None
    max_tokens: int | None = None
    pictures_per_second: float | None = None
    texts_per_second: float | None = None


def check_joint_folder(folder: Path) -> FolderCheck:
    """Open a model folder and encode a few pictures and texts with it."""
    path = folder.expanduser()
    if not path.is_dir():
        raise ModelFileError(f"there is no folder {path}; pass the folder of a joint model")
    found = FolderCheck(str(path))
    try:
        opened = open_joint_folder(path)
        found = replace(found, layout=opened.layout, family=opened.family)
        pictures, texts = _speeds(path)
        return replace(
            found,
            n_features=opened.n_features,
            max_tokens=len(opened.open_text_tower(None).tokens(["word " * 1000])[0]),
            pictures_per_second=pictures,
            texts_per_second=texts,
        )
    except DiptychError as error:
        return replace(found, problem=str(error))


def _speeds(path: Path) -> tuple[float, float]:
    image_encoder, text_encoder = JointImageEncoder(folder=str(path)), JointTextEncoder(folder=str(path))
    noise = np.random.default_rng(0).integers(0, 256, (_N_PICTURES, *_PICTURE_SHAPE), dtype=np.uint8)
    pictures = [Image.fromarray(pixels) for pixels in noise]
    texts = [f"a photograph of {number} boats on a lake in the evening" for number in range(_N_TEXTS)]
    # The first of each also opens the network, which is no part of its speed.
    image, text = image_encoder.transform(pictures[:1]), text_encoder.transform(texts[:1])
    if image.shape != text.shape:
        raise ModelFileError(
            f"{path}: pictures get {image.shape[1]} numbers and texts {text.shape[1]}, so they cannot be compared; "
            "export both towers with their projections"
        )
    return (
        _N_PICTURES / _seconds(lambda: image_encoder.transform(pictures)),
        _N_TEXTS / _seconds(lambda: text_encoder.transform(texts)),
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
