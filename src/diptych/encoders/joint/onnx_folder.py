"""Exported models: an ONNX file for each tower, in the two usual layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.joint.joint_folder import JointFolder, Prepared, RunImageTower, check_complete
from diptych.encoders.joint.preparation import OPEN_CLIP_CLEANING, Clean, PicturePreparation, without_punctuation
from diptych.encoders.networks.model_files import OnnxFacts, onnx_facts, read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.tokenizer import Tokenizer, Tokens, padded
from diptych.encoders.text.text_network import OnnxTextTower, RunTokens
from diptych.errors import ModelFileError

IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES = ("vision_model", "visual"), ("text_model", "textual")
PREPROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
"""Newer folders keep the preparation of pictures inside the processor's configuration."""
OPEN_CLIP_CONFIG, OPEN_CLIP_PREPROCESSOR = "open_clip_config.json", "visual/preprocess_cfg.json"
TOKENIZER = "tokenizer.json"
_TOKENIZER_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json")
# Full precision first; a folder often carries several editions of one network.
_EDITIONS = ("", "_fp16", "_quantized", "_int8", "_uint8", "_q4", "_q4f16", "_bnb4")
_USUAL_SIDE = 224
_CLIP_LENGTH, _SIGLIP_LENGTH, _SIGLIP_PADDING = 77, 64, 1
_SHORT_TEXTS = ("a photo", "two dogs in the snow")
# Cosines with and without filling: what is computed otherwise agrees to many digits, what is quantised less so.
_MIN_AGREEMENT = 0.9999
_MIN_QUANTISED_AGREEMENT = 0.95


