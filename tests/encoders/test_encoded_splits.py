from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

from diptych.data import DatasetSplits, Pairs, load_dataset
from diptych.data.datasets.scenes import PictureSequence
from diptych.encoders import (
    ColourEdgeHistograms,
    EfficientNetLite,
    Encoder,
    ImageNetLabels,
    JointImageEncoder,
    JointTextEncoder,
    LdaTopics,
    MeanWordVectors,
    SentenceEncoder,
    TfidfTopics,
    encode_splits,
)
from diptych.errors import InvalidInputError


class LengthEncoder(Encoder):
    """Text length minus the mean training length; counts how often it works."""

    transformed = 0

    def __init__(self, *, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, items: Sequence[str]) -> Self:
        self.mean_ = float(np.mean([len(item) for item in items]))
        return self

    def transform(self, items: Sequence[str]) -> np.ndarray:
        type(self).transformed += len(items)
        return np.array([[(len(item) - self.mean_) * self.scale] for item in items])


@pytest.fixture
def splits() -> DatasetSplits:
    train = Pairs(np.eye(3), ["a", "bbb", "ccccc"])
    test = Pairs(np.eye(3)[:2], ["dd", "e" * 100], ids=["x", "y"])
    return DatasetSplits(train=train, test=test, name="tiny")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _count_from_zero() -> None:
    LengthEncoder.transformed = 0


def test_encoders_learn_from_the_training_part_only(splits: DatasetSplits) -> None:
    given = LengthEncoder()
    encoded = encode_splits(splits, text_encoder=given, cache=False)
    assert encoded.train.texts[:, 0].tolist() == [-2, 0, 2]
    assert encoded.test.texts[:, 0].tolist() == [-1, 97]
    assert not hasattr(given, "mean_")
    assert encoded.train.images is not None
    assert encoded.name == "tiny"


def test_features_pass_through_unchanged(splits: DatasetSplits) -> None:
    encoded = encode_splits(splits, text_encoder=LengthEncoder(), cache=False)
    again = encode_splits(encoded, text_encoder=LengthEncoder(scale=5), cache=False)
    assert again is encoded


def test_the_second_time_comes_from_the_cache(splits: DatasetSplits, cache: Path) -> None:
    first = encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    assert LengthEncoder.transformed == 5
    second = encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    assert LengthEncoder.transformed == 5
    for part in ("train", "test"):
        np.testing.assert_array_equal(first.parts[part].texts, second.parts[part].texts)
        assert first.parts[part].texts.dtype == second.parts[part].texts.dtype
    assert [path.suffix for path in (cache / "matrices").iterdir()] == [".safetensors"]


Change = Callable[[DatasetSplits], DatasetSplits]


