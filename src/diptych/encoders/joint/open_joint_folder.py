"""Which layout a model folder has."""

from __future__ import annotations

import os
from pathlib import Path

from diptych.encoders.joint.hugging_face_folder import HuggingFaceFolder
from diptych.encoders.joint.joint_folder import JointFolder, read_json
from diptych.encoders.joint.onnx_folder import IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES, OnnxFolder, find_tower
from diptych.encoders.joint.open_clip_folder import OPEN_CLIP_CONFIG, OpenClipFolder
from diptych.encoders.joint.safetensors_folder import FAMILIES
from diptych.encoders.transformer.weights import SAFETENSORS_FILES, Weights
from diptych.errors import ModelFileError

_WHAT_TO_HAVE = (
    "a joint model is config.json, model.safetensors, tokenizer.json and preprocessor_config.json (CLIP or SigLIP), or "
    "onnx/vision_model.onnx and onnx/text_model.onnx with the last two"
)


def open_joint_folder(folder: str | os.PathLike[str]) -> JointFolder:
    """Recognise the layout of a model folder; an incomplete one is an error that names what is missing.

    Safetensors weights are preferred to ONNX files, because they say how similarities become probabilities.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelFileError(f"there is no folder {path}; pass the folder of a joint model: {_WHAT_TO_HAVE}")
    if _has_weights(path) and _is_supported(path):
        return HuggingFaceFolder(path)
    if (path / OPEN_CLIP_CONFIG).is_file() and not _has_onnx(path):
        return OpenClipFolder(path)
    if _has_onnx(path):
        return OnnxFolder(path)
    if (path / "config.json").is_file():
        return HuggingFaceFolder(path)
    if not _has_weights(path):
        Weights.of_folder(path)
    raise ModelFileError(f"{path} lacks config.json; {_WHAT_TO_HAVE}")


def _has_weights(path: Path) -> bool:
    return any((path / name).is_file() for name in SAFETENSORS_FILES)


def _is_supported(path: Path) -> bool:
    return (path / "config.json").is_file() and read_json(path / "config.json").get("model_type") in FAMILIES


def _has_onnx(path: Path) -> bool:
    for names in (IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES):
        try:
            find_tower(path, names)
        except ModelFileError:
            continue
        return True
    return False
