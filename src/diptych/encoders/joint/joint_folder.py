"""Folders of joint models: which ones people have, and what their layouts have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.preparation import Clean, PicturePreparation, without_punctuation
from diptych.encoders.networks.model_files import digest_of_files, read_model_json
from diptych.encoders.networks.tokenizer import Tokenizer, Tokens, padded
from diptych.errors import InvalidInputError, ModelFileError

ONNX_INSTEAD = (
    "export its towers to onnx/vision_model.onnx and onnx/text_model.onnx beside tokenizer.json and "
    "preprocessor_config.json, or take a model that `diptych doctor --files` lists"
)
"""What to do about a model whose weights cannot be read."""

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
    advice = mobile_clip_advice(wanted)
    if advice:
        raise InvalidInputError(f"{name!r} is not read from its own files; {advice}")
    alike = get_close_matches(wanted, [model.name.lower() for model in KNOWN_MODELS], n=3, cutoff=0.4)
    near = [model.name for model in KNOWN_MODELS if model.name.lower() in alike]
    hint = f"; alike: {', '.join(near)}" if near else ""
    raise InvalidInputError(f"no known model is called {name!r}{hint}; `diptych doctor --files list` shows all")


def mobile_clip_advice(name: str) -> str | None:
    """Return what to do with a MobileCLIP model, by its name or that of its image tower; None for other models."""
    if "mobileclip" not in name.lower() and "_mci" not in name:
        return None
    return (
        "MobileCLIP is read from its ONNX export: put onnx/vision_model.onnx, onnx/text_model.onnx, tokenizer.json, "
        "tokenizer_config.json and preprocessor_config.json into one folder (Xenova/mobileclip_s0, _s1, _s2, _b and "
        "_blt have them)"
    )


RunImageTower = Callable[[FloatArray], FloatArray]
"""Takes prepared pictures, float32 (items, 3, height, width), and returns their features."""
# Newer folders keep the preparation of pictures inside the processor's configuration.
PREPROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
TOKENIZER = "tokenizer.json"
TOKENIZER_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json")
_OTHER_TOKENIZERS = ("vocab.json", "spiece.model")


@dataclass(frozen=True)
class JointTextTower:
    """Takes texts, cuts them into tokens and runs them through the network."""

    tokenizer: Tokenizer
    run: Callable[[Tokens, Tokens], FloatArray]  # of tokens and their mask, both int64 (items, tokens)
    padding: int  # the token that fills up shorter texts
    length: int | None = None  # what all texts are filled up to; None for the longest of the batch
    fill_left: bool = False
    one_by_one: bool = False  # where texts that are run together would change each other
    clean: Clean | None = None  # what is done to texts before, whether the tokenizer sees to it or not

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut each text into tokens, cleaned as the model was trained."""
        return self.tokenizer.encode(texts if self.clean is None else [self.clean(text) for text in texts])

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return one row of features for each row of tokens."""
        if self.one_by_one and len(rows) > 1:
            return np.concatenate([self.features([row]) for row in rows])
        return self.run(*padded(rows, padding=self.padding, length=self.length, left=self.fill_left))


class JointFolder(ABC):
    """A folder with an image tower and a text tower; nothing outside it is read, and nothing in it is executed."""

    family: str
    """The kind of network, such as ``"clip"``."""

    preparation: PicturePreparation
    """How pictures are prepared."""

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

    @abstractmethod
    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""

    @abstractmethod
    def open_text_tower(self, n_threads: int | None) -> JointTextTower:
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
    others = [name for name in _OTHER_TOKENIZERS if (path / name).is_file()]
    if missing == [TOKENIZER] and others:
        raise ModelFileError(
            f"{path} has its tokenizer as {others[0]} only; put the tokenizer.json of the same model beside it, which "
            f"Transformers also writes: AutoTokenizer.from_pretrained({str(path)!r}).save_pretrained({str(path)!r})"
        )
    if missing:
        raise ModelFileError(f"{path} lacks {', '.join(missing)}; copy the whole model folder")


def read_preparation(path: Path) -> PicturePreparation:
    """Read how pictures are prepared from the files that usually say so."""
    for file in (path / name for name in PREPROCESSOR_FILES if (path / name).is_file()):
        config = read_model_json(file)
        config = config.get("image_processor", config)
        if "size" in config or "image_mean" in config:
            return PicturePreparation.from_config(config)
    raise ModelFileError(f"{path} lacks preprocessor_config.json; copy the whole model folder")


def open_tokenizer(folder: Path, *, max_tokens: int) -> Tokenizer:
    """Read ``tokenizer.json``."""
    return Tokenizer(folder / TOKENIZER, max_tokens=max_tokens)


def padding_token(folder: Path, tokenizer: Tokenizer, default: int) -> int:
    """Return the number of the token that the folder fills up short texts with."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        token = read_model_json(folder / name, {}).get("pad_token")
        text = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.number_of(text) if isinstance(text, str) else None
        if number is not None:
            return number
    return default


def pads_left(folder: Path) -> bool:
    """Return whether the folder asks for the filling in front of short texts."""
    return bool(read_model_json(folder / "tokenizer_config.json", {}).get("padding_side") == "left")


def siglip_cleaning(folder: Path) -> Clean:
    """Return what SigLIP was trained on: words in small letters, the first generation without punctuation."""
    tokenizer = str(read_model_json(folder / "tokenizer_config.json", {}).get("tokenizer_class"))
    return without_punctuation if tokenizer.startswith("SiglipTokenizer") else str.lower
