from __future__ import annotations

import io
import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file
from scipy.special import expit
from sklearn.base import clone

from diptych import Retriever
from diptych.encoders import JointImageEncoder, JointTextEncoder, find_joint_model, open_joint_folder
from diptych.errors import InvalidInputError, ModelFileError

Pixels = NDArray[np.uint8]


def test_features_equal_those_of_the_original(fixtures: Path, pictures: list[Pixels], texts: list[str]) -> None:
    place = str(fixtures / "exported")
    images, words = JointImageEncoder(folder=place), JointTextEncoder(folder=place)
    features = load_file(fixtures / "expected_clip.safetensors")
    np.testing.assert_allclose(images.transform(pictures), features["images"], atol=1e-5)
    np.testing.assert_allclose(words.transform(texts), features["texts"], atol=1e-5)
    assert images.n_features == words.n_features == features["images"].shape[1]


@pytest.mark.parametrize("bias", [None, -10.0])
def test_an_export_says_how_similarities_become_probabilities(
    fixtures: Path, tmp_path: Path, bias: float | None
) -> None:
    facts = {"logit_scale": 20, "logit_bias": bias}
    model = Retriever.joint(edited(fixtures, tmp_path / "model", diptych=facts))
    # A softmax model does not say which cosine is as likely right as wrong: a quarter.
    expected = expit(20 * np.array([0.1, 0.4]) + (-5.0 if bias is None else bias))
    np.testing.assert_allclose(model.probability([0.1, 0.4], "text_to_image"), expected)
    assert open_joint_folder(fixtures / "exported").logit_scale is None


