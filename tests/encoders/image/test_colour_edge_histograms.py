from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms
from diptych.encoders.image.colour_edge_histograms import _hue_saturation_brightness
from diptych.errors import InvalidInputError

pictures = arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20), st.just(3)))


@given(pictures)
def test_every_histogram_is_non_negative_and_sums_to_one(picture: np.ndarray) -> None:
    encoder = ColourEdgeHistograms(size=12, levels=(1, 2, 3), n_threads=1)
    cells = encoder.transform([picture]).reshape(14, -1)
    colours = encoder.hue_bins * encoder.brightness_bins + encoder.grey_bins
    assert (cells >= 0).all()
    np.testing.assert_allclose(cells[:, :colours].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(cells[:, colours:].sum(axis=1), 1, rtol=1e-5)


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_hue_saturation_and_brightness_are_those_of_the_standard_library(colour: tuple[int, int, int]) -> None:
    found = [float(part[0, 0]) for part in _hue_saturation_brightness(np.array([[colour]]) / 255)]
    assert found == pytest.approx(colorsys.rgb_to_hsv(*(part / 255 for part in colour)), abs=1e-9)


def flat(colour: tuple[int, int, int]) -> np.ndarray:
    return np.broadcast_to(np.array(colour, dtype=np.uint8), (16, 16, 3)).copy()


def test_a_flat_colour_fills_its_bins_and_has_no_edge() -> None:
    encoder = ColourEdgeHistograms(size=16, levels=(1,), hue_bins=6, brightness_bins=2, grey_bins=3, edge_bins=4)
    red, blue, white, grey = encoder.transform(
        [flat((255, 0, 0)), flat((0, 0, 255)), flat((255,) * 3), flat((51,) * 3)]
    )
    assert np.flatnonzero(red).tolist() == [0 * 2 + 1, 12 + 3 + 4]
    assert np.flatnonzero(blue).tolist() == [4 * 2 + 1, 12 + 3 + 4]
    assert np.flatnonzero(white).tolist() == [12 + 2, 12 + 3 + 4]
    np.testing.assert_allclose(grey[12:15], [0.6, 0.4, 0.0], atol=1e-6)


def test_a_hue_between_two_bins_is_shared_around_the_circle() -> None:
    """Of four bins, red is the first and 270° the last; 292.5° and 337.5° lie between them."""
    encoder = ColourEdgeHistograms(size=4, levels=(1,), hue_bins=4, brightness_bins=1, grey_bins=1)
    for hue, last, first in ((292.5, 0.75, 0.25), (337.5, 0.25, 0.75)):
        colour = tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue / 360, 1, 1))
        np.testing.assert_allclose(encoder.transform([flat(colour)])[0, :4], [first, 0, 0, last], atol=0.01)


@pytest.mark.parametrize(("angle", "bin_of_edge"), [(0, 0), (90, 2)])
def test_stripes_vote_for_their_direction(angle: int, bin_of_edge: int) -> None:
    stripes = np.zeros((16, 16), dtype=np.uint8)
    stripes[:, (np.arange(16) // 4) % 2 == 1] = 255
    encoder = ColourEdgeHistograms(size=16, levels=(1,), edge_bins=4)
    edges = encoder.transform([stripes if angle == 0 else stripes.T])[0, -5:-1]
    assert np.argmax(edges) == bin_of_edge
    assert edges.sum() == pytest.approx(edges[bin_of_edge])


def test_edge_strength_is_half_at_its_scale() -> None:
    ramp = np.broadcast_to(np.arange(0, 160, 10, dtype=np.uint8), (16, 16))
    encoder = ColourEdgeHistograms(size=16, levels=(4,), edge_bins=4, edge_scale=10 / 255)
    inner_cell = encoder.transform([ramp]).reshape(4, 4, -1)[1, 1]
    assert inner_cell[-1] == pytest.approx(0.5, abs=1e-3)


def test_cells_see_their_own_part_only() -> None:
    picture = flat((255, 0, 0))
    picture[8:, 8:] = (0, 0, 255)
    encoder = ColourEdgeHistograms(size=16, levels=(2,))
    cells = encoder.transform([picture]).reshape(4, -1)
    colours = encoder.hue_bins * encoder.brightness_bins + encoder.grey_bins
    np.testing.assert_array_equal(
        cells[0, :colours], encoder.transform([flat((255, 0, 0))]).reshape(4, -1)[0, :colours]
    )
    np.testing.assert_array_equal(
        cells[3, :colours], encoder.transform([flat((0, 0, 255))]).reshape(4, -1)[0, :colours]
    )


def test_one_picture_alone_equals_the_row_of_a_batch() -> None:
    batch = list(np.random.default_rng(0).integers(0, 256, (6, 20, 30, 3), dtype=np.uint8))
    encoder = ColourEdgeHistograms(size=24)
    together = encoder.fit(batch).transform(batch)
    assert together.shape == (6, encoder.n_features)
    assert together.dtype == np.float32
    for row, picture in enumerate(batch):
        np.testing.assert_array_equal(encoder.transform([picture])[0], together[row])
    np.testing.assert_array_equal(clone(encoder).set_params(n_threads=3).transform(batch), together)
    np.testing.assert_allclose(clone(encoder).set_params(root=True).transform(batch) ** 2, together, atol=1e-6)


def test_identity_is_about_features_not_speed() -> None:
    assert ColourEdgeHistograms(n_threads=1).identity == ColourEdgeHistograms(n_threads=4).identity
    assert ColourEdgeHistograms(size=64).identity != ColourEdgeHistograms().identity


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"levels": ()}, "levels"),
        ({"levels": (1, 200)}, "levels"),
        ({"edge_scale": 0.0}, "edge_scale must be positive"),
        ({"hue_bins": 0}, "hue_bins"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ColourEdgeHistograms(**parameters).fit([])


def test_a_bad_file_among_good_ones_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(InvalidInputError, match=r"bad\.jpg cannot be read"):
        ColourEdgeHistograms(size=16).transform([flat((1, 2, 3)), tmp_path / "bad.jpg", flat((1, 2, 3))])
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        ColourEdgeHistograms().transform("photo.jpg")


def test_scenes_are_recognised_far_above_chance() -> None:
    """Eight classes, so chance is about 0.13; 0.68 was measured."""
    splits = load_dataset("scenes", n_train=120, n_test=60, size=48)
    encoder = ColourEdgeHistograms(size=48)
    classifier = LogisticRegression(C=10, max_iter=300).fit(encoder.transform(splits.train.images), splits.train.labels)
    assert classifier.score(encoder.transform(splits.test.images), splits.test.labels) > 0.5
