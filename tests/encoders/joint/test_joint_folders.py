from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime.quantization import quantize_dynamic
from safetensors.numpy import load_file

from diptych.encoders import JointImageEncoder, JointTextEncoder, open_joint_folder
from diptych.encoders.networks.tokenizer import Tokenizer
from diptych.errors import ModelFileError

FIXTURES = Path(__file__).parent / "fixtures"
Arrays = dict[str, NDArray[Any]]


def copied(name: str, target: Path) -> Path:
    shutil.copytree(FIXTURES / name, target)
    return target


def change_json(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_the_preparation_may_lie_in_the_processor_configuration(tmp_path: Path) -> None:
    folder = copied("exported", tmp_path / "exported")
    preparation = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": preparation}))
    assert open_joint_folder(folder).preparation == open_joint_folder(FIXTURES / "exported").preparation


def quantise(folder: Path) -> None:
    """Quantise the exported networks while they run, as the editions of that name are."""
    for file in (folder / "onnx" / "vision_model.onnx", folder / "onnx" / "text_model.onnx"):
        quantize_dynamic(file, file.with_stem(f"{file.stem}_quantized"))
        file.unlink()


def test_quantised_networks_encode_an_item_alone_as_among_others(
    tmp_path: Path, pictures: list[NDArray[np.uint8]], texts: list[str]
) -> None:
    folder = copied("exported", tmp_path / "exported")
    quantise(folder)
    images, words = JointImageEncoder(folder=str(folder)), JointTextEncoder(folder=str(folder))
    alone = np.vstack([images.transform([picture]) for picture in pictures])
    np.testing.assert_allclose(images.transform(pictures), alone, atol=1e-6)
    np.testing.assert_allclose(
        words.transform(texts), np.vstack([words.transform([text]) for text in texts]), atol=1e-6
    )
    expected = load_file(FIXTURES / "expected_clip.safetensors")
    assert np.sum(alone * expected["images"], axis=1).min() > 0.97


def test_an_exported_tower_that_looks_at_the_filling_gets_all_of_it(tmp_path: Path) -> None:
    folder = copied("exported", tmp_path / "exported")
    assert open_joint_folder(folder).open_text_tower(1).length is None
    value = helper.make_tensor_value_info
    save_network(
        folder / "onnx" / "text_model.onnx",
        [
            helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["numbers"], ["mean"], axes=[1], keepdims=1),
            helper.make_node("ReduceMax", ["numbers"], ["most"], axes=[1], keepdims=1),
            helper.make_node("Concat", ["mean", "most"], ["text_embeds"], axis=1),
        ],
        [value("input_ids", TensorProto.INT64, ["batch", "length"])],
        [value("text_embeds", TensorProto.FLOAT, ["batch", 2])],
    )
    assert open_joint_folder(folder).open_text_tower(1).length == 20


