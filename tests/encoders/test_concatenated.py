from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.encoders import ColourEdgeHistograms, Concatenated, TfidfTopics
from diptych.errors import InvalidInputError

TEXTS = ["a red boat", "a small cat", "a small boat"]


def pictures(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (8, 8, 3), dtype=np.uint8) for _ in range(count)]


def colours(**speed: int) -> Concatenated:
    parts = (ColourEdgeHistograms(size=8, levels=(1,), **speed), ColourEdgeHistograms(size=8, levels=(2,)))
    return Concatenated(encoders=parts, weights=(1.0, 0.5))


def topics(n_texts: int, weights: tuple[float, ...] | None = None) -> Concatenated:
    parts = (TfidfTopics(n_components=1, min_documents=1), TfidfTopics(n_components=2, min_documents=1))
    return Concatenated(encoders=parts, weights=weights).fit(TEXTS[:n_texts])


def test_what_shapes_no_features_does_not_shape_the_fingerprint() -> None:
    plain, quick = colours(), colours(n_threads=1, batch_size=3)
    before = plain.fingerprint
    assert quick.fingerprint == before
    assert plain.fit(pictures(2)).fingerprint == quick.fit(pictures(2)).fingerprint == before


def test_what_is_learned_and_the_weights_shape_the_fingerprint() -> None:
    assert topics(3).fingerprint == topics(3).fingerprint
    assert len({topics(3).fingerprint, topics(2).fingerprint, topics(3, (1.0, 2.0)).fingerprint}) == 3


def test_a_stream_covers_every_row_in_order_and_names_what_cannot_be_read(tmp_path: Path) -> None:
    encoder, items = colours(), pictures(300)
    expected = encoder.transform(items)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    rows, failures = [], {}
    for batch in encoder.stream([*items[:7], broken, *items[7:], "absent.png"]):
        places = np.array([row - (row > 7) for row in batch.rows])
        np.testing.assert_allclose(batch.features, expected[places], rtol=1e-6)
        rows += batch.rows
        failures |= batch.failures
    assert rows == [row for row in range(301) if row != 7]
    assert sorted(failures) == [7, 301]
    assert "broken.png" in failures[7]


def test_a_stream_of_nothing_readable_has_only_failures() -> None:
    (batch,) = colours().stream(["absent.png"])
    assert (list(batch.rows), len(batch.features), list(batch.failures)) == ([], 0, [0])


def test_what_cannot_be_streamed_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        colours().stream("1.jpg")
    with pytest.raises(InvalidInputError, match="no pictures"):
        colours().stream([])
    with pytest.raises(InvalidInputError, match="call transform for texts"):
        topics(3).stream(TEXTS)
