"""Embeddings equal those of the libraries that the models come from, preparation and tokens included."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from diptych.encoders import JointImageEncoder, JointTextEncoder, open_joint_folder
from diptych.encoders.joint.export import export_folder
from diptych.errors import InvalidInputError, ModelFileError
from diptych.hub.lock import read_lock

from .samples import TEXTS, write_pictures

LEAST = 0.9999
ARCHITECTURES = {
    "CLIP": "clip",
    "CLIP fp16 sharded": "clip_fp16_sharded",
    "CLIP bf16": "clip_bf16",
    "SigLIP": "siglip",
    "SigLIP 2": "siglip2",
    "SigLIP 2 NaFlex": "naflex",
    "Chinese-CLIP": "chinese_clip",
    "AltCLIP": "alt_clip",
    "MetaCLIP 2": "meta_clip_2",
    "OpenCLIP ViT": "open_clip_vit",
    "OpenCLIP ViT quickgelu": "open_clip_quick",
    "OpenCLIP SigLIP": "open_clip_siglip",
    "OpenCLIP SigLIP 2": "open_clip_siglip2",
    "OpenCLIP text of Transformers": "open_clip_hf_text",
    "OpenCLIP tower of timm": "open_clip_timm",
    "OpenCLIP CoCa": "coca",
}
# The others differ in their files only.
EXPORTED = [name for name in ARCHITECTURES if name not in ("CLIP fp16 sharded", "CLIP bf16", "SigLIP 2 NaFlex")]
# What OpenCLIP mends in texts that were decoded wrongly is left to it.
PLAIN_TEXTS = [TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[5], TEXTS[7]]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return list(write_pictures(tmp_path_factory.mktemp("samples") / "pictures").values())


def check_agreement(folder: Path, pictures: list[Path], texts: list[str], expected: dict[str, np.ndarray]) -> None:
    for batch_size in (1, 5):
        found = {
            "pictures": JointImageEncoder(folder=str(folder), batch_size=batch_size).transform(pictures),
            "texts": JointTextEncoder(folder=str(folder), batch_size=batch_size).transform(texts),
        }
        for side, rows in expected.items():
            # Otherwise agreement would say nothing.
            assert np.quantile((rows @ rows.T)[np.triu_indices(len(rows), 1)], 0.5) < 0.99
            assert np.sum(rows * found[side], axis=1).min() >= LEAST, (side, batch_size)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_points_equal_those_of_the_library_and_of_its_export(name: str, tmp_path: Path, pictures: list[Path]) -> None:
    from . import tiny_models

    original = getattr(tiny_models, ARCHITECTURES[name])(tmp_path / "model")
    expected = {"pictures": original.images(pictures), "texts": original.texts(TEXTS)}
    check_agreement(original.folder, pictures, TEXTS, expected)
    model = open_joint_folder(original.folder)
    assert model.logit_scale is not None
    if name not in EXPORTED:
        return
    made = export_folder(original.folder, tmp_path / "exported")
    assert min(made.pictures, made.texts) >= LEAST
    expected["texts"] = original.texts(PLAIN_TEXTS)
    check_agreement(made.folder, pictures, PLAIN_TEXTS, expected)
    exported = open_joint_folder(made.folder)
    assert (exported.logit_scale, exported.logit_bias) == (model.logit_scale, model.logit_bias)
    lock = read_lock(made.folder)
    assert lock is not None
    assert (lock.name, lock.exported_from) == ("exported", str(original.folder))
    assert lock.damage(made.folder) == {}
    assert {"onnx/vision_model.onnx", "onnx/text_model.onnx", "tokenizer.json"} <= lock.files.keys()
    if (made.folder / "open_clip_config.json").is_file():
        check_agreement(as_photo_servers_have_it(made.folder), pictures, PLAIN_TEXTS, expected)


def as_photo_servers_have_it(folder: Path) -> Path:
    """Rearrange an export of OpenCLIP: towers for one item in folders of their own, each with what belongs to it."""
    target = folder.with_name("served")
    config = json.loads((folder / "open_clip_config.json").read_text())
    for tower, name in (("visual", "vision_model"), ("textual", "text_model")):
        (target / tower).mkdir(parents=True)
        graph = onnx.load(folder / "onnx" / f"{name}.onnx")
        for value in (*graph.graph.input, *graph.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(graph, target / tower / "model.onnx")
    for file in folder.glob("*token*.json"):
        shutil.copy(file, target / "textual")
    (target / "config.json").write_text(json.dumps(config["model_cfg"]))
    (target / "visual" / "preprocess_cfg.json").write_text(json.dumps(config["preprocess_cfg"]))
    return target


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    from . import tiny_models

    tiny_models.naflex(tmp_path / "naflex")
    with pytest.raises(InvalidInputError, match="any proportions"):
        export_folder(tmp_path / "naflex", tmp_path / "exported")
    assert [path.name for path in tmp_path.iterdir()] == ["naflex"]


def test_weights_of_another_model_pickles_and_missing_files_are_refused(tmp_path: Path) -> None:
    from . import tiny_models

    folder = tiny_models.clip(tmp_path / "clip").folder
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="those of another configuration"):
        JointTextEncoder(folder=str(folder)).transform(["a boat"])
    config["model_type"] = "bert"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="bert"):
        JointTextEncoder(folder=str(folder)).transform(["a boat"])
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelFileError, match="is a pickle"):
        open_joint_folder(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ModelFileError, match=r"lacks model\.safetensors"):
        open_joint_folder(folder)
