"""Exports of joint models to ONNX, so that they run without PyTorch."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.encoders.joint.joint_folder import JointFolder, check_complete
from diptych.encoders.joint.joint_model import open_joint_folder
from diptych.encoders.joint.onnx_folder import OPEN_CLIP_CONFIG, PREPROCESSOR_FILES, TOKENIZER
from diptych.encoders.joint.torch_folder import TorchFolder, TorchModel
from diptych.encoders.networks.model_files import read_model_json
from diptych.errors import InvalidInputError, ModelFileError, import_package
from diptych.hub.lock import ModelLock

MIN_AGREEMENT = 0.9999
"""The least cosine of an exported model's points with the original's."""
_N_PICTURES, _N_TEXTS = 8, 16
_OPSET = 17
_LONG_TEXT = "word " * 10_000
# Protocol Buffers end at 2 GiB, and the graph needs some room as well.
_MOST_BYTES_IN_ONE_FILE = 3 << 29


@dataclass(frozen=True)
class Export:
    """A folder that was written, and the least cosines of its points with the original's."""

    folder: Path
    pictures: float
    texts: float


def export_folder(source: Path, target: Path) -> Export:
    """Write the towers of a folder of Transformers or OpenCLIP to ONNX, with the files that they need beside them.

    ``target`` must not exist; it appears whole, after pictures and texts got the same points from both, or not at all.
    """
    folder = open_joint_folder(source)
    if not isinstance(folder, TorchFolder):
        raise InvalidInputError(f"{source} is exported already; use it as it is")
    if target.exists():
        raise InvalidInputError(f"{target} exists; name a folder that does not")
    check_complete(folder.path, (TOKENIZER,), (*PREPROCESSOR_FILES, OPEN_CLIP_CONFIG))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        _write(folder, draft)
        made = Export(target, *_agreement(folder, open_joint_folder(draft)))
        if min(made.pictures, made.texts) < MIN_AGREEMENT:
            raise ModelFileError(
                f"the export of {source} is not the same model: its pictures agree by {made.pictures:.4f} and its "
                f"texts by {made.texts:.4f}, less than {MIN_AGREEMENT}; use the folder as it is"
            )
        ModelLock.of_export(target.name, folder.path, draft).write(draft)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _write(folder: TorchFolder, draft: Path) -> None:
    model = folder.loaded()
    pictures = model.prepare(_pictures()[0])
    if [values.ndim for values in pictures.values()] != [4]:
        raise InvalidInputError(
            f"{folder.path} takes pictures of any proportions (NaFlex), which exported towers do not; use it as it is, "
            "or take its edition of a fixed size"
        )
    (draft / "onnx").mkdir()
    if hasattr(model.module, "set_attn_implementation"):
        model.module.set_attn_implementation("eager")
    # The size of an example of one would be taken for a part of the network.
    doubled = {name: np.concatenate([values, values]) for name, values in pictures.items()}
    _export(model, model.encode_images, doubled, "pixel_values", "image_embeds", draft / "onnx" / "vision_model.onnx")
    texts = model.inputs(model.tokens(["a photo", "two dogs in the snow"]))
    _export(model, model.encode_texts, texts, "input_ids", "text_embeds", draft / "onnx" / "text_model.onnx")
    for file in folder.files():
        if file.suffix != ".safetensors" and not file.name.endswith(".safetensors.index.json"):
            shutil.copy(file, draft / file.name)
    config = read_model_json(draft / "config.json", {})
    facts = {
        "logit_scale": folder.logit_scale,
        "logit_bias": folder.logit_bias,
        "max_tokens": len(model.tokens([_LONG_TEXT])[0]),
    }
    (draft / "config.json").write_text(json.dumps({**config, "diptych": facts}, indent=2) + "\n", encoding="utf-8")


def _export(
    model: TorchModel,
    encode: Callable[..., Any],
    example: dict[str, AnyArray],
    main: str,
    output: str,
    file: Path,
) -> None:
    onnx, torch = (import_package(name, "exporting a model", "'diptych[joint,search]'") for name in ("onnx", "torch"))

    class Tower(torch.nn.Module):  # type: ignore[name-defined]
        """One side of the model, as a network of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.whole = model.module

        def forward(self, *given: Any) -> Any:
            return encode(**dict(zip(example, given, strict=True)))

    names = [main, *list(example)[1:]]
    # A tower that looks at the filling has one length, and so has every tower of OpenCLIP.
    has_free_length = len(example) > 1
    axes = {name: {0: "batch", 1: "length"} if has_free_length else {0: "batch"} for name in names}
    with tempfile.TemporaryDirectory(dir=file.parent) as room, torch.no_grad(), warnings.catch_warnings():
        # The exporter that traces is deprecated; the other one needs another package and ten times as long.
        warnings.simplefilter("ignore")
        # One fused operation for a whole layer, which ONNX does not have.
        torch.backends.mha.set_fastpath_enabled(False)
        traced = Path(room) / "tower.onnx"
        torch.onnx.export(
            # A wrapper in training would put the model into training, too.
            Tower().eval(),
            tuple(torch.from_numpy(values) for values in example.values()),
            str(traced),
            input_names=names,
            output_names=[output],
            dynamic_axes={**axes, output: {0: "batch"}},
            opset_version=_OPSET,
            dynamo=False,
        )
        graph = onnx.load(traced)
        size = sum(len(weight.raw_data) for weight in graph.graph.initializer)
        is_large = size > _MOST_BYTES_IN_ONE_FILE
        onnx.save_model(graph, file, save_as_external_data=is_large, location=f"{file.name}_data")


def _pictures() -> list[Image.Image]:
    noise = np.random.default_rng(0).integers(0, 256, (_N_PICTURES, 6, 8, 3), dtype=np.uint8)
    # Large smooth colours, as photographs have; noise alone looks the same to every network.
    return [Image.fromarray(pixels).resize((640, 480), Image.Resampling.BICUBIC) for pixels in noise]


def _agreement(original: JointFolder, exported: JointFolder) -> tuple[float, float]:
    words = ["dog", "boat", "snow", "red", "city", "night", "two", "children"]
    texts = [f"a photograph of a {word}" for word in words] + [" ".join(words[: count + 1]) for count in range(8)]
    pictures: list[FloatArray] = []
    points: list[FloatArray] = []
    for folder in (original, exported):
        pictures.append(unit_rows(folder.open_image_tower(None)([folder.prepare(image) for image in _pictures()])))
        tower = folder.open_text_tower(None)
        points.append(unit_rows(tower.features(tower.tokens(texts[:_N_TEXTS]))))
    return _least_cosine(*pictures), _least_cosine(*points)


def _least_cosine(first: FloatArray, second: FloatArray) -> float:
    return float(np.sum(first * second, axis=1).min())
