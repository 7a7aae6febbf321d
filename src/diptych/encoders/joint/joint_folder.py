"""Folders of joint models: which ones people have, and what their layouts have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from PIL.Image import Image

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import digest_of_files
from diptych.encoders.text.text_network import TextTower
from diptych.errors import InvalidInputError, ModelFileError

_TRANSFORMERS = ("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json")
_OPEN_CLIP = ("open_clip_config.json", "open_clip_model.safetensors", "tokenizer.json")
_ONNX = ("config.json", "onnx/text_model.onnx", "onnx/vision_model.onnx", "preprocessor_config.json", "tokenizer.json")
LAYOUT_FILES = {
    layout: tuple(sorted((*files, "tokenizer_config.json")))
    for layout, files in {"Transformers": _TRANSFORMERS, "OpenCLIP": _OPEN_CLIP, "ONNX": _ONNX}.items()
}
"""The files of each layout."""
_SOURCES = {
    "Transformers": (
        "openai/clip-vit-base-patch16 openai/clip-vit-base-patch32 openai/clip-vit-large-patch14 "
        "openai/clip-vit-large-patch14-336 google/siglip-base-patch16-224 google/siglip-base-patch16-256 "
        "google/siglip-base-patch16-384 google/siglip-base-patch16-512 google/siglip-large-patch16-256 "
        "google/siglip-large-patch16-384 google/siglip-so400m-patch14-224 google/siglip-so400m-patch14-384 "
        "google/siglip2-base-patch16-224 google/siglip2-base-patch16-256 google/siglip2-base-patch16-384 "
        "google/siglip2-base-patch16-512 google/siglip2-base-patch32-256 google/siglip2-large-patch16-256 "
        "google/siglip2-large-patch16-384 google/siglip2-large-patch16-512 google/siglip2-so400m-patch14-224 "
        "google/siglip2-so400m-patch14-384 google/siglip2-so400m-patch16-256 google/siglip2-so400m-patch16-384"
    ),
    "OpenCLIP": (
        "laion/CLIP-ViT-B-16-laion2B-s34B-b88K laion/CLIP-ViT-B-32-laion2B-s34B-b79K "
        "laion/CLIP-ViT-H-14-laion2B-s32B-b79K laion/CLIP-ViT-L-14-laion2B-s32B-b82K timm/ViT-B-16-SigLIP "
        "timm/ViT-B-16-SigLIP-256 timm/ViT-B-16-SigLIP-384 timm/ViT-L-16-SigLIP-256 timm/ViT-SO400M-14-SigLIP "
        "timm/ViT-B-16-SigLIP2 timm/ViT-B-16-SigLIP2-256 timm/ViT-B-32-SigLIP2-256 timm/ViT-L-16-SigLIP2-256 "
        "timm/ViT-SO400M-14-SigLIP2"
    ),
    "ONNX": (
        "Xenova/clip-vit-base-patch16 Xenova/clip-vit-base-patch32 Xenova/mobileclip_b Xenova/mobileclip_blt "
        "Xenova/mobileclip_s0 Xenova/mobileclip_s1 Xenova/mobileclip_s2 Xenova/siglip-base-patch16-224 "
        "onnx-community/siglip2-base-patch16-224-ONNX"
    ),
}


@dataclass(frozen=True)
class KnownModel:
    """A model by the name of its repository on the Hugging Face hub, and the files to take from there."""

    source: str
    layout: str

    @property
    def name(self) -> str:
        """The name without that of its owner, which also is a good one for the folder."""
        return self.source.rpartition("/")[2]

    @property
    def files(self) -> tuple[str, ...]:
        """The files to put into one folder, under the same names; ``onnx/`` is a folder within."""
        return LAYOUT_FILES[self.layout]

    @property
    def address(self) -> str:
        """Where a browser shows the files."""
        return f"https://huggingface.co/{self.source}/tree/main"


KNOWN_MODELS = tuple(KnownModel(source, layout) for layout, names in _SOURCES.items() for source in names.split())


def known_model(name: str) -> KnownModel:
    """Return a model by its name, with or without that of its owner, in any case.

    >>> known_model("siglip2-base-patch16-224").source
    'google/siglip2-base-patch16-224'
    """
    wanted = name.lower()
    for model in KNOWN_MODELS:
        if wanted in (model.source.lower(), model.name.lower()):
            return model
    alike = get_close_matches(wanted, [model.name.lower() for model in KNOWN_MODELS], n=3, cutoff=0.4)
    near = [model.name for model in KNOWN_MODELS if model.name.lower() in alike]
    hint = f"; alike: {', '.join(near)}" if near else ""
    raise InvalidInputError(f"no known model is called {name!r}{hint}; `diptych doctor --files list` shows all")


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

    @property
    @abstractmethod
    def preparation_in_words(self) -> str:
        """What is done to a picture, for a reader."""

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
