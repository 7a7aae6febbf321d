from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from PIL import Image

from diptych.encoders import ColourEdgeHistograms, Concatenated, Encoder, FeatureCache, TfidfTopics
from diptych.encoders.encoder import EncodedBatch
from diptych.encoders.feature_cache import FeatureFile
from diptych.errors import InvalidInputError


class LengthEncoder(Encoder):
    """The length of a text; counts how many it encodes, and may stop at one."""

    learns = False
    transformed = 0

    def __init__(self, *, stop_at: str | None = None) -> None:
        self.stop_at = stop_at

    speed_parameters = ("stop_at",)

    def fit(self, items: Sequence[str]) -> Self:
        return self

    def transform(self, items: Sequence[str]) -> np.ndarray:
        if self.stop_at in items:
            raise KeyboardInterrupt
        type(self).transformed += len(items)
        return np.array([[len(item), 1.5] for item in items], dtype=np.float32)


@pytest.fixture(autouse=True)
def _count_from_zero() -> None:
    LengthEncoder.transformed = 0


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(path)
    return paths


def test_rows_equal_those_of_the_encoder_and_come_from_disk_the_second_time(tmp_path: Path) -> None:
    texts = [f"{'word ' * (number % 7)}{number}" for number in range(2500)]
    cache = FeatureCache(tmp_path)
    expected = LengthEncoder().transform(texts)
    LengthEncoder.transformed = 0
    np.testing.assert_array_equal(cache.encode(LengthEncoder(), texts), expected)
    assert LengthEncoder.transformed == 2500
    backwards = cache.encode(LengthEncoder(), texts[::-1])
    np.testing.assert_array_equal(backwards, expected[::-1])
    assert backwards.dtype == expected.dtype
    assert LengthEncoder.transformed == 2500


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(1000)]
    cache = FeatureCache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.encode(LengthEncoder(stop_at="text 900"), texts)
    done = LengthEncoder.transformed
    assert 512 <= done < 1000
    cache.encode(LengthEncoder(), texts)
    assert LengthEncoder.transformed == 1000


def test_a_renamed_picture_is_known_and_a_changed_one_is_not(tmp_path: Path, pictures: list[Path]) -> None:
    cache, encoder = FeatureCache(tmp_path / "cache"), ColourEdgeHistograms(size=8, levels=(1,))
    before = cache.encode(encoder, pictures)
    shutil.move(pictures[0], tmp_path / "renamed.png")
    shutil.copy(pictures[2], pictures[1])
    after = cache.encode(encoder, [tmp_path / "renamed.png", *pictures[1:]])
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[2])
    assert not np.array_equal(before[1], before[2])


def test_other_parameters_never_share_rows(tmp_path: Path, pictures: list[Path]) -> None:
    cache = FeatureCache(tmp_path / "cache")
    small = cache.encode(ColourEdgeHistograms(size=8, levels=(1,)), pictures)
    large = cache.encode(ColourEdgeHistograms(size=8, levels=(1, 2)), pictures)
    assert small.shape[1] != large.shape[1]


def test_what_was_learned_is_part_of_the_name(tmp_path: Path) -> None:
    cache, texts = FeatureCache(tmp_path), ["a red boat", "a small cat", "a small boat"]
    first = TfidfTopics(n_components=1, min_documents=1).fit(texts)
    second = TfidfTopics(n_components=1, min_documents=1).fit(texts[:2])
    np.testing.assert_allclose(cache.encode(first, texts), first.transform(texts))
    np.testing.assert_allclose(cache.encode(second, texts), second.transform(texts))


def test_an_unreadable_picture_is_reported_beside_the_others(tmp_path: Path, pictures: list[Path]) -> None:
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    items = [pictures[0], tmp_path / "broken.png", pictures[1], tmp_path / "absent.png"]
    cache, encoder = FeatureCache(tmp_path / "cache"), ColourEdgeHistograms(size=8, levels=(1,))
    for _ in range(2):
        batches = list(cache.stream(encoder, items))
        rows, failures = gathered(batches)
        assert sorted(rows) == [0, 2]
        assert sorted(failures) == [1, 3]
        assert "broken.png" in failures[1]
    with pytest.raises(InvalidInputError, match=r"broken\.png"):
        cache.encode(encoder, items)