def save_network(file: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> None:
    graph = helper.make_graph(nodes, "tower", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def write_fixed_towers(folder: Path) -> None:
    """Write towers for exactly two pictures, and for seven int32 tokens with a mask, under their other names."""
    folder.mkdir()
    value = helper.make_tensor_value_info
    save_network(
        folder / "visual.onnx",
        [helper.make_node("ReduceMean", ["image"], ["embedding"], axes=[2, 3], keepdims=0)],
        [value("image", TensorProto.FLOAT, [2, 3, 32, 32])],
        [value("embedding", TensorProto.FLOAT, [2, 3])],
    )
    save_network(
        folder / "textual.onnx",
        [
            helper.make_node("Mul", ["text", "attention_mask"], ["kept"]),
            helper.make_node("Cast", ["kept"], ["numbers"], to=TensorProto.FLOAT),
            helper.make_node("Slice", ["numbers", "zero", "three", "one"], ["unnamed"]),
            helper.make_node("Identity", ["unnamed"], ["hidden"]),
        ],
        [value(name, TensorProto.INT32, ["batch", 7]) for name in ("text", "attention_mask")],
        [value("unnamed", TensorProto.FLOAT, ["batch", 3])],
    )
    model = onnx.load(folder / "textual.onnx")
    for name, number in (("zero", 0), ("one", 1), ("three", 3)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([number]), name))
    onnx.save(model, folder / "textual.onnx")
    for name in ("tokenizer.json", "preprocessor_config.json"):
        shutil.copy(FIXTURES / "exported" / name, folder)


def test_exported_networks_of_fixed_size_are_run_in_steps(tmp_path: Path, pictures: list[NDArray[np.uint8]]) -> None:
    write_fixed_towers(tmp_path / "fixed")
    encoder = JointImageEncoder(folder=str(tmp_path / "fixed"), batch_size=3)
    means = np.stack([encoder.prepare(picture)["pixels"][0].mean(axis=(1, 2)) for picture in pictures[:3]])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert encoder.n_features == 3
    np.testing.assert_allclose(encoder.transform(pictures[:3]), expected, atol=1e-5)


def test_exported_networks_get_the_type_the_length_and_the_mask_they_ask_for(tmp_path: Path) -> None:
    write_fixed_towers(tmp_path / "fixed")
    tokens = Tokenizer(FIXTURES / "exported" / "tokenizer.json", max_tokens=7)
    rows = np.zeros((3, 3))
    for row, text in enumerate(["a", "abc", "a boat at sea in the snow"]):
        found = tokens.encode([text])[0][:3]
        rows[row, : len(found)] = found
    features = JointTextEncoder(folder=str(tmp_path / "fixed")).transform(["a", "abc", "a boat at sea in the snow"])
    np.testing.assert_allclose(features, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-5)


def keep_weights_beside(folder: Path, scale: float, location: str) -> None:
    """Give the image tower of :func:`write_fixed_towers` weights in a file of their own."""
    model = onnx.load(folder / "visual.onnx")
    model.graph.node[0].output[0] = "mean"
    model.graph.node.append(helper.make_node("Mul", ["mean", "scale"], ["embedding"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([scale, 1, 1]), "scale"))
    onnx.save_model(model, folder / "visual.onnx", save_as_external_data=True, location=location, size_threshold=0)


@pytest.mark.parametrize("location", ["weights.bin", "visual.onnx_data"])
def test_weights_beside_an_exported_network_shape_the_fingerprint(tmp_path: Path, location: str) -> None:
    encoders = {}
    for name, scale in (("one", 1.0), ("same", 1.0), ("other", 2.0)):
        write_fixed_towers(tmp_path / name)
        keep_weights_beside(tmp_path / name, scale, location)
        encoders[name] = JointImageEncoder(folder=str(tmp_path / name))
    assert (tmp_path / "one" / "visual.onnx").read_bytes() == (tmp_path / "other" / "visual.onnx").read_bytes()
    assert encoders["one"].fingerprint == encoders["same"].fingerprint != encoders["other"].fingerprint


def test_weights_beside_an_exported_network_must_be_there_and_in_the_folder(tmp_path: Path) -> None:
    write_fixed_towers(tmp_path / "fixed")
    keep_weights_beside(tmp_path / "fixed", 1.0, "weights.bin")
    (tmp_path / "fixed" / "weights.bin").rename(tmp_path / "weights.bin")
    with pytest.raises(ModelFileError, match=r"lacks weights\.bin, which visual\.onnx needs"):
        _ = JointImageEncoder(folder=str(tmp_path / "fixed")).fingerprint
    model = onnx.load(tmp_path / "fixed" / "visual.onnx", load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../weights.bin"
    (tmp_path / "fixed" / "visual.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match="outside its folder"):
        _ = JointImageEncoder(folder=str(tmp_path / "fixed")).fingerprint


@pytest.mark.parametrize(
    ("name", "removed", "message"),
    [
        ("exported", ["tokenizer.json"], "lacks tokenizer.json;"),
        ("exported", ["tokenizer.json", "preprocessor_config.json"], "lacks tokenizer.json, preprocessor_config.json;"),
        ("exported", ["onnx/text_model.onnx"], "lacks text_model.onnx"),
        ("exported", ["onnx/vision_model.onnx"], "lacks vision_model.onnx"),
        ("exported", ["preprocessor_config.json"], "lacks preprocessor_config.json;"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, name: str, removed: list[str], message: str) -> None:
    folder = copied(name, tmp_path / name)
    for file in removed:
        (folder / file).unlink()
    with pytest.raises(ModelFileError, match=message):
        open_joint_folder(folder)


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("exported", "config.json", "config.json cannot be read"),
        ("exported", "tokenizer.json", "cannot be read as a tokenizer"),
        ("exported", "preprocessor_config.json", "preprocessor_config.json cannot be read"),
        ("exported", "onnx/text_model.onnx", "cannot be run by ONNX Runtime"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, file: str, message: str) -> None:
    folder = copied(name, tmp_path / name)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match=message):
        JointTextEncoder(folder=str(folder)).transform(["a boat"])


def test_no_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no folder"):
        open_joint_folder(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="holds no model"):
        open_joint_folder(tmp_path)
