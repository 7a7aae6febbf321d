"""What the layouts of joint model folders have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from diptych.arrays import FloatArray
from diptych.encoders.joint.picture_preparation import PicturePreparation
from diptych.encoders.joint.text_tower import TextTower
from diptych.encoders.network.file_digest import digest_of_files
from diptych.errors import ModelFileError

ImageTower = Callable[[FloatArray], FloatArray]
"""Takes prepared pictures, float32 (items, 3, height, width), and returns their features."""

# Newer folders keep the preparation of pictures inside the processor's configuration.
PREPROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")


class JointFolder(ABC):
    """A folder with an image tower and a text tower, in one of the layouts that such models come in.

    Parameters
    ----------
    path:
        The folder; nothing outside it is read, and nothing in it is executed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def family(self) -> str:
        """The kind of network, such as ``"clip"``."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""

    @property
    @abstractmethod
    def preparation(self) -> PicturePreparation:
        """How pictures are prepared."""

    @property
    def logit_scale(self) -> float | None:
        """What cosines are multiplied with before they become probabilities; None where the folder does not say."""
        return None

    @property
    def logit_bias(self) -> float | None:
        """What is added then; None for models trained with a softmax, which have none."""
        return None

    @abstractmethod
    def open_image_tower(self, n_threads: int | None) -> ImageTower:
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


def read_preparation(path: Path) -> PicturePreparation:
    """Read how pictures are prepared from the files that usually say so."""
    for file in (path / name for name in PREPROCESSOR_FILES if (path / name).is_file()):
        config = read_json(file)
        config = config.get("image_processor", config)
        if "size" in config or "image_mean" in config:
            return PicturePreparation.from_config(config)
    raise ModelFileError(f"{path} lacks preprocessor_config.json; copy the whole model folder")


def read_json(file: Path) -> dict[str, Any]:
    """Read a configuration file, or say what is wrong with it."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(f"{file.parent} lacks {file.name}; copy the whole model folder") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{file} cannot be read ({error}); copy the file again") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{file} does not hold a JSON object; copy the file again")
    return content
