"""The layout of Hugging Face's transformers: one configuration, one set of weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.encoders.joint.joint_folder import PREPROCESSOR_FILES, check_complete, read_json, read_preparation
from diptych.encoders.joint.safetensors_folder import FAMILIES, SafetensorsFolder
from diptych.encoders.joint.tokenizer_files import TOKENIZERS
from diptych.encoders.transformer.clip import CLIP_TEXT, CLIP_VISION
from diptych.encoders.transformer.siglip import SIGLIP_TEXT, SIGLIP_VISION
from diptych.encoders.transformer.weights import WEIGHTS_FILES, Weights
from diptych.errors import ModelFileError


class HuggingFaceFolder(SafetensorsFolder):
    """A folder with ``config.json``, ``model.safetensors``, ``tokenizer.json`` and ``preprocessor_config.json``."""

    def __init__(self, path: Path) -> None:
        check_complete(path, ("config.json",), WEIGHTS_FILES, TOKENIZERS, PREPROCESSOR_FILES)
        config = read_json(path / "config.json")
        family = str(config.get("model_type"))
        if family not in FAMILIES:
            raise ModelFileError(
                f"{path} holds a {family!r} model; these are supported: {', '.join(FAMILIES)}. For others put the "
                "towers beside it as ONNX files, onnx/vision_model.onnx and onnx/text_model.onnx"
            )
        is_clip = family == "clip"
        vision = _part(config, "vision", CLIP_VISION if is_clip else SIGLIP_VISION)
        super().__init__(
            path,
            family=family,
            weights=Weights.of_folder(path),
            text=_part(config, "text", CLIP_TEXT if is_clip else SIGLIP_TEXT),
            vision=vision,
            width=int(config.get("projection_dim", 512) if is_clip else vision["hidden_size"]),
            preparation=read_preparation(path),
            configuration="config.json",
        )


def _part(config: Mapping[str, Any], name: str, usual: dict[str, Any]) -> dict[str, Any]:
    # Old configurations repeat a part under a second name, which counts where it differs.
    parts = (config.get(f"{name}_config"), config.get(f"{name}_config_dict"))
    given = {key: value for part in parts if part for key, value in part.items() if value is not None}
    return {**usual, **given}
