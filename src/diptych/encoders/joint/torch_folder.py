"""Folders of safetensors weights, run by the libraries that they are made for: Transformers and OpenCLIP."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL.Image import Image

from diptych.arrays import AnyArray, FloatArray
from diptych.devices import chosen_device
from diptych.encoders.joint.joint_folder import JointFolder, Prepared, RunImageTower, check_complete
from diptych.encoders.joint.onnx_folder import OPEN_CLIP_CONFIG
from diptych.encoders.joint.preparation import DETAIL
from diptych.encoders.networks.model_files import is_outside_folder, read_model_json
from diptych.encoders.networks.tokenizer import Tokens, clean_text
from diptych.errors import InvalidInputError, MissingPackageError, ModelFileError, import_package

TRANSFORMERS_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
OPEN_CLIP_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "open_clip_pytorch_model.bin")
_KINDS_OF_FILES = (".json", ".txt", ".model", ".safetensors")
# What other programs, and Diptych itself, write down about a folder.
_NOTES = ("diptych-model.json",)
_USUAL_SIDE = 256
_UNLIMITED = 1_000_000
_loading = threading.Lock()


@dataclass(frozen=True)
class TorchModel:
    """A model of either library in memory, and how each side of it is prepared and called; it is its own text tower.

    ``inputs`` fills tokens of several texts up to arrays, the arguments of ``encode_texts``.
    """

    module: Any
    prepare: Callable[[Image], Prepared]
    cut: Callable[[Sequence[str]], list[Tokens]]
    inputs: Callable[[Sequence[Tokens]], dict[str, AnyArray]]
    encode_images: Callable[..., Any]
    encode_texts: Callable[..., Any]

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut each text into tokens."""
        return self.cut([clean_text(text) for text in texts])

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return one row of features for each row of tokens."""
        return self.run(self.encode_texts, self.inputs(rows))

    def run(self, encode: Callable[..., Any], inputs: dict[str, AnyArray]) -> FloatArray:
        """Return what one side of the model makes of its inputs."""
        import torch

        like = next(self.module.parameters())
        tensors = {}
        for name, values in inputs.items():
            tensor = torch.from_numpy(np.ascontiguousarray(values)).to(like.device)
            tensors[name] = tensor.to(like.dtype) if tensor.is_floating_point() else tensor
        with torch.inference_mode():
            return np.asarray(encode(**tensors).float().cpu().numpy())


class TorchFolder(JointFolder):
    """A folder with safetensors weights, whose library prepares, cuts texts into tokens and computes."""

    requirement: ClassVar[str] = "'diptych[joint]'"
    weights: ClassVar[tuple[str, ...]]
    configuration: ClassVar[str]

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_complete(path, (self.configuration,), (*self.weights, *_PICKLES))
        pickled = [name for name in _PICKLES if (path / name).is_file()]
        if pickled and not self.existing(self.weights):
            raise ModelFileError(
                f"{path / pickled[0]} is a pickle, which could run code when read, so it is not; take the edition of "
                f"the model with {self.weights[0]}, or save the model once as safetensors with the library it is from"
            )
        for file in self.existing(("model.safetensors.index.json",)):
            _check_index(file)
        self._config = read_model_json(path / self.configuration)

    @abstractmethod
    def load(self, device: str) -> TorchModel:
        """Load the model with its library."""

    def libraries(self, *names: str) -> Iterator[Any]:
        """Yield the libraries that run the model."""
        return (import_package(name, f"running a model of {self.layout}", self.requirement) for name in names)

    def loaded(self) -> TorchModel:
        """Return the model in memory; both encoders of a folder share it."""
        # Threads that prepare pictures ask together, and one model is large enough.
        with _loading:
            return _load_once(type(self), self.path, self.digest, _device())

    @cached_property
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""
        model = self.loaded()
        return int(model.features(model.tokens(["a"])).shape[1])

    @property
    def logit_scale(self) -> float | None:
        """e to the learned exponent."""
        learned = getattr(self.loaded().module, "logit_scale", None)
        return None if learned is None else float(np.exp(learned.detach().double().item()))

    @property
    def logit_bias(self) -> float | None:
        """The learned bias of a model trained with a sigmoid; None for others."""
        learned = getattr(self.loaded().module, "logit_bias", None)
        return None if learned is None else float(learned.detach().item())

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        side = self._vision_config().get("image_size") or _USUAL_SIDE
        return DETAIL * (max(side) if isinstance(side, (list, tuple)) else int(side))

    def prepare(self, image: Image) -> Prepared:
        """Prepare one picture as the library does."""
        return self.loaded().prepare(image)

    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""
        model = self._ready(n_threads)

        def run(prepared: Sequence[Prepared]) -> FloatArray:
            names = prepared[0].keys()
            inputs = {name: np.concatenate([picture[name] for picture in prepared]) for name in names}
            return model.run(model.encode_images, inputs)

        return run

    def open_text_tower(self, n_threads: int | None) -> TorchModel:
        """Return the text tower, ready to run."""
        return self._ready(n_threads)

    def files(self) -> Iterable[Path]:
        """Return the configurations, the tokenizer and the weights."""
        return sorted(
            file
            for file in self.path.iterdir()
            if file.suffix in _KINDS_OF_FILES and file.is_file() and file.name not in _NOTES
        )

    def _ready(self, n_threads: int | None) -> TorchModel:
        model = self.loaded()
        if n_threads is not None:
            import torch

            torch.set_num_threads(n_threads)
        return model

    def _vision_config(self) -> dict[str, Any]:
        return dict(self._config.get("vision_config") or {})


class TransformersFolder(TorchFolder):
    """A folder with ``config.json``, ``model.safetensors``, a tokenizer and ``preprocessor_config.json``."""

    layout = "Transformers"
    weights = TRANSFORMERS_WEIGHTS
    configuration = "config.json"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.family = str(self._config.get("model_type"))

    def load(self, device: str) -> TorchModel:
        """Load the model with Transformers; code that comes with a model is never run."""
        torch, transformers = self.libraries("torch", "transformers")
        local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        # Sides that are rounded, as on a card, are not what the weights say.
        dtype = torch.float32 if device == "cpu" else torch.float16
        module, loading = transformers.AutoModel.from_pretrained(
            self.path, use_safetensors=True, dtype=dtype, output_loading_info=True, **local
        )
        if not hasattr(module, "get_image_features") or not hasattr(module, "get_text_features"):
            raise ModelFileError(
                f"{self.path} holds a {self.family!r} model, which has no towers for pictures and for texts"
            )
        if loading["missing_keys"]:
            missing = sorted(loading["missing_keys"])
            raise ModelFileError(
                f"{self.path} lacks the weight {missing[0]!r}: its weights are those of another configuration; copy "
                "the whole model folder again"
            )
        module = module.to(device).eval()
        # Pillow's filters are those of training, and are there without torchvision.
        processor = transformers.AutoImageProcessor.from_pretrained(self.path, backend="pil", **local)
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path, **local)
        is_siglip = self.family.startswith("siglip")
        text = module.config.text_config
        length = min(tokenizer.model_max_length, _text_positions(text))

        def prepare(image: Image) -> Prepared:
            return dict(processor(images=[image.convert("RGB")], return_tensors="np"))

        def tokens(texts: Sequence[str]) -> list[Tokens]:
            # SigLIP was trained on small letters, which not every tokenizer of it makes.
            given = [text.lower() for text in texts] if is_siglip else list(texts)
            found = tokenizer(given, truncation=True, max_length=length)["input_ids"]
            return [np.array(row, dtype=np.int64) for row in found]

        def inputs(rows: Sequence[Tokens]) -> dict[str, AnyArray]:
            # SigLIP looks at the filling, without a mask and always up to the same length.
            how: dict[str, Any] = {"padding": "max_length", "max_length": length} if is_siglip else {"padding": True}
            filled = tokenizer.pad({"input_ids": [row.tolist() for row in rows]}, return_tensors="np", **how)
            names = ("input_ids",) if is_siglip else ("input_ids", "attention_mask")
            return {name: filled[name] for name in names}

        return TorchModel(
            module,
            prepare,
            tokens,
            inputs,
            lambda **given: _pooled(module.get_image_features(**given)),
            lambda **given: _pooled(module.get_text_features(**given)),
        )


class OpenClipFolder(TorchFolder):
    """A folder with ``open_clip_config.json``, ``open_clip_model.safetensors`` and the tokenizer."""

    layout = "OpenCLIP"
    weights = (*OPEN_CLIP_WEIGHTS, *TRANSFORMERS_WEIGHTS[:1])
    configuration = OPEN_CLIP_CONFIG
    family = "open_clip"

    def load(self, device: str) -> TorchModel:
        """Load the model with OpenCLIP."""
        torch, open_clip = self.libraries("torch", "open_clip")
        place = f"local-dir:{self.path}"
        module, _, transform = open_clip.create_model_and_transforms(
            place, precision="fp32" if device == "cpu" else "fp16", device=device, **self._local_text_tower()
        )
        module.eval()
        tokenize = open_clip.get_tokenizer(place)

        def prepare(image: Image) -> Prepared:
            return {"pixels": transform(image)[None].numpy()}

        return TorchModel(
            module,
            prepare,
            lambda texts: list(tokenize(list(texts)).to(torch.int64).numpy()),
            lambda rows: {"tokens": np.stack(rows)},
            lambda pixels: module.encode_image(pixels),
            lambda tokens: module.encode_text(tokens),
        )

    def _local_text_tower(self) -> dict[str, Any]:
        """Return settings with which a text tower of Transformers is made from the folder, not from the hub."""
        text = dict((self._config.get("model_cfg") or {}).get("text_cfg") or {})
        name = text.get("hf_model_name")
        if not name:
            return {}
        if not (self.path / "config.json").is_file():
            raise ModelFileError(f"{self.path} lacks config.json, the configuration of its text tower {name!r}")
        return {"text_cfg": {**text, "hf_model_name": str(self.path), "hf_model_pretrained": False}}

    def _vision_config(self) -> dict[str, Any]:
        return dict((self._config.get("model_cfg") or {}).get("vision_cfg") or {})


# One model at a time: another one takes its place in memory.
@lru_cache(maxsize=1)
def _load_once(kind: type[TorchFolder], path: Path, digest: str, device: str) -> TorchModel:
    del digest
    # Nothing is fetched, whatever a configuration names.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    folder = kind(path)
    try:
        return folder.load(device)
    except (MissingPackageError, ModelFileError, MemoryError):
        raise
    except Exception as error:
        # The libraries raise whatever comes to hand for files that they cannot use.
        said = " ".join(str(error).split())[:300]
        raise ModelFileError(
            f"{path} cannot be loaded by {folder.layout} ({said}); copy the whole model folder, or take its ONNX export"
        ) from error


def _device() -> str:
    torch = import_package("torch", "running a joint model from its weights", TorchFolder.requirement)
    chosen = chosen_device()
    if chosen == "cuda" and not torch.cuda.is_available():
        raise InvalidInputError("PyTorch cannot use CUDA here; install its build for CUDA, or pass --device cpu")
    return "cuda" if chosen in ("auto", "cuda") and torch.cuda.is_available() else "cpu"


def _pooled(output: Any) -> Any:
    # Since version 5, Transformers gives an object.
    return getattr(output, "pooler_output", output)


def _text_positions(config: Any) -> int:
    positions = int(getattr(config, "max_position_embeddings", None) or _UNLIMITED)
    # The family of RoBERTa, which AltCLIP belongs to, counts positions from the number after that of the filling.
    offset = any(name in str(config.model_type) for name in ("roberta", "altclip", "xlm"))
    return positions - int(config.pad_token_id) - 1 if offset else positions


def _check_index(file: Path) -> None:
    """Raise where an index of weights leads out of its folder, or names what is not there."""
    names = sorted(set(read_model_json(file).get("weight_map", {}).values()))
    for name in names:
        if is_outside_folder(str(name)):
            raise ModelFileError(f"{file} names {name!r}, which is outside the folder; do not use this model")
        if not (file.parent / name).is_file():
            raise ModelFileError(f"{file.parent} lacks {name}, listed in {file.name}; copy the missing parts")
