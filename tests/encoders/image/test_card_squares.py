"""Squares that a graphics card cuts are Pillow's; here the processor computes what the card would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diptych.collection.changes.file_facts import FileRequest, file_facts, hashed_file
from diptych.encoders import EfficientNetLite
from diptych.encoders.image import image_encoder
from diptych.encoders.image.card_squares import UncutGraph, resizing
from diptych.encoders.image.reading_once import Square
from diptych.encoders.networks.onnx_network import Network


def photograph(size: tuple[int, int], seed: int) -> np.ndarray:
    """Return noise over a few large patches: edges, and bytes that resizing takes below 0 and above 255."""
    rng = np.random.default_rng(seed)
    patches = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)).resize(size, Image.Resampling.NEAREST)
    return np.clip(np.asarray(patches) + rng.normal(scale=20, size=(size[1], size[0], 3)), 0, 255).astype(np.uint8)


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 200), st.integers(20, 200), st.integers(8, 64), st.sampled_from(["whole", "centre"]))
def test_two_products_resize_as_pillow_does(width: int, height: int, side: int, crop) -> None:
    # Some versions of Pillow make the columns of high pictures first, and round them first.
    height = min(height, width)
    square, pixels = Square(side, crop), photograph((width, height), width)
    across, down = resizing(square, height, width)
    rows = np.clip(np.floor(np.einsum("hwc,ws->hsc", pixels.astype(np.float64), across) + 0.5), 0, 255)
    found = np.clip(np.floor(np.einsum("sh,hwc->swc", down, rows) + 0.5), 0, 255)
    if (width, height) == (side, side):
        np.testing.assert_array_equal(found, pixels)
    else:
        # A number that is half a byte but for its last bits may be rounded either way.
        difference = np.abs(found - square.cut(pixels))
        assert difference.max() <= 1
        assert np.mean(difference > 0) < 0.01


def test_the_network_is_given_those_products(tmp_path: Path) -> None:
    with UncutGraph(tmp_path) as graph:
        graph.output("features", graph.centred_pixels(32, (1.0, 2.0, 3.0)), ("items", 3, 32, 32))
    square, pixels = Square(32), photograph((90, 50), 0)
    across, down = resizing(square, 50, 90)
    inputs = {"pixels": pixels[None], "across": across, "down": down}
    found = Network(tmp_path / "network.onnx").run("features", inputs)[0].transpose(1, 2, 0) + np.array([1, 2, 3])
    difference = np.abs(found - square.cut(pixels))
    assert difference.max() <= 1
    assert np.mean(difference > 0) < 0.01


@pytest.mark.parametrize(("mirror", "precision"), [(False, None), (True, None), (False, "float16")])
def test_features_are_those_of_squares_that_the_processor_cuts(
    mirror: bool, precision: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for path, size in zip(paths, [(300, 260), (260, 300), (300, 260), (224, 224)], strict=True):
        Image.fromarray(photograph(size, size[0])).save(path)
    encoder = EfficientNetLite(network="lite0", mirror=mirror, precision=precision)
    expected = encoder.transform(paths)
    monkeypatch.setattr(image_encoder, "uses_card", lambda: True)
    assert encoder.cuts_on_card
    assert not EfficientNetLite(network="lite0", precision="int8").cuts_on_card
    facts = [file_facts(FileRequest(path, squares=(encoder.square,), uncut=True)) for path in paths]
    assert [fact.squares[encoder.square].shape[0] for fact in facts] == [260, 300, 260, 224]
    files = [hashed_file(path, path.stat(), fact) for path, fact in zip(paths, facts, strict=True)]
    for given_to_card in (files, paths):
        found = encoder.transform(given_to_card)
        cosines = (found * expected).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
        assert cosines.min() > 0.9999
