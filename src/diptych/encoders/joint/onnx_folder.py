"""The layout of exported models: two ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.encoders.joint.joint_folder import (
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
from diptych.encoders.joint.open_clip_folder import (
    OPEN_CLIP_CONFIG,
    open_clip_cleaning,
    open_clip_length,
    open_clip_preparation,
)
from diptych.encoders.joint.preparation import Clean
from diptych.encoders.networks.model_files import OnnxFacts, onnx_facts, read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.tokenizer import Tokenizer, Tokens, padded
from diptych.encoders.networks.transformer_graph import SIGLIP_TEXT
from diptych.errors import ModelFileError

IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES = ("vision_model", "visual"), ("text_model", "textual")
# Full precision first; a folder often carries several editions of one network.
_EDITIONS = ("", "_fp16", "_quantized", "_int8", "_uint8", "_q4", "_q4f16", "_bnb4")
_USUAL_SIDE = 224
_CLIP_LENGTH, _SIGLIP_LENGTH = 77, int(SIGLIP_TEXT["max_position_embeddings"])
_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_SHORT_TEXTS = ("a photo", "two dogs in the snow")
# Cosines with and without filling: what is computed otherwise agrees to many digits, what is quantised less so.
_MIN_AGREEMENT = 0.9999
_MIN_QUANTISED_AGREEMENT = 0.95


class OnnxFolder(JointFolder):
    """A folder with an ONNX file for each tower, ``tokenizer.json`` and ``preprocessor_config.json``.

    Without the last, OpenCLIP's ``open_clip_config.json`` says how pictures and texts are prepared.

    The towers are ``vision_model.onnx`` and ``text_model.onnx``, or ``visual.onnx`` and ``textual.onnx``, in the
    folder or in its ``onnx``. Inputs and outputs are found by name and shape. The scale of the similarities is not part
    of such files, so it is unknown.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._image_tower: RunImageTower | None = None
        self._image_file = find_tower(path, IMAGE_TOWER_NAMES)
        self._text_file = find_tower(path, TEXT_TOWER_NAMES)
        check_complete(path, (TOKENIZER,), (*PREPROCESSOR_FILES, OPEN_CLIP_CONFIG))
        self._is_open_clip = not self.existing(PREPROCESSOR_FILES)
        self.preparation = open_clip_preparation(path) if self._is_open_clip else read_preparation(path)
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
        at_once = 1 if self._facts[self._image_file].quantises_batches else None
        self._image_tower = lambda pixels: _run(network, output, {inputs[0]: pixels}, at_once)
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

        is_quantised = self._facts[self._text_file].quantises_batches
        # OpenCLIP fills up with the number 0, whatever its tokenizer says.
        padding = 0 if self._is_open_clip else self._padding(tokenizer)
        least = _MIN_QUANTISED_AGREEMENT if is_quantised else _MIN_AGREEMENT
        always_full = (
            isinstance(fixed, int)
            or "siglip" in self.family
            or _looks_at_filling(run, tokenizer.encode(_SHORT_TEXTS), padding, length, least)
        )
        return JointTextTower(
            tokenizer,
            run,
            padding=padding,
            length=length if always_full else None,
            fill_left=pads_left(self.path),
            one_by_one=is_quantised,
            clean=self._cleaning(),
        )

    def files(self) -> Iterable[Path]:
        """Return the networks, what they keep beside them, and the files around them."""
        networks = (self._image_file, self._text_file)
        around = self.existing(("config.json", OPEN_CLIP_CONFIG, *TOKENIZER_FILES, *PREPROCESSOR_FILES))
        return [*networks, *(path for file in networks for path in self._facts[file].external), *around]

    @cached_property
    def _facts(self) -> dict[Path, OnnxFacts]:
        # Reading the graphs takes time, and an open folder is asked for its digest again and again.
        return {file: onnx_facts(file) for file in (self._image_file, self._text_file)}

    def _padding(self, tokenizer: Tokenizer) -> int:
        return padding_token(self.path, tokenizer, default=self._configured("pad_token_id", 0))

    def _cleaning(self) -> Clean | None:
        if self._is_open_clip:
            return open_clip_cleaning(self.path)
        return siglip_cleaning(self.path) if "siglip" in self.family else None

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
        if self._is_open_clip and name == "max_position_embeddings":
            return open_clip_length(self.path)
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
    both = any((folder / place / "model.onnx").is_file() for place in (".", "onnx"))
    raise ModelFileError(
        f"{folder} lacks {names[0]}.onnx (also looked for as {names[1]}.onnx, in the folder and in onnx/); a joint "
        f"model needs an ONNX file for each of its two towers{', which model.onnx has in one' if both else ''}"
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


def _looks_at_filling(
    run: Callable[[Tokens, Tokens], FloatArray], rows: Sequence[Tokens], padding: int, length: int, least: float
) -> bool:
    """Return whether texts must be filled up to the length of training, as for SigLIP and the small MobileCLIPs.

    A text tower whose tokens look back only takes texts of any length; one whose tokens see each other sees the
    filling, too. Files do not say which it is, so the tower is asked.
    """
    full = run(*padded(rows, padding=padding, length=length))
    try:
        short = np.concatenate([run(*padded([row], padding=padding)) for row in rows])
    except Exception:
        # The runtime raises types of its own for a graph that only says that its length may vary.
        return True
    return bool(np.min(np.sum(unit_rows(full) * unit_rows(short), axis=1)) < least)


def _run(network: Network, output: str, arrays: dict[str, AnyArray], at_once: int | None = None) -> FloatArray:
    inputs = {name: values.astype(_TYPES[network.inputs[name][0]], copy=False) for name, values in arrays.items()}
    n_items = len(next(iter(inputs.values())))
    exported = next(network.inputs[name][1][0] for name in inputs)
    # Exported for a fixed number of items: go in steps of it, repeating the last item in the last step.
    step = exported if isinstance(exported, int) else at_once
    if step is None:
        return network.run(output, inputs).astype(np.float32, copy=False)
    rows = [np.minimum(np.arange(start, start + step), n_items - 1) for start in range(0, n_items, step)]
    parts = [network.run(output, {name: values[part] for name, values in inputs.items()}) for part in rows]
    return np.concatenate(parts)[:n_items].astype(np.float32, copy=False)
