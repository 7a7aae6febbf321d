"""OpenCLIP's weights under the names that the towers are written with, which are those of Hugging Face."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.networks.safetensors_weights import Weights

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
