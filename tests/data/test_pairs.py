from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data import Pairs, SelectedItems
from diptych.errors import InvalidInputError, UnknownNameError


@st.composite
def captioned_pairs(draw: st.DrawFn) -> Pairs:
    """Pairs whose texts say which image they belong to, with one to four texts per image in any order."""
    n_images = draw(st.integers(2, 12))
    counts = draw(st.lists(st.integers(1, 4), min_size=n_images, max_size=n_images))
    owners = draw(st.permutations([row for row, count in enumerate(counts) for _ in range(count)]))
    return Pairs(
        np.arange(n_images, dtype=np.float64)[:, None] + [[0.0, 100.0]],
        [f"text {position} of {owner}" for position, owner in enumerate(owners)],
        labels=draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n_images, max_size=n_images)),
        ids=[f"image {row}" for row in range(n_images)],
        owners=owners,
        text_ids=[f"id {position}" for position in range(len(owners))],
    )


def owner_named_in(text: str) -> str:
    return "image " + text.rpartition(" ")[2]


def assert_consistent(pairs: Pairs, original: Pairs) -> None:
    """Every text still sits with its image, its label and its id."""
    label_of = dict(zip(original.ids.tolist(), original.labels.tolist(), strict=True))
    text_id_of = dict(zip(original.texts, original.text_ids.tolist(), strict=True))
    for row, image_id in enumerate(pairs.ids.tolist()):
        assert pairs.images[row, 0] == int(image_id.split()[1])
        assert pairs.labels[row] == label_of[image_id]
    for text, owner, label, text_id in zip(
        pairs.texts, pairs.owners.tolist(), pairs.text_labels.tolist(), pairs.text_ids.tolist(), strict=True
    ):
        assert pairs.ids[owner] == owner_named_in(text)
        assert label == label_of[owner_named_in(text)]
        assert text_id == text_id_of[text]


@given(captioned_pairs(), st.randoms(use_true_random=False))
def test_select_keeps_images_texts_labels_and_ids_together(pairs: Pairs, random: Any) -> None:
    rows = random.sample(range(pairs.n_images), random.randint(1, pairs.n_images))
    chosen = pairs.select(rows)
    assert_consistent(chosen, pairs)
    assert chosen.ids.tolist() == pairs.ids[rows].tolist()
    assert sorted(chosen.texts) == sorted(
        text for text, owner in zip(pairs.texts, pairs.owners, strict=True) if owner in rows
    )
    assert (np.diff(chosen.owners) >= 0).all()


