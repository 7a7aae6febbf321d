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
from PIL import Image
from safetensors.numpy import load_file, save_file

from diptych.encoders import JointImageEncoder, JointModel, JointTextEncoder
from diptych.encoders.joint.joint_folder import open_tokenizer
from diptych.encoders.joint.joint_model import open_joint_folder
from diptych.errors import ModelFileError

FIXTURES = Path(__file__).parent / "fixtures"
Arrays = dict[str, NDArray[Any]]


def copied(name: str, target: Path) -> Path:
    shutil.copytree(FIXTURES / name, target)
    return target


def change_json(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_weights_in_parts_are_one_model(tmp_path: Path, texts: list[str]) -> None:
    folder = copied("clip", tmp_path / "parts")
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    places = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(names)}
    for part in set(places.values()):
        save_file({name: weights[name] for name in names if places[name] == part}, folder / part)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    expected = load_file(FIXTURES / "expected_clip.safetensors")["texts"]
    np.testing.assert_allclose(JointTextEncoder(folder=str(folder)).transform(texts), expected, atol=1e-5)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"lacks model-00002-of-00002\.safetensors"):
        open_joint_folder(folder)


def test_tokens_equal_those_of_transformers(texts: list[str]) -> None:
    expected = load_file(FIXTURES / "expected_clip.safetensors")["tokens"]
    for row, tokens in zip(expected, open_tokenizer(FIXTURES / "clip", max_tokens=20).encode(texts), strict=True):
        np.testing.assert_array_equal(tokens, row[: len(tokens)])
        # The first of the filling is the end of the text again.
        assert set(row[len(tokens) :].tolist()) <= {int(tokens[-1])}


