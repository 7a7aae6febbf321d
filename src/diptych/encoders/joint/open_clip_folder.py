"""The layout of OpenCLIP, and its weights under the names that the towers are written with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.joint_folder import TOKENIZERS, check_complete
from diptych.encoders.joint.picture_preparation import PicturePreparation
from diptych.encoders.joint.safetensors_folder import LEGACY_END, SafetensorsFolder
from diptych.encoders.networks.model_files import read_model_json
from diptych.encoders.networks.safetensors_weights import Weights
from diptych.errors import ModelFileError

_LAYER = re.compile(r"(vision_model|text_model)\.encoder\.layers\.(\d+)\.(.+)")
_ATTENTION = re.compile(r"self_attn\.([qkv])_proj\.(weight|bias)")

_WITHIN_LAYER = {
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
    "self_attn.out_proj": "attn.out_proj",
}

_VISION = {
    "vision_model.embeddings.class_embedding": "visual.class_embedding",
    "vision_model.embeddings.patch_embedding.weight": "visual.conv1.weight",
    "vision_model.embeddings.position_embedding.weight": "visual.positional_embedding",
    "vision_model.pre_layrnorm.weight": "visual.ln_pre.weight",
    "vision_model.pre_layrnorm.bias": "visual.ln_pre.bias",
    "vision_model.post_layernorm.weight": "visual.ln_post.weight",
    "vision_model.post_layernorm.bias": "visual.ln_post.bias",
    "visual_projection.weight": "visual.proj",
}

_TEXT = {
    "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
    "text_model.embeddings.position_embedding.weight": "positional_embedding",
    "text_model.final_layer_norm.weight": "ln_final.weight",
    "text_model.final_layer_norm.bias": "ln_final.bias",
    "text_projection.weight": "text_projection",
}

_TRANSPOSED = ("visual_projection.weight", "text_projection.weight")
OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_FILTERS = {"bicubic": 3, "bilinear": 2, "nearest": 0}


class OpenClipWeights(Weights):
    """OpenCLIP's weights, asked for as Hugging Face names them; q, k, v lie in one array, projections transposed."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        super().__init__(files)
        # Newer models keep the text tower in a part of its own.
        self._text_prefix = "text." if "text.token_embedding.weight" in self._places else ""

    def _holds(self, name: str) -> bool:
        return super()._holds(self._source(name)[0])

    def _array(self, name: str) -> FloatArray:
        source, third = self._source(name)
        values = super()._array(source)
        if third is not None:
            return np.split(values, 3)[third]
        return values.T if name in _TRANSPOSED else values

    def _source(self, name: str) -> tuple[str, int | None]:
        """Return the array that holds what is asked for, and which third of it that is."""
        layer = _LAYER.fullmatch(name)
        if layer is None:
            return _VISION.get(name) or (self._text_prefix + _TEXT[name] if name in _TEXT else name), None
        tower, number, inner = layer.groups()
        stem = f"{'visual.' if tower == 'vision_model' else self._text_prefix}transformer.resblocks.{number}."
        attention = _ATTENTION.fullmatch(inner)
        if attention is not None:
            return f"{stem}attn.in_proj_{attention[2]}", "qkv".index(attention[1])
        part, _, kind = inner.rpartition(".")
        return f"{stem}{_WITHIN_LAYER.get(part, part)}.{kind}", None


class OpenClipFolder(SafetensorsFolder):
    """A folder with ``open_clip_config.json``, ``open_clip_model.safetensors`` and a tokenizer.

    Ilharco et al., "OpenCLIP", 2021. Models whose towers are plain transformers are understood, as most are; those
    built on a network of another library are refused.
    """

    def __init__(self, path: Path) -> None:
        check_complete(path, (OPEN_CLIP_CONFIG,), (OPEN_CLIP_WEIGHTS, "open_clip_pytorch_model.bin"), TOKENIZERS)
        config = read_model_json(path / OPEN_CLIP_CONFIG)
        try:
            model = config["model_cfg"]
            vision, text = model["vision_cfg"], model["text_cfg"]
            _check_plain(path, vision, text)
            activation = "quick_gelu" if model.get("quick_gelu") else "gelu"
            super().__init__(
                path,
                family="clip",
                weights=OpenClipWeights.of_folder(path, OPEN_CLIP_WEIGHTS),
                text=_text_tower(text, activation),
                vision=_vision_tower(vision, activation),
                width=int(model["embed_dim"]),
                preparation=_preparation(config.get("preprocess_cfg") or {}, int(vision["image_size"])),
                configuration=OPEN_CLIP_CONFIG,
            )
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"{path / OPEN_CLIP_CONFIG} cannot be understood ({error!r}); copy it again"
            ) from error


def _check_plain(path: Path, vision: Mapping[str, Any], text: Mapping[str, Any]) -> None:
    foreign = vision.get("timm_model_name") or text.get("hf_model_name")
    if foreign or not isinstance(vision["layers"], int) or text.get("pool_type", "argmax") != "argmax":
        raise ModelFileError(
            f"{path} is not built of plain CLIP transformers ({foreign or 'other layers'}); use the edition of the "
            "model with config.json and model.safetensors, or its ONNX files"
        )


def _vision_tower(config: Mapping[str, Any], activation: str) -> dict[str, Any]:
    return {
        "num_hidden_layers": config["layers"],
        "num_attention_heads": config["width"] // config.get("head_width", 64),
        "image_size": config["image_size"],
        "patch_size": config["patch_size"],
        "hidden_act": activation,
        "layer_norm_eps": 1e-5,
    }


def _text_tower(config: Mapping[str, Any], activation: str) -> dict[str, Any]:
    return {
        "num_hidden_layers": config["layers"],
        "num_attention_heads": config["heads"],
        "max_position_embeddings": config.get("context_length", 77),
        "hidden_act": activation,
        "layer_norm_eps": 1e-5,
        "eos_token_id": LEGACY_END,
    }


def _preparation(config: Mapping[str, Any], side: int) -> PicturePreparation:
    squash = config.get("resize_mode") == "squash"
    return PicturePreparation(
        size=(side, side) if squash else side,
        crop=None if squash else (side, side),
        resample=_FILTERS[config.get("interpolation", "bicubic")],
        mean=tuple(config.get("mean", _MEAN)),
        deviation=tuple(config.get("std", _DEVIATION)),
    )
