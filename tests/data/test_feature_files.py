"""Features in files: what is read is what was written, in blocks, and what cannot be read is named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from diptych.data import FeatureFiles, open_features
from diptych.errors import InvalidInputError


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("diptych.data.feature_files._PART_ROWS", 40)
    monkeypatch.setattr("diptych.data.feature_files._BLOCK_ROWS", 16)


@pytest.fixture
def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "images": rng.normal(size=(100, 6)).astype(np.float32),
        "texts": rng.normal(size=(100, 3)),
        "labels": np.array(["bird", "boat", "car"])[rng.integers(3, size=100)],
    }


def write_numpy(folder, rows):
    folder.mkdir(exist_ok=True)
    for name, values in rows.items():
        np.save(folder / f"{name}.npy", values)
    return folder


def write_parquet(folder, rows, sizes=(30, 50, 20), group=25):
    """Write several files, with lists of fixed length on one side and of any length on the other."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder.mkdir(exist_ok=True)
    start = 0
    for number, size in enumerate(sizes):
        part = {name: values[start : start + size] for name, values in rows.items()}
        images = pa.FixedSizeListArray.from_arrays(pa.array(part["images"].ravel()), part["images"].shape[1])
        columns = {"images": images, "texts": pa.array(list(part["texts"]))}
        if "labels" in part:
            columns["labels"] = pa.array(list(part["labels"])).dictionary_encode()
        parquet.write_table(pa.table(columns), folder / f"part-{number}.parquet", row_group_size=group)
        start += size
    return folder


@pytest.mark.parametrize("write", [write_numpy, write_parquet])
def test_blocks_of_all_parts_are_the_rows_in_their_order(write, rows, tmp_path):
    features = pickle.loads(pickle.dumps(open_features(write(tmp_path / "features", rows))))
    assert isinstance(features, FeatureFiles)
    assert (features.n_rows, features.image_width, features.text_width, features.has_labels) == (100, 6, 3, True)
    parts = features.parts()
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, 100)
    assert len(parts) >= 2
    blocks = [block for part in parts for block in features.blocks(part, labels=True)]
    assert max(len(block.images) for block in blocks) <= 16
    for name in ("images", "texts", "labels"):
        read = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(read, rows[name])
    assert blocks[0].images.dtype == np.float32
    assert blocks[0].texts.dtype == np.float64
    assert features.classes().tolist() == ["bird", "boat", "car"]
    assert next(features.blocks(parts[0])).labels is None


def test_parts_of_parquet_files_are_whole_row_groups(rows, tmp_path):
    features = open_features(write_parquet(tmp_path / "features", rows, sizes=(100,), group=25))
    assert features.parts() == [range(50), range(50, 100)]
    (only,) = open_features(write_parquet(tmp_path / "one", rows, sizes=(100,), group=100)).parts()
    assert only == range(100)


def test_label_matrices_half_floats_and_other_names(rows, tmp_path):
    matrix = np.eye(4, dtype=np.int8)[np.arange(100) % 4]
    written = {"a": rows["images"].astype(np.float16), "b": np.arange(300).reshape(100, 3), "c": matrix}
    features = open_features(write_numpy(tmp_path / "features", written), images="a", texts="b", labels="c")
    block = next(features.blocks(features.parts()[0], labels=True))
    assert (block.images.dtype, block.texts.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(block.labels, matrix[:16])
    assert features.classes().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: {"texts": rows["texts"]}, "holds no features"),
        (lambda rows: {**rows, "texts": rows["texts"][:-1]}, "aligned rows, got 100 images, 99 texts"),
        (lambda rows: {**rows, "images": rows["images"][:, 0]}, "must hold rows of features"),
        (lambda rows: {**rows, "images": np.asfortranarray(rows["images"])}, "column by column"),
        (lambda rows: {**rows, "texts": np.array([["a"]] * 100, dtype=object)}, "no readable .npy file"),
    ],
)
def test_folders_that_cannot_be_used_are_refused_when_they_are_opened(change, message, rows, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        open_features(write_numpy(tmp_path / "features", change(rows)))


def test_what_is_wrong_with_a_row_is_said_with_its_number(rows, tmp_path):
    rows["texts"][77, 1] = np.nan
    features = open_features(write_numpy(tmp_path / "features", rows))
    with pytest.raises(InvalidInputError, match="texts holds NaN or infinity, first in row 77"):
        list(features.blocks(features.parts()[1]))


def test_tables_that_cannot_be_used_are_refused(rows, tmp_path):
    features = write_parquet(tmp_path / "features", rows)
    with pytest.raises(InvalidInputError, match="no column 'picture'; it has images, texts, labels"):
        open_features(features, images="picture")
    with pytest.raises(InvalidInputError, match="a list of numbers in each row"):
        open_features(features, images="labels")
    uneven = [row[: 2 + number % 2] for number, row in enumerate(rows["texts"])]
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for texts, message in ((uneven, "different lengths"), ([*rows["texts"][:99], None], "missing values")):
        parquet.write_table(pa.table({"images": list(rows["images"]), "texts": texts}), tmp_path / "bad.parquet")
        with pytest.raises(InvalidInputError, match=message):
            list(open_features(tmp_path / "bad.parquet").blocks(range(100)))
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="no readable Parquet file"):
        open_features(tmp_path / "no.parquet")
    (tmp_path / "unlabelled").mkdir()
    del rows["labels"]
    with pytest.raises(InvalidInputError, match="learns from labels"):
        open_features(write_numpy(tmp_path / "unlabelled", rows)).classes()


def test_a_file_that_shrinks_while_it_is_read_is_named(rows, tmp_path):
    folder = write_numpy(tmp_path / "features", rows)
    features = open_features(folder)
    (folder / "images.npy").write_bytes((folder / "images.npy").read_bytes()[:1000])
    with pytest.raises(InvalidInputError, match=r"images\.npy has become shorter"):
        list(features.blocks(features.parts()[1]))
