from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from diptych.encoders.joint.preparation import PicturePreparation
from diptych.errors import ModelFileError

FIXTURES = Path(__file__).parent / "fixtures"
CONFIGS: dict[str, dict[str, Any]] = json.loads((FIXTURES / "preparations.json").read_text())


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_pictures_are_prepared_as_transformers_does(name: str) -> None:
    preparation = PicturePreparation.from_config(CONFIGS[name])
    expected = load_file(FIXTURES / "preparations.safetensors")
    for picture, pixels in load_file(FIXTURES / "pictures.safetensors").items():
        # Versions of Pillow round a resized grey level up or down; one level is 1/255 of the range before scaling.
        level = 1 / 255 / min(CONFIGS[name].get("image_std", [1.0]))
        np.testing.assert_allclose(preparation.apply(pixels), expected[f"{name}.{picture}"], atol=level + 1e-5)


def test_one_number_is_the_shortest_side_where_pictures_are_cropped_and_both_sides_where_not() -> None:
    means = {"image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    assert PicturePreparation.from_config({"size": 8, "do_center_crop": True, "crop_size": 6, **means}).size == 8
    assert PicturePreparation.from_config({"size": 8, **means}).size == (8, 8)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20), st.integers(1, 20))
def test_every_picture_gets_the_size_that_the_network_takes(height: int, width: int, shortest: int, crop: int) -> None:
    preparation = PicturePreparation(size=shortest, crop=(crop, crop + 1))
    prepared = preparation.apply(np.full((height, width, 3), 255, dtype=np.uint8))
    assert prepared.shape[1:] == preparation.output_size == (crop, crop + 1)
    # White stays white whatever the filter, and beyond the picture there is black.
    assert set(np.unique(prepared)) <= {0.0, 1.0}
    assert preparation.reading_side >= 2 * shortest


@pytest.mark.parametrize("config", [{}, {"size": {"width": 3}}, {"size": 8, "do_center_crop": True}, {"size": 8}])
def test_an_incomplete_configuration_is_one_clear_error(config: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match=r"copy preprocessor_config\.json again"):
        PicturePreparation.from_config(config)
