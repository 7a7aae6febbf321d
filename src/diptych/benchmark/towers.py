"""Which encoders of pictures and of texts agree: measured on captioned pictures, before anything is learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.data import Pairs, dataset_names, find_dataset, read_captions
from diptych.encoders import Encoder, FeatureCache
from diptych.errors import InvalidInputError
from diptych.metrics import RecallAtK, agreement, debiased_cka, mutual_neighbours
from diptych.models import Procrustes
from diptych.protocols import evaluate_model

N_FOLDS = 5
N_NEAREST = 10
MIN_PAIRS = 40


def captioned_pairs(source: str, most: int, seed: int = 0) -> Pairs:
    """Return at most so many pictures with one caption each, of a data set, a caption file or a folder."""
    if source in dataset_names():
        pairs = find_dataset(source).load().train
    else:
        path = Path(source).expanduser()
        if not path.exists():
            raise InvalidInputError(f"{source} is no data set, caption file or folder; see `diptych datasets`")
        pairs = read_captions(path, path if path.is_dir() else path.parent).pairs()
    if pairs.n_images < MIN_PAIRS:
        raise InvalidInputError(f"{source} has {pairs.n_images} pictures with captions; give at least {MIN_PAIRS}")
    chosen = np.random.default_rng(seed).permutation(pairs.n_images)[:most]
    return pairs.select(np.sort(chosen)).one_text_per_image(0)


def compare_towers(
    pairs: Pairs, image_encoders: Mapping[str, Encoder], text_encoders: Mapping[str, Encoder]
) -> list[dict[str, Any]]:
    """Return a row for every two towers, best recall first: how much they agree, and what an orthogonal map finds."""
    cache = FeatureCache()
    pictures, captions = list(pairs.images), list(pairs.texts)
    images = {name: cache.encode(encoder, pictures) for name, encoder in image_encoders.items()}
    texts = {name: cache.encode(encoder, captions) for name, encoder in text_encoders.items()}
    rows = []
    for image_name, image_rows in images.items():
        for text_name, text_rows in texts.items():
            cka = agreement(debiased_cka, image_rows, text_rows)
            near = agreement(_neighbours, image_rows, text_rows)
            recall, chance = _recall(image_rows, text_rows)
            rows.append(
                {
                    "images": image_name,
                    "texts": text_name,
                    "cka": cka.value,
                    "cka_error": cka.error,
                    "neighbours": near.value,
                    "neighbours_error": near.error,
                    "neighbours_chance": N_NEAREST / (pairs.n_images - 1),
                    "recall": recall,
                    "recall_chance": chance,
                }
            )
    return sorted(rows, key=lambda row: -row["recall"])


def _neighbours(images: FloatArray, texts: FloatArray) -> float:
    return mutual_neighbours(images, texts, N_NEAREST)


def _recall(images: FloatArray, texts: FloatArray) -> tuple[float, float]:
    """Return R@1 of both directions by cross-validation, and its chance level."""
    folds = np.random.default_rng(0).permutation(len(images)) % N_FOLDS
    values, chances = [], []
    for fold in range(N_FOLDS):
        model = Procrustes().fit(images[folds != fold], texts[folds != fold])
        found = evaluate_model(model, Pairs(images[folds == fold], texts[folds == fold]), [RecallAtK(1)])
        values.append(found.average(RecallAtK(1)))
        chances.append(found.chance(RecallAtK(1)))
    return float(np.mean(values)), float(np.mean(chances))