class OnnxFolder(JointFolder):
    """A folder with an ONNX file for each tower, the tokenizer and what says how pictures are prepared.

    The towers are ``vision_model.onnx`` and ``text_model.onnx``, or ``visual.onnx`` and ``textual.onnx``, in the folder
    or in its ``onnx``, with Transformers' ``preprocessor_config.json`` or OpenCLIP's ``open_clip_config.json``; or, as
    photo servers have them, ``visual/model.onnx`` and ``textual/model.onnx`` with ``visual/preprocess_cfg.json`` and
    OpenCLIP's model as ``config.json``. Inputs and outputs are found by name and shape. The scale of the similarities
    is known of folders that `diptych models export` wrote.
    """

    layout = "ONNX"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._image_tower: RunImageTower | None = None
        self._image_file = find_tower(path, IMAGE_TOWER_NAMES)
        self._text_file = find_tower(path, TEXT_TOWER_NAMES)
        self._tokenizer_folder = path if (path / TOKENIZER).is_file() else path / "textual"
        check_complete(
            path,
            (TOKENIZER, f"textual/{TOKENIZER}"),
            (*PREPROCESSOR_FILES, OPEN_CLIP_CONFIG, OPEN_CLIP_PREPROCESSOR),
        )
        self._config = read_model_json(path / "config.json", {})
        self._open_clip = self._open_clip_model()
        self.preparation = self._read_preparation()
        self.family = str(self._config.get("model_type", "onnx"))

    @property
    def logit_scale(self) -> float | None:
        """What `diptych models export` wrote down; None for other folders."""
        return self._written_down("logit_scale")

    @property
    def logit_bias(self) -> float | None:
        """What `diptych models export` wrote down; None for other folders, and for models that have none."""
        return self._written_down("logit_bias")

    @cached_property
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""
        tower = self._image_tower or self.open_image_tower(None)
        height, width = self.preparation.output_size or (_USUAL_SIDE, _USUAL_SIDE)
        return int(tower([{"pixels": np.zeros((1, 3, height, width), dtype=np.float32)}]).shape[1])

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return self.preparation.reading_side

    def prepare(self, image: Image) -> Prepared:
        """Resize, crop and normalise one picture as the files say."""
        return {"pixels": self.preparation.apply(image)[None]}

    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""
        network = Network(self._image_file, n_threads, one_by_one=self._facts[self._image_file].quantises_batches)
        inputs = [name for name, (_, shape) in network.inputs.items() if len(shape) == 4]
        if len(inputs) != 1 or len(network.inputs) != 1:
            raise ModelFileError(
                f"{self._image_file} must take pictures alone, but takes {', '.join(network.inputs)}; export the image "
                "tower by itself"
            )
        output = _features_output(network, self._image_file)

        def run(prepared: Sequence[Prepared]) -> FloatArray:
            pixels = np.concatenate([picture["pixels"] for picture in prepared])
            return network.run(output, {inputs[0]: pixels})

        self._image_tower = run
        return run

    def open_text_tower(self, n_threads: int | None) -> OnnxTextTower:
        """Return the text tower, ready to run."""
        network = Network(self._text_file, n_threads)
        tokens_input, mask_input = self._text_inputs(network)
        fixed = network.inputs[tokens_input][1][1]
        length = fixed if isinstance(fixed, int) else self._text_length()
        tokenizer = Tokenizer(self._tokenizer_folder / TOKENIZER, max_tokens=length)
        output = _features_output(network, self._text_file)

        def run(tokens: Tokens, mask: Tokens) -> FloatArray:
            return network.run(output, {tokens_input: tokens} | ({mask_input: mask} if mask_input else {}))

        is_quantised = self._facts[self._text_file].quantises_batches
        padding = self._padding(tokenizer)
        least = _MIN_QUANTISED_AGREEMENT if is_quantised else _MIN_AGREEMENT
        always_full = (
            isinstance(fixed, int)
            or "siglip" in self.family
            or _looks_at_filling(run, tokenizer.encode(_SHORT_TEXTS), padding, length, least)
        )
        return OnnxTextTower(
            tokenizer,
            run,
            padding=padding,
            length=length if always_full else None,
            fill_left=self._tokenizer_config().get("padding_side") == "left",
            one_by_one=is_quantised,
            clean=self._cleaning(),
        )

    def files(self) -> Iterable[Path]:
        """Return the networks, what they keep beside them, and the files around them."""
        networks = (self._image_file, self._text_file)
        around = self.existing(
            (
                *("config.json", OPEN_CLIP_CONFIG, *_TOKENIZER_FILES, *PREPROCESSOR_FILES, OPEN_CLIP_PREPROCESSOR),
                *(f"textual/{name}" for name in _TOKENIZER_FILES),
            )
        )
        return [*networks, *(path for file in networks for path in self._facts[file].external), *around]

    @cached_property
    def _facts(self) -> dict[Path, OnnxFacts]:
        # Reading the graphs takes time, and an open folder is asked for its digest again and again.
        return {file: onnx_facts(file) for file in (self._image_file, self._text_file)}

    def _written_down(self, name: str) -> float | None:
        value = (self._config.get("diptych") or {}).get(name)
        return None if value is None else float(value)

    def _open_clip_model(self) -> Mapping[str, Any] | None:
        """Return OpenCLIP's configuration of the model; None for a folder in Transformers' manner."""
        if self.existing(PREPROCESSOR_FILES):
            return None
        model = read_model_json(self.path / OPEN_CLIP_CONFIG, {}).get("model_cfg", self._config)
        if not isinstance(model, Mapping) or not {"vision_cfg", "text_cfg"} <= model.keys():
            raise ModelFileError(f"{self.path} lacks OpenCLIP's vision_cfg and text_cfg; copy the whole model folder")
        return model

    def _read_preparation(self) -> PicturePreparation:
        if self._open_clip is not None:
            whole = read_model_json(self.path / OPEN_CLIP_CONFIG, {}).get("preprocess_cfg") or {}
            config = read_model_json(self.path / OPEN_CLIP_PREPROCESSOR, whole)
            return PicturePreparation.from_open_clip(config, self._open_clip["vision_cfg"]["image_size"])
        for file in self.existing(PREPROCESSOR_FILES):
            config = read_model_json(file)
            config = config.get("image_processor", config)
            if "size" in config or "image_mean" in config:
                return PicturePreparation.from_config(config)
        raise ModelFileError(f"{self.path} lacks {PREPROCESSOR_FILES[0]}; copy the whole model folder")

    def _tokenizer_config(self) -> Mapping[str, Any]:
        return dict(read_model_json(self._tokenizer_folder / "tokenizer_config.json", {}))

    def _padding(self, tokenizer: Tokenizer) -> int:
        # OpenCLIP's own tokenizer fills up with the number 0, whatever the files say.
        if self._open_clip is not None and not self._open_clip["text_cfg"].get("hf_tokenizer_name"):
            return 0
        for name in _TOKENIZER_FILES[1:]:
            token = read_model_json(self._tokenizer_folder / name, {}).get("pad_token")
            text = token.get("content") if isinstance(token, dict) else token
            number = tokenizer.number_of(text) if isinstance(text, str) else None
            if number is not None:
                return number
        usual = _SIGLIP_PADDING if "siglip" in self.family else 0
        value = (self._config.get("text_config") or {}).get("pad_token_id")
        return usual if value is None else int(value)

    def _text_length(self) -> int:
        if self._open_clip is not None:
            return int(self._open_clip["text_cfg"].get("context_length", _CLIP_LENGTH))
        usual = _SIGLIP_LENGTH if "siglip" in self.family else _CLIP_LENGTH
        positions = (self._config.get("text_config") or {}).get("max_position_embeddings") or usual
        return int(self._written_down("max_tokens") or positions)

    def _cleaning(self) -> Clean | None:
        if self._open_clip is not None:
            text = self._open_clip["text_cfg"]
            usual = "whitespace" if text.get("hf_tokenizer_name") else "lower"
            chosen = str((text.get("tokenizer_kwargs") or {}).get("clean", usual))
            if chosen not in OPEN_CLIP_CLEANING:
                raise ModelFileError(f"{self.path} cleans texts by {chosen!r}; known: {', '.join(OPEN_CLIP_CLEANING)}")
            return OPEN_CLIP_CLEANING[chosen]
        if "siglip" not in self.family:
            return None
        # The first generation was trained without punctuation, both in small letters.
        is_first = str(self._tokenizer_config().get("tokenizer_class")).startswith("SiglipTokenizer")
        return without_punctuation if is_first else str.lower

    def _text_inputs(self, network: Network) -> tuple[str, str | None]:
        masks = [name for name in network.inputs if "mask" in name]
        others = [name for name in network.inputs if name not in masks]
        if len(others) != 1 or len(masks) > 1 or len(network.inputs[others[0]][1]) != 2:
            raise ModelFileError(
                f"{self._text_file} must take tokens and at most a mask, but takes {', '.join(network.inputs)}; export "
                "the text tower by itself"
            )
        return others[0], masks[0] if masks else None


def find_tower(folder: Path, names: Sequence[str]) -> Path:
    """Return the ONNX file of a tower, or raise an error that names what was looked for."""
    for edition in _EDITIONS:
        for name in names:
            for place in (f"onnx/{name}{edition}.onnx", f"{name}{edition}.onnx", f"{name}/model{edition}.onnx"):
                if (folder / place).is_file():
                    return folder / place
    both = any((folder / place / "model.onnx").is_file() for place in (".", "onnx"))
    raise ModelFileError(
        f"{folder} lacks {names[0]}.onnx (also looked for as {names[1]}.onnx, in the folder and in onnx/, and as "
        f"{names[1]}/model.onnx); a joint model needs an ONNX file for each of its two "
        f"towers{', which model.onnx has in one' if both else ''}"
    )


def has_tower(folder: Path) -> bool:
    """Return True if a folder has an ONNX file for either tower."""
    for names in (IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES):
        try:
            find_tower(folder, names)
        except ModelFileError:
            continue
        return True
    return False


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


def _looks_at_filling(run: RunTokens, rows: Sequence[Tokens], padding: int, length: int, least: float) -> bool:
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
