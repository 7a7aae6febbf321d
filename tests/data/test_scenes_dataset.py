from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from diptych.data import load_dataset
from diptych.data.datasets.scenes import CLASS_NAMES, make_scene
from diptych.errors import InvalidInputError, UnknownNameError


def test_parts_are_disjoint_and_of_the_asked_size() -> None:
    splits = load_dataset("scenes", n_train=30, n_test=20, n_dev=10, size=32)
    assert [pairs.n_images for pairs in (splits.train, splits.test, splits.dev)] == [30, 20, 10]
    ids = [*splits.train.ids, *splits.test.ids, *splits.dev.ids]
    assert len(set(ids)) == 60
    assert splits.train.n_texts == 150
    assert splits.test.class_names == CLASS_NAMES


def test_test_scenes_do_not_depend_on_the_number_of_training_scenes() -> None:
    few, many = (load_dataset("scenes", n_train=n, n_test=5, size=32).test for n in (1, 40))
    assert few.texts == many.texts
    assert (few.images[4] == many.images[4]).all()


def test_pictures_captions_and_labels_belong_to_one_scene() -> None:
    train = load_dataset("scenes", n_train=12, n_test=1, seed=3, size=32).train.select([7, 2])
    for row, number in enumerate([7, 2]):
        scene = make_scene(number, 3)
        assert train.ids[row] == f"scene-{number}"
        assert train.labels[row] == scene.label
        assert train.texts[5 * row : 5 * row + 5] == scene.captions
        assert (train.images[row] == scene.render(32)).all()


def test_kinds_are_an_indicator() -> None:
    train = load_dataset("scenes", n_train=15, n_test=1, size=32, label="kinds").train
    assert train.is_multi_label
    for number, row in enumerate(train.labels):
        kinds = {name for name, present in zip(CLASS_NAMES, row, strict=True) if present}
        assert kinds == set(make_scene(number).kinds)


def test_every_class_occurs() -> None:
    counts = Counter(load_dataset("scenes", n_train=400, n_test=1, size=32).train.labels.tolist())
    assert set(counts) == set(CLASS_NAMES)
    assert min(counts.values()) > 400 / len(CLASS_NAMES) / 3


def test_captions_option() -> None:
    options = {"n_train": 3, "n_test": 2, "size": 32}
    everything = load_dataset("scenes", **options).train
    assert load_dataset("scenes", captions=1, **options).train.texts == everything.texts[1::5]
    joined = load_dataset("scenes", captions="join", **options).train
    assert joined.texts[0] == " ".join(everything.texts[:5])
    with pytest.raises(InvalidInputError, match="'all', 'join'"):
        load_dataset("scenes", captions="some", **options)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="n_test"):
        load_dataset("scenes", n_test=0)
    with pytest.raises(UnknownNameError, match="did you mean 'kinds'"):
        load_dataset("scenes", label="kind")


def test_seeds_make_other_worlds() -> None:
    first, second = (load_dataset("scenes", n_train=5, n_test=1, seed=seed, size=32).train for seed in (0, 1))
    assert first.texts != second.texts
    assert not np.array_equal(first.images[0], second.images[0])
