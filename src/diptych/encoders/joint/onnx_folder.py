"""The layout of exported models: two ONNX files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.joint.joint_folder import (
    PREPROCESSOR_FILES,
    TOKENIZER_FILES,
    TOKENIZERS,
    JointFolder,
    JointTextTower,
    RunImageTower,
    check_complete,
    check_tokenizer,
    open_tokenizer,
    padding_token,
    pads_left,
    read_preparation,
)
from diptych.encoders.networks.clip_siglip import SIGLIP_TEXT
from diptych.encoders.networks.model_files import external_files, read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.tokenizer import Tokens
from diptych.errors import ModelFileError

IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES = ("vision_model", "visual"), ("text_model", "textual")
# Full precision first; a folder often carries several editions of one network.
_EDITIONS = ("", "_fp16", "_quantized", "_int8", "_uint8")
_USUAL_SIDE = 224
_CLIP_LENGTH, _SIGLIP_LENGTH = 77, int(SIGLIP_TEXT["max_position_embeddings"])
_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class OnnxFolder(JointFolder):
    """A folder with an ONNX file for each tower, ``tokenizer.json`` and ``preprocessor_config.json``.

    The towers are ``vision_model.onnx`` and ``text_model.onnx``, or ``visual.onnx`` and ``textual.onnx``, in the
    folder or in its ``onnx``. Inputs and outputs are found by name and shape. The scale of the similarities is not part
    of such files, so it is unknown.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._image_tower: RunImageTower | None = None
        self._image_file = find_tower(path, IMAGE_TOWER_NAMES)
        self._text_file = find_tower(path, TEXT_TOWER_NAMES)
        check_complete(path, TOKENIZERS, PREPROCESSOR_FILES)
        check_tokenizer(path)
        self.preparation = read_preparation(path)
        self._config = read_model_json(path / "config.json", {})
        self.family = str(self._config.get("model_type", "onnx"))

    @cached_property
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""
        tower = self._image_tower or self.open_image_tower(None)
        height, width = self.preparation.output_size or (_USUAL_SIDE, _USUAL_SIDE)
        return int(tower(np.zeros((1, 3, height, width), dtype=np.float32)).shape[1])

    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""
        network = Network(self._image_file, n_threads)
        inputs = [name for name, (_, shape) in network.inputs.items() if len(shape) == 4]
        if len(inputs) != 1 or len(network.inputs) != 1:
            raise ModelFileError(
                f"{self._image_file} must take pictures alone, but takes {', '.join(network.inputs)}; export the image "
                "tower by itself"
            )
        output = _features_output(network, self._image_file)
        self._image_tower = lambda pixels: _run(network, output, {inputs[0]: pixels})
        return self._image_tower

    def open_text_tower(self, n_threads: int | None) -> JointTextTower:
        """Return the text tower, ready to run."""
        network = Network(self._text_file, n_threads)
        tokens_input, mask_input = self._text_inputs(network)
        fixed = network.inputs[tokens_input][1][1]
        usual = _SIGLIP_LENGTH if "siglip" in self.family else _CLIP_LENGTH
        length = fixed if isinstance(fixed, int) else self._configured("max_position_embeddings", usual)
        tokenizer = open_tokenizer(self.path, max_tokens=length)
        output = _features_output(network, self._text_file)

        def run(tokens: Tokens, mask: Tokens) -> FloatArray:
            return _run(network, output, {tokens_input: tokens, **({mask_input: mask} if mask_input else {})})

        # SigLIP looks at the filling too, so there must be as much of it as in training.
        always_full = isinstance(fixed, int) or "siglip" in self.family
        padding = padding_token(self.path, tokenizer, default=self._configured("pad_token_id", 0))
        return JointTextTower(
            tokenizer,
            run,
            padding=padding,
            length=length if always_full else None,
            fill_left=pads_left(self.path),
            lower_case="siglip" in self.family,
        )

    def files(self) -> Iterable[Path]:
        """Return the networks, what they keep beside them, and the files around them."""
        networks = (self._image_file, self._text_file)
        around = self.existing(("config.json", *TOKENIZER_FILES, *PREPROCESSOR_FILES))
        return [*networks, *self._external_files, *around]

    @cached_property
    def _external_files(self) -> list[Path]:
        # Reading the graphs takes time, and an open folder is asked for its digest again and again.
        return [path for file in (self._image_file, self._text_file) for path in external_files(file)]

    def _text_inputs(self, network: Network) -> tuple[str, str | None]:
        masks = [name for name in network.inputs if "mask" in name]
        others = [name for name in network.inputs if name not in masks]
        if len(others) != 1 or len(masks) > 1 or len(network.inputs[others[0]][1]) != 2:
            raise ModelFileError(
                f"{self._text_file} must take tokens and at most a mask, but takes {', '.join(network.inputs)}; export "
                "the text tower by itself"
            )
        return others[0], masks[0] if masks else None

    def _configured(self, name: str, default: int) -> int:
        value = (self._config.get("text_config") or {}).get(name)
        usual = SIGLIP_TEXT.get(name, default) if "siglip" in self.family else default
        return int(usual if value is None else value)


def find_tower(folder: Path, names: Sequence[str]) -> Path:
    """Return the ONNX file of a tower, or raise an error that names what was looked for."""
    for edition in _EDITIONS:
        for name in names:
            for file in (folder / "onnx" / f"{name}{edition}.onnx", folder / f"{name}{edition}.onnx"):
                if file.is_file():
                    return file
    raise ModelFileError(
        f"{folder} lacks {names[0]}.onnx (also looked for as {names[1]}.onnx, in the folder and in onnx/); a joint "
        "model needs an ONNX file for each of its two towers"
    )


def _features_output(network: Network, file: Path) -> str:
    flat = [name for name, shape in network.outputs.items() if len(shape) == 2]
    for part in ("embeds", "embedding", "pooler", "features"):
        named = [name for name in flat if part in name]
        if named:
            return named[0]
    if len(flat) != 1:
        raise ModelFileError(
            f"{file} must give one row of features per item, but gives {', '.join(network.outputs)}; export it with "
            "its projection"
        )
    return flat[0]


def _run(network: Network, output: str, arrays: dict[str, AnyArray]) -> FloatArray:
    inputs = {name: values.astype(_TYPES[network.inputs[name][0]], copy=False) for name, values in arrays.items()}
    n_items = len(next(iter(inputs.values())))
    fixed = next(network.inputs[name][1][0] for name in inputs)
    if not isinstance(fixed, int):
        return network.run(output, inputs).astype(np.float32, copy=False)
    # Exported for a fixed number of items: go in steps of it, repeating the last item in the last step.
    rows = [np.minimum(np.arange(start, start + fixed), n_items - 1) for start in range(0, n_items, fixed)]
    parts = [network.run(output, {name: values[step] for name, values in inputs.items()}) for step in rows]
    return np.concatenate(parts)[:n_items].astype(np.float32, copy=False)
