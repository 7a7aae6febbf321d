"""The layout of OpenCLIP, and its weights under the names that the towers are written with, those of Hugging Face."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.joint_folder import ONNX_INSTEAD, TOKENIZER, check_complete, mobile_clip_advice
from diptych.encoders.joint.preparation import OPEN_CLIP_CLEANING, Clean, PicturePreparation
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
    # SigLIP's projection has a bias, and is then not transposed.
    "text_model.head.weight": "text_projection.weight",
    "text_model.head.bias": "text_projection.bias",
}

_TRANSPOSED = ("visual_projection.weight", "text_projection.weight")

_TRUNK = "visual.trunk."
_TRUNK_WITHIN_LAYER = {"layer_norm1": "norm1", "layer_norm2": "norm2", "self_attn.out_proj": "attn.proj"}
_TRUNK_PARTS = {
    "vision_model.embeddings.patch_embedding": "patch_embed.proj",
    "vision_model.post_layernorm": "norm",
    "vision_model.head.attention.out_proj": "attn_pool.proj",
    "vision_model.head.layernorm": "attn_pool.norm",
    "vision_model.head.mlp.fc1": "attn_pool.mlp.fc1",
    "vision_model.head.mlp.fc2": "attn_pool.mlp.fc2",
}
_POSITIONS, _PROBE = "vision_model.embeddings.position_embedding.weight", "vision_model.head.probe"
_POOLING = re.compile(r"vision_model\.head\.attention\.in_proj_(weight|bias)")


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


class OpenClipSiglipWeights(OpenClipWeights):
    """SigLIP in OpenCLIP: the image tower is a vision transformer of the library timm, with its own names."""

    @property
    def n_image_layers(self) -> int:
        """The layers of the image tower, which the configuration leaves to timm."""
        return sum(name.startswith(f"{_TRUNK}blocks.") and name.endswith(".norm1.weight") for name in self._places)

    def _array(self, name: str) -> FloatArray:
        if pooling := _POOLING.fullmatch(name):
            # The query has an array of its own, key and value share one.
            parts = [
                super(OpenClipSiglipWeights, self)._array(f"{_TRUNK}attn_pool.{part}.{pooling[1]}")
                for part in ("q", "kv")
            ]
            return np.concatenate(parts)
        values = super()._array(name)
        return values[0] if name == _POSITIONS else values

    def _source(self, name: str) -> tuple[str, int | None]:
        if name == _POSITIONS:
            return f"{_TRUNK}pos_embed", None
        if name == _PROBE:
            return f"{_TRUNK}attn_pool.latent", None
        layer = _LAYER.fullmatch(name)
        if layer is not None and layer[1] == "vision_model":
            return self._trunk_layer(f"{_TRUNK}blocks.{layer[2]}.", layer[3])
        part, _, kind = name.rpartition(".")
        if part in _TRUNK_PARTS:
            return f"{_TRUNK}{_TRUNK_PARTS[part]}.{kind}", None
        return super()._source(name)

    @staticmethod
    def _trunk_layer(stem: str, inner: str) -> tuple[str, int | None]:
        attention = _ATTENTION.fullmatch(inner)
        if attention is not None:
            return f"{stem}attn.qkv.{attention[2]}", "qkv".index(attention[1])
        part, _, kind = inner.rpartition(".")
        return f"{stem}{_TRUNK_WITHIN_LAYER.get(part, part)}.{kind}", None


OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_BILINEAR, _BICUBIC = 2, 3

# SigLIP's image towers in timm: the name gives size, patch and pixels; those with gap pool in another way.
_SIGLIP_TRUNK = re.compile(r"vit_(base|large|so400m|giantopt)_patch(\d+)_siglip_(\d+)(?:\..*)?")
_TRUNK_HEADS = {"base": 12, "large": 16, "so400m": 16, "giantopt": 16}
# Of SigLIP 2, timm gives those that SigLIP 1 does not have the approximation of GELU that both were trained with.
_TANH_TRUNKS = {("base", 32), ("so400m", 16), ("giantopt", 16)}
_TANH_LARGE_SIDE = 512

# What the towers of plain CLIP do not have, and the settings that would make them other networks.
_FOREIGN_OPTIONS = (
    *("attentional_pool", "embed_cls", "final_ln_after_pool", "ls_init_value", "no_ln_pre", "qk_norm"),
    *("scale_attn", "scale_attn_inner", "scale_fc", "scale_heads", "scaled_cosine_attn"),
)
_PLAIN_VISION = {"pool_type": "tok", "pos_embed_type": "learnable", "block_type": "default"}
_PLAIN_TEXT = {"proj_type": "linear", "block_type": "default", "tokenizer_mode": ""}
_CLIP_TEXT = {"pool_type": "argmax", "no_causal_mask": False, "proj_bias": False}
_SIGLIP_TEXT = {"pool_type": "last", "no_causal_mask": True, "proj_bias": True}


class OpenClipFolder(SafetensorsFolder):
    """A folder with ``open_clip_config.json``, ``open_clip_model.safetensors`` and a tokenizer.

    Ilharco et al., "OpenCLIP", 2021. Models whose towers are plain transformers are understood, as most are, and
    SigLIP, whose image tower is one of the library timm; others are refused with what to do instead.
    """

    def __init__(self, path: Path) -> None:
        check_complete(path, (OPEN_CLIP_CONFIG,), (OPEN_CLIP_WEIGHTS, "open_clip_pytorch_model.bin"), (TOKENIZER,))
        with _understood(path):
            model = read_model_json(path / OPEN_CLIP_CONFIG)["model_cfg"]
            vision, text = model["vision_cfg"], model["text_cfg"]
            is_siglip = _SIGLIP_TRUNK.fullmatch(vision.get("timm_model_name") or "") is not None
            _check_readable(path, model, is_siglip)
            activation = "quick_gelu" if model.get("quick_gelu") else "gelu"
            kind = OpenClipSiglipWeights if is_siglip else OpenClipWeights
            weights = kind.of_folder(path, OPEN_CLIP_WEIGHTS)
            super().__init__(
                path,
                family="siglip" if is_siglip else "clip",
                weights=weights,
                text=_text_tower(text, activation),
                vision=_trunk(vision, weights)
                if isinstance(weights, OpenClipSiglipWeights)
                else _vision_tower(vision, activation),
                width=int(model["embed_dim"]),
                preparation=open_clip_preparation(path),
                configuration=OPEN_CLIP_CONFIG,
                clean=open_clip_cleaning(path),
            )


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path / OPEN_CLIP_CONFIG} cannot be understood ({error!r}); copy it again") from error


def _check_readable(path: Path, model: Mapping[str, Any], is_siglip: bool) -> None:
    foreign = _foreign_part(model, is_siglip)
    if foreign:
        advice = mobile_clip_advice(str(model["vision_cfg"].get("timm_model_name"))) or ONNX_INSTEAD
        raise ModelFileError(f"{path} is an OpenCLIP model with {foreign}, which cannot be read; {advice}")


def _foreign_part(model: Mapping[str, Any], is_siglip: bool) -> str | None:
    vision, text = model["vision_cfg"], model["text_cfg"]
    if "multimodal_cfg" in model:
        return "a tower that writes captions (CoCa)"
    if vision.get("timm_model_name") and not is_siglip:
        return f"the image tower {vision['timm_model_name']!r} of another library"
    if text.get("hf_model_name"):
        return f"the text tower {text['hf_model_name']!r} of another library"
    if not is_siglip and not isinstance(vision.get("layers", 12), int):
        return "a ResNet as its image tower"
    wanted_text = _PLAIN_TEXT | (_SIGLIP_TEXT if is_siglip else _CLIP_TEXT)
    for part, wanted in (({} if is_siglip else vision, _PLAIN_VISION), (_CLIP_TEXT | text, wanted_text)):
        set_otherwise = [name for name, value in wanted.items() if part.get(name) not in (None, value)]
        unusual = [*(name for name in _FOREIGN_OPTIONS if part.get(name)), *set_otherwise]
        if unusual:
            return f"the setting {unusual[0]}={part[unusual[0]]!r}"
    return None


def _trunk(config: Mapping[str, Any], weights: OpenClipSiglipWeights) -> dict[str, Any]:
    found = _SIGLIP_TRUNK.fullmatch(config["timm_model_name"])
    if found is None:
        raise KeyError("timm_model_name")
    size, patch, side = found[1], int(found[2]), int(config["image_size"])
    is_tanh = (size, patch) in _TANH_TRUNKS or (size == "large" and int(found[3]) == _TANH_LARGE_SIDE)
    return {
        "num_hidden_layers": weights.n_image_layers,
        "num_attention_heads": _TRUNK_HEADS[size],
        "image_size": side,
        "patch_size": patch,
        "hidden_act": "gelu_pytorch_tanh" if is_tanh else "gelu",
        "layer_norm_eps": 1e-6,
    }


def _vision_tower(config: Mapping[str, Any], activation: str) -> dict[str, Any]:
    return {
        "num_hidden_layers": config.get("layers", 12),
        "num_attention_heads": config.get("width", 768) // config.get("head_width", 64),
        "image_size": config["image_size"],
        "patch_size": config.get("patch_size", 16),
        **_shared(config, activation),
    }


def _text_tower(config: Mapping[str, Any], activation: str) -> dict[str, Any]:
    return {
        "num_hidden_layers": config.get("layers", 12),
        "num_attention_heads": config.get("heads", 8),
        "max_position_embeddings": config.get("context_length", 77),
        "eos_token_id": LEGACY_END,
        "pad_token_id": 1,
        **_shared(config, activation),
    }


def _shared(config: Mapping[str, Any], activation: str) -> dict[str, Any]:
    approximate = (config.get("act_kwargs") or {}).get("approximate") == "tanh"
    return {
        "hidden_act": "gelu_pytorch_tanh" if approximate else activation,
        "layer_norm_eps": float((config.get("norm_kwargs") or {}).get("eps", 1e-5)),
    }


def open_clip_cleaning(path: Path) -> Clean:
    """Return what OpenCLIP does to texts before its tokenizer sees them."""
    with _understood(path):
        text = read_model_json(path / OPEN_CLIP_CONFIG)["model_cfg"]["text_cfg"]
        usual = "whitespace" if text.get("hf_tokenizer_name") else "lower"
        return OPEN_CLIP_CLEANING[(text.get("tokenizer_kwargs") or {}).get("clean", usual)]


def open_clip_length(path: Path) -> int:
    """Return how many tokens a text may have."""
    with _understood(path):
        return int(read_model_json(path / OPEN_CLIP_CONFIG)["model_cfg"]["text_cfg"].get("context_length", 77))


def open_clip_preparation(path: Path) -> PicturePreparation:
    """Return what OpenCLIP does to pictures."""
    with _understood(path):
        whole = read_model_json(path / OPEN_CLIP_CONFIG)
        config, side = whole.get("preprocess_cfg") or {}, int(whole["model_cfg"]["vision_cfg"]["image_size"])
        mode = config.get("resize_mode") or "shortest"
        if mode not in ("shortest", "squash"):
            raise ModelFileError(
                f"{path} prepares pictures with resize_mode={mode!r}, which is not supported; take an edition of the "
                "model with shortest or squash"
            )
        is_squashed = mode == "squash"
        return PicturePreparation(
            size=(side, side) if is_squashed else side,
            crop=None if is_squashed else (side, side),
            resample=_BILINEAR if config.get("interpolation") == "bilinear" else _BICUBIC,
            mean=tuple(config.get("mean") or _MEAN),
            deviation=tuple(config.get("std") or _DEVIATION),
            like_open_clip=True,
        )