def test_an_item_is_encoded_alone_as_among_others(fixtures: Path, pictures: list[Pixels], texts: list[str]) -> None:
    place = str(fixtures / "exported")
    images, words = JointImageEncoder(folder=place).transform(pictures), JointTextEncoder(folder=place).transform(texts)
    one_by_one = np.vstack([JointImageEncoder(folder=place).transform([picture]) for picture in pictures])
    np.testing.assert_allclose(one_by_one, images, atol=1e-6)
    alone = JointTextEncoder(folder=place, n_threads=1)
    np.testing.assert_allclose(np.vstack([alone.transform([text]) for text in texts]), words, atol=1e-6)
    small = JointTextEncoder(folder=place, batch_size=2)
    np.testing.assert_allclose(small.transform(texts[::-1]), words[::-1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(np.vstack([images, words]), axis=1), 1, atol=1e-6)


def test_a_file_is_encoded_as_its_pixels(fixtures: Path, pictures: list[Pixels], tmp_path: Path) -> None:
    encoder = JointImageEncoder(folder=str(fixtures / "exported"))
    Image.fromarray(pictures[0]).save(tmp_path / "picture.png")
    expected = encoder.prepare(pictures[0])["pixels"]
    np.testing.assert_array_equal(encoder.prepare(tmp_path / "picture.png")["pixels"], expected)
    np.testing.assert_array_equal(encoder.prepare(encoder.read(tmp_path / "picture.png"))["pixels"], expected)


def test_large_photos_are_read_at_full_size_and_larger_ones_change_no_more_than_a_shade(fixtures: Path) -> None:
    encoder = JointImageEncoder(folder=str(fixtures / "exported"))
    side = encoder.model().preparation.output_size[0]
    rng = np.random.default_rng(0)
    for times, change in ((20, 0.0), (40, 2 / 127.5)):
        shape = (times * side, times * side + 70)
        large = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(large).save(file, "JPEG", quality=95)
        exact = encoder.model().preparation.apply(Image.open(file))
        assert (encoder.read(file.getvalue()).shape[:2] == shape) == (times == 20)
        assert np.abs(encoder.prepare(file.getvalue())["pixels"] - exact).max() <= change


def test_transparency_is_forgotten_as_the_libraries_do(fixtures: Path, tmp_path: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (40, 50, 4), dtype=np.uint8)
    encoder = JointImageEncoder(folder=str(fixtures / "exported"))
    Image.fromarray(colours).save(tmp_path / "clear.png")
    opaque = encoder.prepare(np.ascontiguousarray(colours[:, :, :3]))["pixels"]
    np.testing.assert_array_equal(encoder.prepare(tmp_path / "clear.png")["pixels"], opaque)
    np.testing.assert_array_equal(encoder.read(tmp_path / "clear.png"), colours[:, :, :3])


def test_an_unreadable_picture_does_not_stop_the_others(fixtures: Path, pictures: list[Pixels]) -> None:
    encoder = JointImageEncoder(folder=str(fixtures / "exported"), batch_size=2)
    batches = list(encoder.stream([pictures[0], "nowhere.jpg", pictures[1]]))
    assert [row for batch in batches for row in batch.rows] == [0, 2]
    assert list(batches[0].failures) == [1]


@pytest.mark.parametrize("encoder", [JointImageEncoder, JointTextEncoder])
def test_encoders_are_plain_parameters(fixtures: Path, encoder: Any) -> None:
    original = encoder(folder=str(fixtures / "exported"), batch_size=3)
    original.transform([np.zeros((8, 8, 3), dtype=np.uint8)] if encoder is JointImageEncoder else ["a boat"])
    for copy in (clone(original), deepcopy(original)):
        assert copy.get_params() == {"folder": str(fixtures / "exported"), "batch_size": 3, "n_threads": None}
        assert copy.fingerprint == original.fingerprint
    assert not [name for name in vars(original) if name.endswith("_")]


def test_the_fingerprint_follows_the_files_and_not_their_place(fixtures: Path, tmp_path: Path) -> None:
    first = JointTextEncoder(folder=str(fixtures / "exported")).fingerprint
    shutil.copytree(fixtures / "exported", tmp_path / "moved")
    assert JointTextEncoder(folder=str(tmp_path / "moved")).fingerprint == first
    assert JointImageEncoder(folder=str(tmp_path / "moved")).fingerprint != first
    tower = tmp_path / "moved" / "onnx" / "text_model.onnx"
    tower.write_bytes(tower.read_bytes().replace(b"pytorch", b"diptych", 1))
    assert JointTextEncoder(folder=str(tmp_path / "moved")).fingerprint != first


@pytest.mark.parametrize(("items", "message"), [([], "no texts"), ("boat", "one string"), ([1], "text 0 is a int")])
def test_what_is_no_list_of_texts_is_refused(fixtures: Path, items: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        JointTextEncoder(folder=str(fixtures / "exported")).transform(items)


def test_no_pictures_are_refused(fixtures: Path) -> None:
    with pytest.raises(InvalidInputError, match="no pictures"):
        JointImageEncoder(folder=str(fixtures / "exported")).transform([])


@pytest.mark.parametrize("parameters", [{"batch_size": 0}, {"n_threads": 0}])
def test_parameters_are_checked(fixtures: Path, parameters: dict[str, int]) -> None:
    for encoder in (JointImageEncoder, JointTextEncoder):
        with pytest.raises(InvalidInputError, match=next(iter(parameters))):
            encoder(folder=str(fixtures / "exported"), **parameters).fit([])


def test_the_users_model_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIPTYCH_JOINT_MODEL", raising=False)
    assert find_joint_model() is None
    monkeypatch.setenv("DIPTYCH_JOINT_MODEL", str(tmp_path))
    assert find_joint_model() == tmp_path
    monkeypatch.setenv("DIPTYCH_JOINT_MODEL", str(tmp_path / "gone"))
    with pytest.raises(ModelFileError, match=r"DIPTYCH_JOINT_MODEL names .*gone"):
        find_joint_model()


def edited(fixtures: Path, target: Path, **values: Any) -> Path:
    """Copy the model and change its configuration."""
    shutil.copytree(fixtures / "exported", target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **values}))
    return target