@given(captioned_pairs(), st.integers(0, 5))
def test_select_twice_is_select_of_the_composition(pairs: Pairs, seed: int) -> None:
    rows = np.random.default_rng(seed).permutation(pairs.n_images)
    again = np.random.default_rng(seed + 1).permutation(pairs.n_images)[: max(1, pairs.n_images // 2)]
    twice, once = pairs.select(rows).select(again), pairs.select(rows[again])
    assert twice.texts == once.texts
    assert (twice.images == once.images).all()
    assert twice.owners.tolist() == once.owners.tolist()
    assert twice.text_ids.tolist() == once.text_ids.tolist()


@given(captioned_pairs(), st.floats(0.05, 0.95), st.integers(0, 3), st.booleans())
def test_split_is_a_partition_without_leakage(pairs: Pairs, share: float, seed: int, stratify: bool) -> None:
    n_test = round(share * pairs.n_images)
    if not 0 < n_test < pairs.n_images:
        with pytest.raises(InvalidInputError, match="test_size"):
            pairs.split(share, seed=seed, stratify=stratify)
        return
    train, test = pairs.split(share, seed=seed, stratify=stratify)
    assert test.n_images == n_test
    assert sorted([*train.ids, *test.ids]) == sorted(pairs.ids)
    assert sorted([*train.texts, *test.texts]) == sorted(pairs.texts)
    assert not set(train.text_ids) & set(test.text_ids)
    assert_consistent(train, pairs)
    assert_consistent(test, pairs)
    assert pairs.split(share, seed=seed, stratify=stratify)[1].ids.tolist() == test.ids.tolist()


@given(st.lists(st.integers(2, 20), min_size=2, max_size=5), st.integers(0, 3))
def test_stratified_split_gives_every_class_its_share_within_one(sizes: list[int], seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    pairs = Pairs(np.ones((len(labels), 1)), np.ones((len(labels), 1)), labels=labels)
    _, test = pairs.split(0.3, seed=seed, stratify=True)
    quotas = np.array(sizes) * test.n_images / len(labels)
    assert (np.abs(np.bincount(test.labels, minlength=len(sizes)) - quotas) < 1).all()


def test_split_depends_on_the_seed() -> None:
    pairs = Pairs(np.eye(50), np.eye(50))
    assert pairs.split(seed=0)[1].ids.tolist() != pairs.split(seed=1)[1].ids.tolist()


@given(captioned_pairs())
def test_aligned_repeats_the_image_and_label_of_each_text(pairs: Pairs) -> None:
    images, texts, labels = pairs.aligned()
    assert len(images) == len(texts) == len(labels) == pairs.n_texts
    for image, text, label in zip(images, texts, labels, strict=True):
        assert f"image {int(image[0])}" == owner_named_in(text)
        assert label == pairs.labels[int(image[0])]


def test_aligned_one_to_one_copies_nothing() -> None:
    pairs = Pairs(np.eye(3), np.eye(3), labels=[0, 1, 1])
    images, texts, labels = pairs.aligned()
    assert images is pairs.images
    assert texts is pairs.texts
    assert labels is pairs.labels


def test_equal_counts_in_another_order_are_not_one_to_one() -> None:
    pairs = Pairs(np.eye(2), ["second", "first"], owners=[1, 0])
    assert not pairs.is_one_to_one
    assert pairs.aligned()[0].tolist() == [[0, 1], [1, 0]]


def test_one_text_per_image() -> None:
    pairs = Pairs(["x", "y"], ["y0", "x0", "x1", "y1"], owners=[1, 0, 0, 1], ids=["x", "y"])
    assert pairs.one_text_per_image().texts == ("x0", "y0")
    assert pairs.one_text_per_image(1).text_ids.tolist() == ["x#1", "y#1"]
    assert pairs.one_text_per_image("join").texts == ("x0 x1", "y0 y1")
    assert pairs.one_text_per_image("join").is_one_to_one
    with pytest.raises(InvalidInputError, match="image x has 2 texts"):
        pairs.one_text_per_image(2)
    with pytest.raises(InvalidInputError, match="join the texts before"):
        pairs.with_features(texts=np.ones((4, 2))).one_text_per_image("join")


def test_labels_of_several_classes_follow_their_texts() -> None:
    pairs = Pairs(np.eye(2), ["a", "b", "c"], labels=[[1, 1, 0], [0, 0, 1]], owners=[0, 0, 1])
    assert pairs.is_multi_label
    assert pairs.class_names == ("0", "1", "2")
    assert pairs.text_labels.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_split_classes_by_share_is_disjoint_and_complete() -> None:
    labels = np.repeat(["a", "b", "c", "d"], 3)
    pairs = Pairs(np.eye(12), np.eye(12), labels=labels)
    first, second, n_dropped = pairs.split_classes(0.5, seed=3)
    assert n_dropped == 0
    assert set(first.labels) == set(first.class_names)
    assert not set(first.labels) & set(second.labels)
    assert sorted([*first.ids, *second.ids]) == sorted(pairs.ids)
    halves = {pairs.split_classes(2, seed=seed).first.class_names for seed in range(20)}
    assert len(halves) > 2


def test_split_classes_by_name_or_number() -> None:
    named = Pairs(np.eye(4), np.eye(4), labels=[0, 1, 2, 1], class_names=("cat", "dog", "owl"))
    assert named.split_classes(["dog"]).first.ids.tolist() == ["1", "3"]
    assert named.split_classes(["dog"]).second.labels.tolist() == [0, 2]
    plain = Pairs(np.eye(4), np.eye(4), labels=[5, 7, 9, 7])
    assert plain.split_classes([7]).first.labels.tolist() == [7, 7]
    with pytest.raises(UnknownNameError, match="did you mean 'dog'"):
        named.split_classes(["dig"])
    with pytest.raises(InvalidInputError, match="each half needs a class"):
        named.split_classes(["cat", "dog", "owl"])


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=6, max_size=15), st.integers(0, 5))
def test_split_classes_drops_what_belongs_to_both_halves(rows: list[list[bool]], seed: int) -> None:
    labels = np.vstack([np.eye(4, dtype=int), np.array(rows, dtype=int)])
    pairs = Pairs(np.eye(len(labels)), np.eye(len(labels)), labels=labels, class_names=("a", "b", "c", "d"))
    first, second, n_dropped = pairs.split_classes(2, seed=seed)
    own = [pairs.class_names.index(name) for name in first.class_names]
    other = [pairs.class_names.index(name) for name in second.class_names]
    assert sorted(own + other) == [0, 1, 2, 3]
    original = labels[first.ids.astype(int)]
    assert (original[:, own] == first.labels).all()
    assert not original[:, other].any()
    lost = sum(bool(row[own].any()) == bool(row[other].any()) for row in labels)
    assert n_dropped == lost == len(labels) - first.n_images - second.n_images


def test_with_features_replaces_one_side_and_checks_the_count() -> None:
    pairs = Pairs(["1.jpg"], ["a", "b"], owners=[0, 0], ids=["one"])
    encoded = pairs.with_features(texts=np.ones((2, 3), dtype=np.float32))
    assert encoded.texts.dtype == np.float32
    assert encoded.images == pairs.images
    assert encoded.has_text_features
    assert not encoded.has_image_features
    assert encoded.text_ids.tolist() == ["one#0", "one#1"]
    with pytest.raises(InvalidInputError, match="each of the 1 images"):
        pairs.with_features(images=np.ones((2, 3)))


class CountingSequence(SelectedItems):
    """Counts how many items were made."""

    made = 0

    def __getitem__(self, index: Any) -> Any:
        type(self).made += 1
        return super().__getitem__(index)


def test_lazy_items_stay_lazy() -> None:
    CountingSequence.made = 0
    pairs = Pairs(CountingSequence(range(100), range(100)), ["x"] * 100)
    train, test = pairs.split(0.5)
    nested = test.select([1, 0])
    assert CountingSequence.made == 0
    assert nested.images[0] == int(nested.ids[0])
    assert list(train.images) == train.ids.astype(int).tolist()


def test_values_cannot_be_changed() -> None:
    images = np.eye(2)
    pairs = Pairs(images, ["a", "b"], labels=[0, 1])
    for array in (pairs.images, pairs.labels, pairs.owners, pairs.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(AttributeError):
        pairs.labels = None
    images[0, 0] = 2.0


def test_forms_of_items() -> None:
    assert Pairs([[1, 2], [3, 4]], ["a", "b"]).images.shape == (2, 2)
    assert Pairs(np.array(["x.jpg", "y.jpg"]), ["a", "b"]).images == ("x.jpg", "y.jpg")
    assert len(Pairs(np.zeros((2, 4, 4, 3), dtype=np.uint8), ["a", "b"]).images) == 2
    assert Pairs([Path("x.jpg")], ["a"]).images == (Path("x.jpg"),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"images": np.eye(3)}, "3 images but 2 texts; pass owners"),
        ({"images": []}, "no images"),
        ({"images": np.array([[1.0], [np.nan]])}, "NaN or infinity, first in row 1"),
        ({"images": "x.jpg"}, "pass it in a list"),
        ({"images": [[1, 2], [1]]}, "rows of different lengths"),
        ({"images": 3}, "feature matrix"),
        ({"images": np.zeros((2, 2, 2))}, "got shape"),
        ({"owners": [0, 5]}, r"0\.\.1"),
        ({"owners": [0, -1]}, r"0\.\.1"),
        ({"owners": [0]}, "each of the 2 texts"),
        ({"owners": [0.0, 1.0]}, "an integer"),
        ({"owners": [0, 0]}, "1 images have no text, first row 1"),
        ({"labels": [0]}, "each of the 2 images"),
        ({"labels": [0.5, 1.0]}, "integers, strings or a 0/1 indicator"),
        ({"labels": [[2, 0], [0, 1]]}, "0/1 indicator"),
        ({"labels": [[1, 0], [0, 1]], "class_names": ("a",)}, "2 columns but there are 1"),
        ({"labels": ["a", "b"], "class_names": ("a",)}, "'b' is not among class_names"),
        ({"labels": [1, 2], "class_names": ("a", "b")}, "count from 0"),
        ({"class_names": ("a",)}, "without labels"),
        ({"labels": [0, 1], "class_names": ("a", "a")}, "different from each other"),
        ({"ids": ["x", "x"]}, "'x' occurs more than once"),
        ({"ids": ["x"]}, "each of the 2 items"),
    ],
)
def test_what_is_wrong_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Pairs(**({"images": np.eye(2), "texts": ["a", "b"]} | arguments))


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "non-empty"), ([0, 0], "different"), ([2], r"0\.\.1"), ([True], "mask"), ([False, False], "non-empty")],
)
def test_rows_are_checked(rows: list[Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Pairs(np.eye(2), np.eye(2)).select(rows)


@pytest.mark.parametrize("size", [0, 4, -1, 0.0, 1.0, 1.5, 0.01])
def test_split_leaves_neither_part_empty(size: float) -> None:
    with pytest.raises(InvalidInputError, match=r"between 0 and 1 or a number in 1\.\.3"):
        Pairs(np.eye(4), np.eye(4)).split(size)


def test_stratify_and_class_split_need_labels() -> None:
    pairs = Pairs(np.eye(4), np.eye(4))
    with pytest.raises(InvalidInputError, match="stratify=False"):
        pairs.split(stratify=True)
    with pytest.raises(InvalidInputError, match="no labels"):
        pairs.split_classes()


def test_describe() -> None:
    pairs = Pairs(np.ones((1200, 7)), ["x"] * 1200, labels=np.zeros((1200, 3)))
    assert pairs.describe() == "1,200 images (7 features), 1,200 texts (raw), 3 classes, several per image"