def test_configurations_may_leave_out_what_is_usual(tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    config = json.loads((folder / "config.json").read_text())
    for part in ("text_config", "vision_config"):
        for name in ("hidden_act", "layer_norm_eps"):
            config[part].pop(name)
    (folder / "config.json").write_text(json.dumps(config))
    expected = load_file(FIXTURES / "expected_siglip.safetensors")["texts"]
    texts = json.loads((FIXTURES / "texts.json").read_text())
    np.testing.assert_allclose(JointTextEncoder(folder=str(folder)).transform(texts), expected, atol=1e-5)


def test_siglip_reads_small_letters_whatever_its_tokenizer_does(tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    change_json(folder / "tokenizer.json", normalizer=tokenizer["normalizer"]["normalizers"][1])
    small, large = JointTextEncoder(folder=str(folder)).transform(["two dogs play", "Two DOGS play"])
    np.testing.assert_array_equal(small, large)
    assert not np.array_equal(*open_tokenizer(folder, max_tokens=16).encode(["two dogs play", "Two DOGS play"]))


def test_short_texts_are_filled_up_on_the_side_that_the_folder_asks_for(tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    change_json(folder / "tokenizer_config.json", padding_side="left", pad_token="<unk>")
    tower = open_joint_folder(folder).open_text_tower(1)
    row = tower.tokens(["two dogs"])[0]
    full = np.concatenate([np.zeros(16 - len(row), dtype=np.int64), row])
    np.testing.assert_array_equal(tower.features([row]), tower.features([full]))
    assert np.abs(tower.features([row]) - tower.features([full[::-1]])).max() > 1e-3


def test_the_preparation_may_lie_in_the_processor_configuration(tmp_path: Path) -> None:
    folder = copied("clip", tmp_path / "clip")
    preparation = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": preparation}))
    assert open_joint_folder(folder).preparation == open_joint_folder(FIXTURES / "clip").preparation


def write_open_clip(folder: Path, text_prefix: str) -> None:
    """Write the tiny CLIP model as OpenCLIP names and stacks its weights."""
    source = load_file(FIXTURES / "clip" / "model.safetensors")
    result: Arrays = {"logit_scale": source["logit_scale"]}
    result["visual.proj"] = source["visual_projection.weight"].T
    result[f"{text_prefix}text_projection"] = source["text_projection.weight"].T
    result["visual.class_embedding"] = source["vision_model.embeddings.class_embedding"]
    result["visual.conv1.weight"] = source["vision_model.embeddings.patch_embedding.weight"]
    result["visual.positional_embedding"] = source["vision_model.embeddings.position_embedding.weight"]
    result[f"{text_prefix}token_embedding.weight"] = source["text_model.embeddings.token_embedding.weight"]
    result[f"{text_prefix}positional_embedding"] = source["text_model.embeddings.position_embedding.weight"]
    for kind in ("weight", "bias"):
        result[f"visual.ln_pre.{kind}"] = source[f"vision_model.pre_layrnorm.{kind}"]
        result[f"visual.ln_post.{kind}"] = source[f"vision_model.post_layernorm.{kind}"]
        result[f"{text_prefix}ln_final.{kind}"] = source[f"text_model.final_layer_norm.{kind}"]
        for tower, prefix in (("vision_model", "visual."), ("text_model", text_prefix)):
            for layer in range(2):
                old, new = f"{tower}.encoder.layers.{layer}.", f"{prefix}transformer.resblocks.{layer}."
                thirds = [source[f"{old}self_attn.{part}_proj.{kind}"] for part in "qkv"]
                result[f"{new}attn.in_proj_{kind}"] = np.concatenate(thirds)
                result[f"{new}attn.out_proj.{kind}"] = source[f"{old}self_attn.out_proj.{kind}"]
                result[f"{new}ln_1.{kind}"] = source[f"{old}layer_norm1.{kind}"]
                result[f"{new}ln_2.{kind}"] = source[f"{old}layer_norm2.{kind}"]
                result[f"{new}mlp.c_fc.{kind}"] = source[f"{old}mlp.fc1.{kind}"]
                result[f"{new}mlp.c_proj.{kind}"] = source[f"{old}mlp.fc2.{kind}"]
    folder.mkdir()
    contiguous = {name: np.ascontiguousarray(values) for name, values in result.items()}
    save_file(contiguous, folder / "open_clip_model.safetensors")
    shutil.copy(FIXTURES / "clip" / "tokenizer.json", folder)
    model = {
        "embed_dim": 24,
        "quick_gelu": True,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8},
        "text_cfg": {"context_length": 20, "vocab_size": 96, "width": 32, "heads": 4, "layers": 2},
    }
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": {}}))


@pytest.mark.parametrize("text_prefix", ["", "text."])
def test_open_clip_folders_are_read(
    tmp_path: Path, pictures: list[NDArray[np.uint8]], texts: list[str], text_prefix: str
) -> None:
    write_open_clip(tmp_path / "open", text_prefix)
    model = JointModel.from_folder(tmp_path / "open")
    expected = load_file(FIXTURES / "expected_clip_legacy.safetensors")
    np.testing.assert_allclose(model.image_encoder.transform(pictures), expected["images"], atol=1e-5)
    np.testing.assert_allclose(model.text_encoder.transform(texts), expected["texts"], atol=1e-5)
    assert model.logit_scale == JointModel.from_folder(FIXTURES / "clip").logit_scale


def test_open_clip_prepares_texts_and_pictures_in_its_own_way(tmp_path: Path) -> None:
    write_open_clip(tmp_path / "open", "")
    opened = open_joint_folder(tmp_path / "open")
    rows = opened.open_text_tower(1).tokens(["Dogs &amp;amp; “cats” &lt;3\n", 'dogs & "cats" <3'])
    np.testing.assert_array_equal(*rows)
    # Between two pixels, the crop goes to the even one: 3 of 7 to the left, and 4 of 9.
    for excess, left in ((7, 4), (9, 4), (8, 4)):
        marked = np.zeros((32, 32 + excess, 3), dtype=np.uint8)
        marked[:, left] = 255
        prepared = opened.preparation.apply(marked)
        assert prepared[0, :, 0].min() == prepared.max(axis=(1, 2))[0]


def test_open_clip_resizes_before_it_forgets_transparency(tmp_path: Path) -> None:
    write_open_clip(tmp_path / "open", "")
    colours = np.random.default_rng(0).integers(0, 256, (64, 64, 4), dtype=np.uint8)
    clear = Image.fromarray(colours)
    expected = np.asarray(clear.resize((32, 32), Image.Resampling.BICUBIC).convert("RGB"))
    preparation = open_joint_folder(tmp_path / "open").preparation
    found = preparation.apply(clear).transpose(1, 2, 0) * preparation.deviation + preparation.mean
    np.testing.assert_allclose(found * 255, expected, atol=1e-3)


def change_model(folder: Path, part: str, **values: Any) -> None:
    file = folder / "open_clip_config.json"
    config = json.loads(file.read_text())
    config["model_cfg"].setdefault(part, {}).update(values)
    file.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        (
            "vision_cfg",
            {"timm_model_name": "convnext_base"},
            "image tower 'convnext_base' of another library.*ONNX|onnx",
        ),
        ("vision_cfg", {"timm_model_name": "eva02_base_patch16_clip_224"}, "eva02_base_patch16_clip_224.*onnx/vision_"),
        ("vision_cfg", {"timm_model_name": "fastvit_mci0"}, "MobileCLIP is read from its ONNX export: put onnx/vision"),
        ("vision_cfg", {"layers": [3, 4, 6, 3]}, "a ResNet as its image tower"),
        ("vision_cfg", {"attentional_pool": True}, "the setting attentional_pool=True"),
        ("text_cfg", {"hf_model_name": "roberta-base"}, "text tower 'roberta-base' of another library"),
        ("text_cfg", {"pool_type": "last"}, "the setting pool_type='last'"),
        ("multimodal_cfg", {"layers": 2}, r"a tower that writes captions \(CoCa\), which cannot be read; export"),
    ],
)
def test_open_clip_models_of_other_kinds_are_refused_with_what_to_do(
    tmp_path: Path, part: str, values: dict[str, Any], message: str
) -> None:
    write_open_clip(tmp_path / "open", "")
    change_model(tmp_path / "open", part, **values)
    with pytest.raises(ModelFileError, match=message):
        open_joint_folder(tmp_path / "open")


