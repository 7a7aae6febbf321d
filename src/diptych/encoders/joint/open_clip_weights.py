"""The weights of OpenCLIP under the names that the towers are written with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.transformer.weights import Weights

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


class OpenClipWeights(Weights):
    """Weights that OpenCLIP names its own way, asked for as Hugging Face names them.

    The three projections of an attention lie in one array there, and the projections into the common space are
    transposed.
    """

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
