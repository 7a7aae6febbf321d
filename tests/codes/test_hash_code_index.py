"""An index of codes: kept, changed, searched, saved; and approximate search that states its recall."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from diptych.codes import CodeIndex, codes_within, hamming_distances, nearest_codes, pack_signs
from diptych.errors import InvalidInputError, MissingDataError, MissingPackageError, ModelFileError


def clustered_signs(n_items: int, n_bits: int, seed: int) -> np.ndarray:
    centres = np.random.default_rng(7).standard_normal((60, 16))
    projection = np.random.default_rng(8).standard_normal((16, n_bits))
    rng = np.random.default_rng(seed)
    return (centres[rng.integers(0, 60, n_items)] + 0.5 * rng.standard_normal((n_items, 16))) @ projection


def clustered_codes(n_items: int, n_bits: int, seed: int) -> np.ndarray:
    return pack_signs(clustered_signs(n_items, n_bits, seed))


@pytest.fixture(scope="module")
def gallery() -> np.ndarray:
    return clustered_codes(20_000, 64, 0)


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return clustered_codes(300, 64, 1)


@pytest.fixture(scope="module")
def fast(gallery: np.ndarray, queries: np.ndarray) -> CodeIndex:
    index = CodeIndex(64)
    index.add(gallery)
    index.speed_up(queries)
    return index


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_codes_added_in_portions_are_found_as_if_added_at_once(gallery: np.ndarray, queries: np.ndarray) -> None:
    index = CodeIndex(64)
    for portion in np.array_split(gallery, 37):
        index.add(portion)
    assert len(index) == len(gallery)
    np.testing.assert_array_equal(index.codes, gallery)
    assert_same(index.search(queries, 7), nearest_codes(queries, gallery, 7))
    for found, expected in zip(index.within(queries[:3], 9), codes_within(queries[:3], gallery, 9), strict=True):
        assert_same(found, expected)


def test_removed_codes_never_answer_and_positions_stay_until_compacted(
    gallery: np.ndarray, queries: np.ndarray
) -> None:
    index = CodeIndex(64)
    index.add(gallery[:5_000])
    gone = np.random.default_rng(0).permutation(5_000)[:1_500]
    index.remove(gone)
    index.add(gallery[5_000:6_000])
    kept = np.ones(6_000, dtype=bool)
    kept[gone] = False
    assert len(index) == 4_500
    expected = nearest_codes(queries, gallery[:6_000], 5, allowed=kept)
    assert_same(index.search(queries, 5), expected)
    odd = np.arange(6_000) % 2 == 1
    assert_same(index.search(queries, 5, odd), nearest_codes(queries, gallery[:6_000], 5, allowed=kept & odd))
    assert not np.isin(index.within(queries[:1], 20)[0][1], gone).any()
    former = index.compact()
    np.testing.assert_array_equal(former, np.flatnonzero(kept))
    assert index.memory == 4_500 * 8
    distances, positions = index.search(queries, 5)
    assert_same((distances, former[positions]), expected)


def test_memory_is_that_of_the_codes(gallery: np.ndarray) -> None:
    whole = CodeIndex(64)
    whole.add(gallery)
    assert whole.memory == gallery.nbytes
    reserved = CodeIndex(64, capacity=len(gallery))
    rows = reserved._rows
    for portion in np.array_split(gallery, 5):
        reserved.add(portion)
    assert reserved._rows is rows
    grown = CodeIndex(64)
    for code in gallery[:500]:
        grown.add(code[None])
    assert grown.memory <= 1.2 * 500 * 8


def test_the_stated_recall_is_true_of_other_queries(fast: CodeIndex, gallery: np.ndarray) -> None:
    assert fast.recall >= 0.95
    asked = clustered_codes(400, 64, 2)
    truth, _ = nearest_codes(asked, gallery, 10)
    distances, positions = fast.search(asked, 10)
    np.testing.assert_array_equal(
        distances, np.take_along_axis(hamming_distances(asked, gallery), positions, axis=1).astype(np.int32)
    )
    assert abs((distances <= truth[:, -1:]).mean() - fast.recall) < 0.02
    assert (np.diff(distances, axis=1) >= 0).all()
    lists = fast._approximate
    assert lists is not None
    assert lists.probes < lists.engine.nlist / 2, "a search of half the lists is not sub-linear"
    assert "recall" in repr(fast)


def test_a_query_alone_is_answered_as_in_a_batch_by_lists(fast: CodeIndex, queries: np.ndarray) -> None:
    together = fast.search(queries[:20], 10)
    for row in range(20):
        alone = fast.search(queries[row : row + 1], 10)
        np.testing.assert_array_equal(alone[0][0], together[0][row])


def test_every_list_looked_into_is_exact(gallery: np.ndarray, queries: np.ndarray) -> None:
    index = CodeIndex(64)
    index.add(gallery[:3_000])
    index.speed_up(queries)
    assert index._approximate is not None
    index._approximate.engine.nprobe = index._approximate.engine.nlist
    index.add(gallery[3_000:3_500])
    index.remove(np.arange(0, 3_500, 7))
    allowed = np.arange(3_500) % 5 != 0
    kept = allowed & (np.arange(3_500) % 7 != 0)
    exact, _ = nearest_codes(queries, gallery[:3_500], 12, allowed=kept)
    distances, positions = index.search(queries, 12, allowed)
    np.testing.assert_array_equal(distances, exact)
    assert kept[positions].all()
    assert (positions >= 3_000).any()
    few = np.zeros(3_500, dtype=bool)
    few[[14, 15, 16, 3_400]] = True
    left = few & (np.arange(3_500) % 7 != 0)
    assert_same(index.search(queries, 9, few), nearest_codes(queries, gallery[:3_500], 9, allowed=left))


def test_a_large_k_is_never_answered_short(fast: CodeIndex, gallery: np.ndarray, queries: np.ndarray) -> None:
    distances, positions = fast.search(queries[:4], len(gallery))
    np.testing.assert_array_equal(np.sort(positions, axis=1), np.tile(np.arange(len(gallery)), (4, 1)))
    np.testing.assert_array_equal(distances, nearest_codes(queries[:4], gallery, len(gallery))[0])


def test_stored_codes_stand_in_for_queries_without_counting_themselves() -> None:
    # Unrelated codes have no neighbours worth the name: a row that counted itself would claim a tenth for nothing.
    index = CodeIndex(64)
    index.add(np.random.default_rng(0).integers(0, 256, (4_000, 8), dtype=np.uint8))
    recall = index.speed_up(recall=0.05)
    asked = np.random.default_rng(1).integers(0, 256, (400, 8), dtype=np.uint8)
    truth = nearest_codes(asked, index.codes, 10)[0]
    assert abs((index.search(asked, 10)[0] <= truth[:, -1:]).mean() - recall) < 0.05


def test_an_index_survives_its_file(gallery: np.ndarray, queries: np.ndarray, tmp_path: Path) -> None:
    index = CodeIndex(61)
    index.add(clustered_codes(800, 61, 3))
    index.save(tmp_path / "folder" / "codes.safetensors")
    index.remove([3, 4, 799])
    index.save(tmp_path / "folder" / "codes.safetensors")
    again = CodeIndex.load(tmp_path / "folder" / "codes.safetensors")
    assert (again.n_bits, len(again)) == (61, 797)
    asked = clustered_codes(5, 61, 4)
    assert_same(again.search(asked, 9), index.search(asked, 9))
    again.add(asked)
    assert again.search(asked, 1)[0].max() == 0
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["codes.safetensors"]


def test_a_file_that_holds_no_codes_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "codes.safetensors"
    with pytest.raises(MissingDataError, match="no file of codes"):
        CodeIndex.load(path)
    path.write_bytes(b"not a file of arrays")
    with pytest.raises(ModelFileError, match="not a whole safetensors file"):
        CodeIndex.load(path)
    codes = {"codes": np.zeros((3, 2), dtype=np.uint8)}
    header = {"format": "diptych-codes", "version": "1", "n_bits": "16"}
    wrong = [
        (codes, {}, "holds no codes of Diptych"),
        (codes, {**header, "version": "9"}, "version 9"),
        (codes, {**header, "n_bits": "40"}, "packed codes of 40 bits"),
        (codes, {**header, "n_bits": "x"}, "packed codes of x bits"),
        ({"codes": np.zeros((3, 2))}, header, "packed codes"),
        ({"points": codes["codes"]}, header, "packed codes"),
        ({**codes, "removed": np.zeros(2, dtype=bool)}, header, "another number of codes"),
    ]
    for arrays, labels, message in wrong:
        save_file(arrays, path, metadata=labels)
        with pytest.raises(ModelFileError, match=message):
            CodeIndex.load(path)
    CodeIndex(16).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match="save the codes again"):
        CodeIndex.load(path)


def test_wrong_use_is_explained(gallery: np.ndarray) -> None:
    index = CodeIndex(3)
    with pytest.raises(InvalidInputError, match="pack them with pack_signs"):
        index.add(np.array([[0b00000111]], dtype=np.uint8))
    index.add(np.array([[0b11100000]], dtype=np.uint8))
    with pytest.raises(InvalidInputError, match="positions lie in 0 … 0"):
        index.remove([1])
    with pytest.raises(InvalidInputError, match="one width"):
        index.search(gallery[:1], 1)
    with pytest.raises(InvalidInputError, match="k must be at least 1"):
        index.search(index.codes, 0)
    with pytest.raises(InvalidInputError, match="one truth value per code"):
        index.search(index.codes, 1, np.ones(4, dtype=bool))
    with pytest.raises(InvalidInputError, match="recall"):
        index.speed_up(recall=0.0)
    with pytest.raises(InvalidInputError, match="no codes to index"):
        CodeIndex(8).speed_up()
    with pytest.raises(InvalidInputError, match="n_bits"):
        CodeIndex(0)
    with pytest.raises(ValueError, match="read-only"):
        index.codes[0, 0] = 1


def test_exact_search_needs_no_other_package(
    gallery: np.ndarray, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = nearest_codes(queries, gallery, 6)
    monkeypatch.setitem(sys.modules, "faiss", None)
    index = CodeIndex(64)
    index.add(gallery)
    assert_same(index.search(queries, 6), expected)
    with pytest.raises(MissingPackageError, match=r"pip install 'diptych\[search\]'"):
        index.speed_up()