def test_siglip_2_of_any_proportions_is_refused_with_its_other_edition(tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    change_json(folder / "config.json", model_type="siglip2")
    with pytest.raises(ModelFileError, match=r"NaFlex.*siglip2-base-patch16-224"):
        open_joint_folder(folder)


def test_the_first_siglip_reads_no_punctuation(tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    change_json(folder / "tokenizer_config.json", tokenizer_class="SiglipTokenizer")
    tower = open_joint_folder(folder).open_text_tower(1)
    np.testing.assert_array_equal(*tower.tokens(["Two dogs, (play)  in-the snow.", "two dogs play inthe snow"]))


def test_open_clip_pickles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    write_open_clip(tmp_path / "open", "")
    (tmp_path / "open" / "open_clip_model.safetensors").rename(tmp_path / "open" / "open_clip_pytorch_model.bin")
    with pytest.raises(ModelFileError, match=r"is a pickle.*open_clip\.create_model\('local-dir:"):
        open_joint_folder(tmp_path / "open")


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


def test_exported_networks_of_open_clip_are_prepared_for_as_open_clip_does(tmp_path: Path) -> None:
    write_open_clip(tmp_path / "open", "")
    whole = open_joint_folder(tmp_path / "open")
    shutil.copytree(FIXTURES / "exported" / "onnx", tmp_path / "open" / "onnx")
    exported = open_joint_folder(tmp_path / "open")
    assert (exported.family, exported.preparation) == ("onnx", whole.preparation)
    np.testing.assert_array_equal(
        exported.open_text_tower(1).tokens(["Salt &amp; pepper"])[0],
        whole.open_text_tower(1).tokens(["salt & pepper"])[0],
    )


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
        shutil.copy(FIXTURES / "clip" / name, folder)


def test_exported_networks_of_fixed_size_are_run_in_steps(tmp_path: Path, pictures: list[NDArray[np.uint8]]) -> None:
    write_fixed_towers(tmp_path / "fixed")
    encoder = JointImageEncoder(folder=str(tmp_path / "fixed"), batch_size=3)
    means = np.stack([encoder.prepare(picture).mean(axis=(1, 2)) for picture in pictures[:3]])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert encoder.n_features == 3
    np.testing.assert_allclose(encoder.transform(pictures[:3]), expected, atol=1e-5)


def test_exported_networks_get_the_type_the_length_and_the_mask_they_ask_for(tmp_path: Path) -> None:
    write_fixed_towers(tmp_path / "fixed")
    tokens = open_tokenizer(FIXTURES / "clip", max_tokens=7)
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


@pytest.mark.parametrize("absolute", [False, True])
def test_an_index_of_weights_may_not_lead_out_of_the_folder(tmp_path: Path, absolute: bool) -> None:
    folder = copied("clip", tmp_path / "parts")
    (tmp_path / "secret").mkdir()
    secret = (folder / "model.safetensors").rename(tmp_path / "secret" / "x.safetensors")
    place = str(secret) if absolute else "../secret/x.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"logit_scale": place}}))
    with pytest.raises(ModelFileError, match=r"x\.safetensors', which is outside the folder"):
        open_joint_folder(folder)


@pytest.mark.parametrize(
    ("name", "removed", "message"),
    [
        ("clip", ["model.safetensors"], "lacks model.safetensors;"),
        ("clip", ["tokenizer.json"], "lacks tokenizer.json;"),
        ("siglip", ["tokenizer.json", "preprocessor_config.json"], "lacks tokenizer.json, preprocessor_config.json;"),
        ("siglip", ["config.json"], "lacks config.json"),
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
        JointModel.from_folder(folder)


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("clip", "config.json", "config.json cannot be read"),
        ("clip", "model.safetensors", "cannot be read as safetensors"),
        ("clip", "tokenizer.json", "cannot be read as a tokenizer"),
        ("clip", "preprocessor_config.json", "preprocessor_config.json cannot be read"),
        ("exported", "onnx/text_model.onnx", "cannot be run by ONNX Runtime"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, file: str, message: str) -> None:
    folder = copied(name, tmp_path / name)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match=message):
        JointModel.from_folder(folder).text_encoder.transform(["a boat"])


def test_pickled_weights_are_refused_with_the_way_out(tmp_path: Path) -> None:
    folder = copied("clip", tmp_path / "clip")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelFileError, match=r"is a pickle.*save_pretrained"):
        JointModel.from_folder(folder)


@pytest.mark.parametrize("file", ["spiece.model", "vocab.json"])
def test_another_tokenizer_is_refused_with_the_way_out(file: str, tmp_path: Path) -> None:
    folder = copied("siglip", tmp_path / "siglip")
    (folder / "tokenizer.json").rename(folder / file)
    with pytest.raises(ModelFileError, match=rf"{file} only; put the tokenizer.json"):
        JointModel.from_folder(folder)


def test_other_kinds_of_model_are_refused_unless_exported(tmp_path: Path) -> None:
    folder = copied("clip", tmp_path / "clip")
    change_json(folder / "config.json", model_type="flava")
    with pytest.raises(ModelFileError, match=r"'flava' model; these are supported: clip, siglip"):
        JointModel.from_folder(folder)
    shutil.copytree(FIXTURES / "exported" / "onnx", folder / "onnx")
    assert JointModel.from_folder(folder).text_encoder.transform(["a boat"]).shape == (1, 24)


def test_a_preparation_for_another_network_is_refused(tmp_path: Path) -> None:
    folder = copied("clip", tmp_path / "clip")
    change_json(folder / "preprocessor_config.json", crop_size={"height": 40, "width": 40})
    with pytest.raises(ModelFileError, match="takes 32 × 32 pixels, but pictures are prepared to"):
        JointModel.from_folder(folder)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    folder = copied("clip", tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    change_json(folder / "config.json", text_config={**config["text_config"], "num_hidden_layers": 3})
    with pytest.raises(ModelFileError, match=r"lacks the weight 'text_model.encoder.layers.2"):
        JointModel.from_folder(folder).text_encoder.transform(["a boat"])


def test_no_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no folder"):
        JointModel.from_folder(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"no model\.safetensors"):
        JointModel.from_folder(tmp_path)
