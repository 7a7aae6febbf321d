"""The layout of OpenCLIP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.encoders.joint.joint_folder import check_complete, read_json
from diptych.encoders.joint.open_clip_weights import OpenClipWeights
from diptych.encoders.joint.picture_preparation import PicturePreparation
from diptych.encoders.joint.safetensors_folder import LEGACY_END, SafetensorsFolder
from diptych.encoders.joint.tokenizer_files import TOKENIZERS
from diptych.errors import ModelFileError

OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_FILTERS = {"bicubic": 3, "bilinear": 2, "nearest": 0}


class OpenClipFolder(SafetensorsFolder):
    """A folder with ``open_clip_config.json``, ``open_clip_model.safetensors`` and a tokenizer.

    Ilharco et al., "OpenCLIP", 2021. Models whose towers are plain transformers are understood, as most are; those
    built on a network of another library are refused.
    """

    def __init__(self, path: Path) -> None:
        check_complete(path, (OPEN_CLIP_CONFIG,), (OPEN_CLIP_WEIGHTS, "open_clip_pytorch_model.bin"), TOKENIZERS)
        config = read_json(path / OPEN_CLIP_CONFIG)
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
