from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.base import clone

from diptych.encoders import ColourEdgeHistograms, ImageEncoder, read_picture, thumbnail
from diptych.errors import InvalidInputError, MissingPackageError


class MeanColour(ImageEncoder):
    """The smallest image encoder: it remembers how it was called, to see how the work was shared."""

    def __init__(self, *, batch_size: int = 4, n_threads: int | None = 2) -> None:
        self.batch_size = batch_size
        self.n_threads = n_threads
        self._batches: list[int] = []

    @property
    def n_features(self) -> int:
        return 3

    @property
    def reading_side(self) -> int:
        return 8

    def prepare(self, picture: Any) -> np.ndarray:
        return self.read(picture).mean(axis=(0, 1))

    def encode_prepared(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        self._batches.append(len(prepared))
        return np.stack(prepared)


class CountedPictures(Sequence[np.ndarray]):
    """A lazy sequence that knows how many of its items were asked for, and by whom."""

    def __init__(self, length: int, bad: frozenset[int] = frozenset()) -> None:
        self.length, self.bad = length, bad
        self.fetched: list[int] = []
        self.fetched_by: set[str] = set()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, row: Any) -> np.ndarray:
        self.fetched.append(row)
        self.fetched_by.add(threading.current_thread().name)
        if row in self.bad:
            raise InvalidInputError(f"picture {row} is bad")
        return np.full((4, 4, 3), row % 256, dtype=np.uint8)

    def __iter__(self) -> Iterator[np.ndarray]:
        raise AssertionError("a lazy sequence was listed whole")


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 3), st.sets(st.integers(0, 39)))
def test_a_stream_covers_every_row_once_and_in_order(length: int, batch: int, threads: int, bad: set[int]) -> None:
    items = CountedPictures(length, frozenset(bad))
    rows, failures = [], {}
    for part in MeanColour(batch_size=batch, n_threads=threads).stream(items):
        assert len(part.rows) + len(part.failures) <= batch
        assert part.features.shape == (len(part.rows), 3)
        assert part.features.dtype == np.float32
        assert part.features[:, 0].tolist() == [row % 256 for row in part.rows]
        rows += part.rows
        failures.update(part.failures)
    assert rows == [row for row in range(length) if row not in bad]
    assert failures == {row: f"picture {row} is bad" for row in bad if row < length}


def test_only_a_few_batches_are_fetched_ahead() -> None:
    items = CountedPictures(1000)
    stream = MeanColour(batch_size=5).stream(items)
    for done, _ in enumerate(stream, start=1):
        assert len(items.fetched) <= 5 * (done + 3)
        if done == 10:
            break
    stream.close()
    assert len(items.fetched) <= 5 * 13
    assert threading.main_thread().name not in items.fetched_by


def test_decoding_overlaps_with_encoding() -> None:
    """The first batch refuses to be encoded until a picture of the next one is being prepared."""
    ahead = threading.Event()

    class Patient(MeanColour):
        def prepare(self, picture: Any) -> np.ndarray:
            if picture[0, 0, 0] >= 4:
                ahead.set()
            return super().prepare(picture)

        def encode_prepared(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
            assert ahead.wait(timeout=60), "nothing was prepared while a batch was being encoded"
            return super().encode_prepared(prepared)

    assert Patient(n_threads=1).transform(CountedPictures(12)).shape == (12, 3)


def test_speed_parameters_change_nothing() -> None:
    items = CountedPictures(11)
    expected = MeanColour(batch_size=1, n_threads=1).transform(items)
    for batch, threads in ((2, 3), (11, None), (100, 2)):
        np.testing.assert_array_equal(MeanColour(batch_size=batch, n_threads=threads).transform(items), expected)
    encoder = MeanColour(batch_size=4)
    encoder.transform(items)
    assert encoder._batches == [4, 4, 3]


def test_the_first_failure_is_raised_and_the_rest_left_alone() -> None:
    items = CountedPictures(1000, frozenset({7, 9, 500}))
    with pytest.raises(InvalidInputError, match="picture 7 is bad"):
        MeanColour(batch_size=4).transform(items)
    assert len(items.fetched) < 30


def test_other_errors_are_not_taken_for_bad_pictures() -> None:
    class Unfinished(MeanColour):
        def prepare(self, picture: Any) -> np.ndarray:
            raise MissingPackageError("decoding", "nothing")

    with pytest.raises(MissingPackageError):
        list(Unfinished().stream(CountedPictures(3)))


@pytest.mark.parametrize(
    ("items", "parameters", "message"),
    [
        ([], {}, "no pictures"),
        ("photo.jpg", {}, "pass it in a list"),
        (Path("photo.jpg"), {}, "pass it in a list"),
        (b"\xff\xd8", {}, "pass it in a list"),
        ([np.zeros((2, 2, 3), dtype=np.uint8)], {"batch_size": 0}, "batch_size must be at least 1"),
        ([np.zeros((2, 2, 3), dtype=np.uint8)], {"n_threads": 0}, "n_threads must be at least 1"),
    ],
)
def test_what_cannot_be_encoded_is_refused(items: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MeanColour(**parameters).transform(items)
    # A stream complains when it is asked for, not when it is first used.
    with pytest.raises(InvalidInputError, match=message):
        MeanColour(**parameters).stream(items)


def test_a_file_read_once_serves_twice(tmp_path: Path) -> None:
    """The pixels an encoder reads give it the same input as the file itself, and a thumbnail too."""
    gradient = np.add.outer(np.arange(700), np.arange(1100)).astype(np.uint8)
    Image.fromarray(np.dstack([gradient, gradient.T[:700, :700].repeat(2, axis=1)[:, :1100], gradient])).save(
        tmp_path / "photo.jpg"
    )
    encoder = ColourEdgeHistograms(size=48)
    pixels = encoder.read(tmp_path / "photo.jpg")
    assert min(pixels.shape[:2]) < 2 * encoder.reading_side
    np.testing.assert_array_equal(encoder.prepare(pixels), encoder.prepare(tmp_path / "photo.jpg"))
    np.testing.assert_array_equal(encoder.read(pixels), pixels)
    assert max(read_picture(thumbnail(pixels, longest_side=64)).shape) == 64


def test_runtime_state_is_neither_copied_nor_part_of_the_identity() -> None:
    encoder = MeanColour()
    before = encoder.fingerprint
    encoder._session = threading.Lock()
    assert encoder.fingerprint == before
    assert clone(encoder).fingerprint == before
    assert not hasattr(copy.deepcopy(encoder), "_session")
