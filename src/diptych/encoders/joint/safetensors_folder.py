"""The layouts with safetensors weights: what they share, and that of Hugging Face's transformers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.joint_folder import (
    ONNX_INSTEAD,
    PREPROCESSOR_FILES,
    TOKENIZER,
    TOKENIZER_FILES,
    JointFolder,
    JointTextTower,
    RunImageTower,
    check_complete,
    open_tokenizer,
    padding_token,
    pads_left,
    read_preparation,
    siglip_cleaning,
)
from diptych.encoders.joint.preparation import Clean, PicturePreparation
from diptych.encoders.networks.model_files import read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.safetensors_weights import WEIGHTS_FILES, Weights
from diptych.encoders.networks.tokenizer import Tokens
from diptych.encoders.networks.transformer_graph import (
    CLIP_TEXT,
    CLIP_VISION,
    SIGLIP_TEXT,
    SIGLIP_VISION,
    TransformerGraph,
    write_clip_text,
    write_clip_vision,
    write_siglip_text,
    write_siglip_vision,
)
from diptych.errors import ModelFileError

# Before a correction, configurations of CLIP named this number as the end; the end is then the highest number.
LEGACY_END = 2
_VISION_WRITERS = {"clip": write_clip_vision, "siglip": write_siglip_vision}
_TEXT_WRITERS = {"clip": write_clip_text, "siglip": write_siglip_text}
FAMILIES = tuple(_VISION_WRITERS)
"""The kinds of network that can be written down."""


class SafetensorsFolder(JointFolder):
    """A folder whose towers are written down as ONNX networks from safetensors weights.

    ``text`` and ``vision`` are the complete configurations of the towers, read from the file ``configuration``; they
    and the ``weights`` have the names of Hugging Face. ``width`` is that of the space that pictures and texts share.
    """

    def __init__(
        self,
        path: Path,
        *,
        family: str,
        weights: Weights,
        text: dict[str, Any],
        vision: dict[str, Any],
        width: int,
        preparation: PicturePreparation,
        configuration: str,
        clean: Clean | None = None,
    ) -> None:
        super().__init__(path)
        self.family = family
        self._weights = weights
        self._text = text
        self._vision = vision
        self._width = width
        self.preparation = preparation
        self._configuration = configuration
        self._clean = clean
        side = vision["image_size"]
        if preparation.output_size != (side, side):
            raise ModelFileError(
                f"{path}: the image tower takes {side} × {side} pixels, but pictures are prepared to "
                f"{preparation.output_size}; copy configuration and preprocessor_config.json of the same model"
            )

    @property
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""
        return self._width

    @property
    def logit_scale(self) -> float | None:
        """e to the learned exponent."""
        return math.exp(self._weights["logit_scale"].item())

    @property
    def logit_bias(self) -> float | None:
        """The learned bias of a model trained with a sigmoid; None for others."""
        bias = self._weights.optional("logit_bias")
        return None if bias is None else float(bias.item())

    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""
        write = _VISION_WRITERS[self.family]
        describe = partial(write, config=self._vision, weights=self._weights, width=self._width)
        network = self._network("vision", describe, n_threads)
        return lambda pixels: network.run("features", {"pixels": pixels})

    def open_text_tower(self, n_threads: int | None) -> JointTextTower:
        """Return the text tower, ready to run."""
        write = _TEXT_WRITERS[self.family]
        describe = partial(write, config=self._text, weights=self._weights, width=self._width)
        length = int(self._text["max_position_embeddings"])
        tokenizer = open_tokenizer(self.path, max_tokens=length)
        network = self._network("text", describe, n_threads)
        if self.family == "clip":
            # What follows the end of a text is never looked at, so it may be filled up with anything.
            run = partial(_run_clip_text, network, self._text["eos_token_id"])
            return JointTextTower(tokenizer, run, padding=0, clean=self._clean)
        padding = padding_token(self.path, tokenizer, default=self._text["pad_token_id"])
        return JointTextTower(
            tokenizer,
            lambda tokens, mask: network.run("features", {"tokens": tokens}),
            padding=padding,
            length=length,
            fill_left=pads_left(self.path),
            clean=self._clean,
        )

    def _network(self, tower: str, describe: Callable[[TransformerGraph], None], n_threads: int | None) -> Network:
        return Network.written_once(f"{self.family} {tower} {self.digest}", TransformerGraph, describe, n_threads)

    def files(self) -> Iterable[Path]:
        """Return the configuration, the weights and the files around them."""
        around = self.existing((self._configuration, *TOKENIZER_FILES, *PREPROCESSOR_FILES))
        return [*self._weights.files, *around]


def _run_clip_text(network: Network, end: int, tokens: Tokens, mask: Tokens) -> FloatArray:
    del mask
    marks = tokens if end == LEGACY_END else tokens == end
    return network.run("features", {"tokens": tokens, "ends": np.argmax(marks, axis=1)[:, None]})


class HuggingFaceFolder(SafetensorsFolder):
    """A folder with ``config.json``, ``model.safetensors``, ``tokenizer.json`` and ``preprocessor_config.json``."""

    def __init__(self, path: Path) -> None:
        check_complete(path, ("config.json",), WEIGHTS_FILES, (TOKENIZER,), PREPROCESSOR_FILES)
        config = read_model_json(path / "config.json")
        family = str(config.get("model_type"))
        if family not in FAMILIES:
            raise ModelFileError(_refusal(path, family))
        is_clip = family == "clip"
        vision = _tower_config(config, "vision", CLIP_VISION if is_clip else SIGLIP_VISION)
        super().__init__(
            path,
            family=family,
            weights=Weights.of_folder(path),
            text=_tower_config(config, "text", CLIP_TEXT if is_clip else SIGLIP_TEXT),
            vision=vision,
            width=int(config.get("projection_dim", 512) if is_clip else vision["hidden_size"]),
            preparation=read_preparation(path),
            configuration="config.json",
            clean=None if is_clip else siglip_cleaning(path),
        )


def _refusal(path: Path, family: str) -> str:
    if family == "siglip2":
        return (
            f"{path} is SigLIP 2 for pictures of any proportions (NaFlex), which cannot be read; take its edition of a "
            "fixed size, such as google/siglip2-base-patch16-224"
        )
    return f"{path} holds a {family!r} model; these are supported: {', '.join(FAMILIES)}; {ONNX_INSTEAD}"


def _tower_config(config: Mapping[str, Any], name: str, usual: dict[str, Any]) -> dict[str, Any]:
    # Old configurations repeat a part under a second name, which counts where it differs.
    parts = (config.get(f"{name}_config"), config.get(f"{name}_config_dict"))
    given = {key: value for part in parts if part for key, value in part.items() if value is not None}
    return {**usual, **given}
