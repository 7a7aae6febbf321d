"""Folders of joint models: what their layouts have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PIL.Image import Image

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import digest_of_files
from diptych.encoders.text.text_network import TextTower
from diptych.errors import ModelFileError

Prepared = dict[str, AnyArray]
"""One prepared picture: the network's inputs by name, each with a first axis of one."""
RunImageTower = Callable[[Sequence[Prepared]], FloatArray]
"""Takes prepared pictures and returns their features."""


class JointFolder(ABC):
    """A folder with an image tower and a text tower; nothing outside it is read, and no code in it is executed."""

    layout: str
    """What the folder looks like: ``"ONNX"``, ``"Transformers"`` or ``"OpenCLIP"``."""

    family: str
    """The kind of network, such as ``"clip"``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""

    @property
    def logit_scale(self) -> float | None:
        """What cosines are multiplied with before they become probabilities; None where the folder does not say."""
        return None

    @property
    def logit_bias(self) -> float | None:
        """What is added then; None for models trained with a softmax, which have none."""
        return None

    @property
    @abstractmethod
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""

    @abstractmethod
    def prepare(self, image: Image) -> Prepared:
        """Resize, crop and normalise one picture as the model was trained; threads may call this."""

    @abstractmethod
    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""

    @abstractmethod
    def open_text_tower(self, n_threads: int | None) -> TextTower:
        """Return the text tower, ready to run."""

    @abstractmethod
    def files(self) -> Iterable[Path]:
        """Return every file that shapes the features."""

    @property
    def digest(self) -> str:
        """A digest of every file that shapes the features."""
        return digest_of_files(self.files())

    def existing(self, names: Iterable[str]) -> list[Path]:
        """Return those of the named files that the folder has."""
        return [self.path / name for name in names if (self.path / name).is_file()]


def check_complete(path: Path, *needed: Iterable[str]) -> None:
    """Raise one error that names everything missing; each thing needed is a choice of files, the usual one first."""
    choices = [tuple(names) for names in needed]
    missing = [names[0] for names in choices if not any((path / name).is_file() for name in names)]
    if missing:
        raise ModelFileError(f"{path} lacks {', '.join(missing)}; copy the whole model folder")