def test_parts_of_a_concatenation_are_kept_one_by_one(tmp_path: Path, pictures: list[Path]) -> None:
    parts = (ColourEdgeHistograms(size=8, levels=(1,)), ColourEdgeHistograms(size=16, levels=(1,)))
    joined = Concatenated(encoders=parts, weights=(1.0, 0.5))
    cache = FeatureCache(tmp_path / "cache")
    np.testing.assert_allclose(cache.encode(joined, pictures), joined.transform(pictures), rtol=1e-6)
    assert len(list((tmp_path / "cache").glob("ColourEdgeHistograms-*.sqlite"))) == 2
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    rows, failures = gathered(list(cache.stream(joined, [tmp_path / "broken.png", pictures[3]])))
    assert rows == [1]
    assert list(failures) == [0]


@pytest.mark.parametrize("content", [b"damaged" * 500, b"\xff" * 4096])
def test_a_damaged_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    cache = FeatureCache(tmp_path)
    expected = cache.encode(LengthEncoder(), ["a", "bb"])
    (path,) = tmp_path.glob("*.sqlite")
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged"):
        np.testing.assert_array_equal(cache.encode(LengthEncoder(), ["a", "bb"]), expected)


def test_a_damaged_page_costs_a_warning(tmp_path: Path) -> None:
    cache, texts = FeatureCache(tmp_path), [f"text {number}" for number in range(2000)]
    expected = cache.encode(LengthEncoder(), texts)
    (path,) = tmp_path.glob("*.sqlite")
    content = bytearray(path.read_bytes())
    # The first page is sound, so that the file opens; all others are not.
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged"):
        np.testing.assert_array_equal(cache.encode(LengthEncoder(), texts), expected)
    np.testing.assert_array_equal(cache.encode(LengthEncoder(), texts), expected)
    LengthEncoder.transformed = 0
    np.testing.assert_array_equal(cache.encode(LengthEncoder(), texts), expected)
    assert LengthEncoder.transformed == 0


class ReplacingEncoder(ColourEdgeHistograms):
    """Puts another picture in the place of the one it is about to read, once."""

    replacement: Path | None = None

    def prepare(self, picture: Any) -> np.ndarray:
        if type(self).replacement is not None:
            shutil.move(type(self).replacement, picture)
            type(self).replacement = None
        return super().prepare(picture)


def test_a_picture_replaced_while_it_is_encoded_is_not_kept(tmp_path: Path, pictures: list[Path]) -> None:
    cache, encoder = FeatureCache(tmp_path / "cache"), ReplacingEncoder(size=8, levels=(1,), n_threads=1)
    expected = encoder.transform(pictures[:1])
    shutil.copy(pictures[0], tmp_path / "copy.png")
    ReplacingEncoder.replacement = pictures[1]
    assert not np.array_equal(cache.encode(encoder, pictures[:1]), expected)
    assert ReplacingEncoder.replacement is None
    np.testing.assert_array_equal(cache.encode(encoder, [tmp_path / "copy.png"]), expected)


@pytest.mark.parametrize("form", [str, Path])
def test_one_path_instead_of_a_list_is_an_error(tmp_path: Path, pictures: list[Path], form: type) -> None:
    cache, encoder = FeatureCache(tmp_path / "cache"), ColourEdgeHistograms(size=8, levels=(1,))
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        cache.encode(encoder, form(pictures[0]))
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        cache.stream(encoder, form(pictures[0]))


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="not cached"):
        features = FeatureCache(tmp_path / "file").encode(LengthEncoder(), ["a"])
    assert features.shape == (1, 2)


def test_nothing_to_encode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="nothing to encode"):
        FeatureCache(tmp_path).encode(LengthEncoder(), [])


def gathered(batches: Sequence[EncodedBatch] | Iterator[EncodedBatch]) -> tuple[list[int], dict[int, str]]:
    rows: list[int] = []
    failures: dict[int, str] = {}
    for batch in batches:
        rows += batch.rows
        failures |= batch.failures
        assert len(batch.rows) == len(batch.features)
    return rows, failures


def test_a_file_that_another_process_is_setting_up_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "features.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE something (number)")
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO something VALUES (1)")
    release = threading.Timer(0.3, other.execute, ["COMMIT"])
    release.start()
    file = FeatureFile(path)
    release.join()
    file.write({b"key": np.ones(2, dtype=np.float32)})
    assert len(file) == 1
    file.close()
    other.close()
