"""The loaders against the real data sets and what was published about them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from diptych.data import load_dataset
from diptych.data.datasets.wikipedia import CATEGORY_COUNTS
from diptych.encoders import read_picture


@pytest.mark.data("wikipedia")
@pytest.mark.parametrize(("features", "width"), [("bow-lda", 10), ("tfidf", 1000)])
def test_wikipedia_official_split(features: str, width: int) -> None:
    splits = load_dataset("wikipedia", features=features)
    assert splits.train.images.shape == (2173, 128)
    assert splits.train.texts.shape == (2173, width)
    assert splits.test.images.shape == (693, 128)
    for column, pairs in enumerate((splits.train, splits.test)):
        assert Counter(pairs.labels.tolist()) == {name: pair[column] for name, pair in CATEGORY_COUNTS.items()}
        np.testing.assert_allclose(pairs.images.sum(axis=1), 1, atol=1e-6)
    assert not set(splits.train.ids) & set(splits.test.ids)
    assert not set(splits.train.text_ids) & set(splits.test.text_ids)


@pytest.mark.data("wikipedia")
def test_wikipedia_features_belong_to_their_labels() -> None:
    """Class means of the training topics classify test topics far above the 15 % of the largest class."""
    splits = load_dataset("wikipedia")
    names = np.array(splits.train.class_names)
    means = np.stack([splits.train.texts[splits.train.labels == name].mean(axis=0) for name in names])
    nearest = names[np.argmin(((splits.test.texts[:, None] - means) ** 2).sum(axis=2), axis=1)]
    assert (nearest == splits.test.labels).mean() > 0.55


@pytest.mark.data("pascal_sentence")
def test_pascal_sentence() -> None:
    splits = load_dataset("pascal_sentence")
    assert (splits.train.n_images, splits.test.n_images) == (700, 300)
    assert set(Counter(splits.train.labels.tolist()).values()) == {35}
    assert set(Counter(splits.test.labels.tolist()).values()) == {15}
    per_image = np.concatenate([np.bincount(pairs.owners) for pairs in (splits.train, splits.test)])
    assert Counter(per_image.tolist()) == {5: 996, 4: 3, 6: 1}
    assert len(splits.train.class_names) == 20
    assert not set(splits.train.ids) & set(splits.test.ids)
    assert load_dataset("pascal_sentence", sentences="pascal50s").test.n_texts == 15_000


@pytest.mark.data("coco_pairs")
def test_coco_pairs() -> None:
    splits = load_dataset("coco_pairs")
    sizes = {part: (pairs.n_images, pairs.n_texts) for part, pairs in splits.parts.items()}
    assert sizes == {"train": (16_000, 16_000), "test": (1000, 1000), "dev": (1000, 1000)}
    ids = [name for pairs in splits.parts.values() for name in pairs.ids.tolist()]
    assert len(set(ids)) == 18_000
    assert read_picture(splits.dev.images[0]).shape == (240, 240, 3)


@pytest.mark.data("coco_pairs", "coco_val2014_labels")
def test_labels_of_coco_pairs_belong_to_their_captions() -> None:
    splits = load_dataset("coco_pairs", label="category")
    labelled = {part: int(pairs.labels.any(axis=1).sum()) for part, pairs in splits.parts.items()}
    assert labelled == {"train": 15_819, "test": 987, "dev": 994}
    labels, names = splits.train.labels, splits.train.class_names
    assert [names[column] for column in np.flatnonzero(labels.sum(axis=0) == 0)] == ["(none)"]
    # The names are ours: whoever writes of a zebra has a photograph in the column of zebras, more than in any other.
    captions, usual = [f" {caption.lower()}" for caption in splits.train.texts], labels.mean(axis=0)
    told = {"keyboard", "mouse", "fork", "spoon", "zebra", "bus", "pizza", "vase", "suitcase", "hot dog", "wine glass"}
    for name in told:
        written = np.array([f" {name}" in caption for caption in captions])
        assert names[int((labels[written].mean(axis=0) - usual).argmax())] == name


@pytest.mark.data("flickr8k")
def test_flickr8k_official_split_and_judgements() -> None:
    splits = load_dataset("flickr8k")
    sizes = {part: (pairs.n_images, pairs.n_texts) for part, pairs in splits.parts.items()}
    assert sizes == {"train": (6000, 30_000), "test": (1000, 5000), "dev": (1000, 5000)}
    experts, crowd = splits.extra("expert_judgements"), splits.extra("crowd_judgements")
    assert (len(experts), len(crowd)) == (5822, 47_830)
    images, captions = set(splits.test.ids.tolist()), set(splits.test.text_ids.tolist())
    assert all(judgement.image_id in images for judgement in (*experts, *crowd))
    assert sum(judgement.caption_id in captions for judgement in experts) > 0
    assert min(judgement.yes + judgement.no for judgement in crowd) == 3


@pytest.mark.data("flickr8k")
def test_flickr8k_files_hold_what_their_readme_says() -> None:
    """8,091 photographs and 40,460 captions, five of them of a photograph that does not exist."""
    folder = Path(os.environ["DIPTYCH_DATA"]) / "flickr8k"
    photographs = {path.name for path in (folder / "images").iterdir()}
    lines = (folder / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    assert len(photographs) == 8091
    assert len(lines) == 40_460
    assert sum(line.partition("#")[0] in photographs for line in lines) == 40_455


@pytest.mark.data("flickr8k")
def test_flickr8k_lemmas_belong_to_the_same_captions() -> None:
    tokens, lemmas = (load_dataset("flickr8k", text=text).test for text in ("token", "lemma"))
    assert tokens.text_ids.tolist() == lemmas.text_ids.tolist()
    assert tokens.texts != lemmas.texts
    shared = [
        len(set(token.lower().split()) & set(lemma.lower().split())) / len(set(token.lower().split()))
        for token, lemma in zip(tokens.texts, lemmas.texts, strict=True)
    ]
    assert np.mean(shared) > 0.6