@pytest.mark.parametrize(
    "encoder",
    [
        ColourEdgeHistograms(),
        EfficientNetLite(),
        ImageNetLabels(),
        JointImageEncoder(folder="clip"),
        JointTextEncoder(folder="clip"),
        MeanWordVectors(),
        SentenceEncoder(),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_encoders_that_come_ready_made_say_that_they_learn_nothing(encoder: Encoder) -> None:
    assert not encoder.learns


def test_sentences_are_kept_row_by_row(splits: DatasetSplits, cache: Path) -> None:
    encode_splits(splits, text_encoder=SentenceEncoder(n_threads=1), cache=cache)
    assert len(list((cache / "features").glob("SentenceEncoder-*.sqlite"))) == 1


def other_texts(splits: DatasetSplits) -> DatasetSplits:
    return replace(splits, train=replace(splits.train, texts=("a", "bbb", "cccc")))


def other_ids(splits: DatasetSplits) -> DatasetSplits:
    return replace(splits, train=replace(splits.train, text_ids=["1", "2", "3"]))


def other_options(splits: DatasetSplits) -> DatasetSplits:
    return replace(splits, options={"seed": 1})


def other_name(splits: DatasetSplits) -> DatasetSplits:
    return replace(splits, name="other")


@pytest.mark.parametrize("change", [other_texts, other_ids, other_options, other_name])
def test_whatever_shapes_the_features_changes_the_key(splits: DatasetSplits, cache: Path, change: Change) -> None:
    encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    encode_splits(change(splits), text_encoder=LengthEncoder(), cache=cache)
    assert LengthEncoder.transformed == 10


def test_other_parameters_change_the_key(splits: DatasetSplits, cache: Path) -> None:
    encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    scaled = encode_splits(splits, text_encoder=LengthEncoder(scale=2), cache=cache)
    assert scaled.train.texts[:, 0].tolist() == [-4, 0, 4]


@pytest.mark.parametrize("content", [b"", b"damaged", b"\xff" * 400])
def test_a_damaged_file_is_made_again(splits: DatasetSplits, cache: Path, content: bytes) -> None:
    expected = encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    (path,) = (cache / "matrices").iterdir()
    path.write_bytes(content)
    again = encode_splits(splits, text_encoder=LengthEncoder(), cache=cache)
    np.testing.assert_array_equal(again.test.texts, expected.test.texts)
    assert load_file(path)


def test_a_folder_that_cannot_be_written_costs_a_warning(splits: DatasetSplits, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.warns(UserWarning, match="pass cache=False"):
        encoded = encode_splits(splits, text_encoder=LengthEncoder(), cache=blocked)
    assert encoded.train.texts.shape == (3, 1)


@pytest.mark.parametrize("form", [Path, str])
def test_a_replaced_photograph_is_noticed(form: type, tmp_path: Path, cache: Path) -> None:
    def photograph(shade: int, name: str) -> Path:
        Image.new("RGB", (8, 8), (shade, 0, 0)).save(tmp_path / name)
        return tmp_path / name

    paths = [form(photograph(shade, f"{shade}.png")) for shade in (10, 250)]
    splits = DatasetSplits(train=Pairs(paths, np.eye(2)), test=Pairs(paths[:1], np.eye(1)))
    encoder = ColourEdgeHistograms(size=8, levels=(1,))
    before = encode_splits(splits, image_encoder=encoder, cache=cache).test.images
    os.utime(photograph(128, "10.png"), ns=(1, 1))
    after = encode_splits(splits, image_encoder=encoder, cache=cache).test.images
    assert not np.array_equal(before, after)


def test_another_lazy_world_with_the_same_ids_is_noticed(cache: Path) -> None:
    def features(seed: int) -> np.ndarray:
        pairs = Pairs(PictureSequence(20, seed=seed, size=32), np.ones((20, 1)))
        splits = DatasetSplits(train=pairs, test=pairs)
        return encode_splits(splits, image_encoder=ColourEdgeHistograms(size=16), cache=cache).test.images

    assert not np.array_equal(features(0), features(1))
    assert len(list((cache / "matrices").iterdir())) == 2
    np.testing.assert_array_equal(features(0), features(0))
    assert len(list((cache / "matrices").iterdir())) == 2


def test_a_missing_photograph_is_named(cache: Path) -> None:
    pairs = Pairs(["nowhere.jpg"], np.eye(1))
    with pytest.raises(InvalidInputError, match=r"nowhere\.jpg does not exist"):
        encode_splits(DatasetSplits(train=pairs, test=pairs), cache=cache)


def test_the_default_cache_is_in_the_users_cache_folder(
    splits: DatasetSplits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encode_splits(splits, text_encoder=LengthEncoder())
    assert len(list((tmp_path / "diptych" / "matrices").iterdir())) == 1


def test_scenes_with_the_default_encoders() -> None:
    raw = load_dataset("scenes", n_train=30, n_test=10, n_dev=5, size=32)
    encoded = encode_splits(raw, cache=False)
    for part, pairs in encoded.parts.items():
        assert pairs.has_image_features
        assert pairs.has_text_features
        assert pairs.owners.tolist() == raw.parts[part].owners.tolist()
        images, texts, labels = pairs.aligned()
        assert len(images) == len(texts) == len(labels) == pairs.n_texts
    np.testing.assert_array_equal(encoded.dev.images, ColourEdgeHistograms().transform(raw.dev.images))


def accuracy(splits: DatasetSplits, side: str) -> float:
    train, test = getattr(splits.train, side), getattr(splits.test, side)
    classifier = LogisticRegression(C=1, max_iter=300).fit(train, splits.train.labels)
    return float(classifier.score(test, splits.test.labels))


@pytest.mark.data("pascal_sentence")
def test_pascal_sentence_classes_are_found_far_above_chance() -> None:
    """Twenty equal classes: chance is 0.05."""
    raw = load_dataset("pascal_sentence", captions="join")
    splits = encode_splits(raw, image_encoder=ColourEdgeHistograms(size=64), cache=False)
    assert accuracy(splits, "images") > 0.13
    assert accuracy(splits, "texts") > 0.65
    seen = replace(
        raw,
        train=raw.train.with_features(images=splits.train.images),
        test=raw.test.with_features(images=splits.test.images),
    )
    topics = encode_splits(seen, text_encoder=LdaTopics(max_iter=6), cache=False)
    assert accuracy(topics, "texts") > 0.4


def test_text_encoders_do_not_see_test_words() -> None:
    raw = load_dataset("scenes", n_train=20, n_test=20, size=32)
    secret = replace(raw.test, texts=tuple(f"{text} zyzzyva zyzzyva" for text in raw.test.texts))
    plain, changed = (
        encode_splits(replace(raw, test=test), ColourEdgeHistograms(size=8), TfidfTopics(), cache=False)
        for test in (raw.test, secret)
    )
    np.testing.assert_array_equal(plain.train.texts, changed.train.texts)
    np.testing.assert_array_equal(plain.test.texts, changed.test.texts)
