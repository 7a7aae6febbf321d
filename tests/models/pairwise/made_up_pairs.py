"""Pairs that share a little meaning, and what is said of them in factors, written out."""

from __future__ import annotations

import numpy as np

from diptych.models.pairwise._pairs import (
    AllPairs,
    SampledPairs,
    classification_loss,
    first_matches,
    own_matches,
    ranking_loss,
)

PRECISE = {"tol": 1e-9, "max_iter": 5000}


def make_pairs(n=40, image_width=5, text_width=3, seed=0):
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 2))
    images = meaning @ rng.normal(size=(2, image_width)) + 0.7 * rng.normal(size=(n, image_width))
    texts = meaning @ rng.normal(size=(2, text_width)) + 0.7 * rng.normal(size=(n, text_width))
    labels = (meaning[:, 0] > 0).astype(int) + (meaning[:, 1] > 0)
    return images, texts, labels


def centred(rows):
    return rows - rows.mean(axis=0)


def products(images, texts, rows, columns):
    """The cross-product features of some pairs, formed as nobody should."""
    return np.einsum("ik,il->ikl", images[rows], texts[columns]).reshape(len(rows), -1)


def every_pair(n):
    rows, columns = (grid.ravel() for grid in np.indices((n, n)))
    return rows, columns, np.where(rows == columns, 1.0, -1.0)


def sampled_pairs(n, ratio, seed=0):
    partners = SampledPairs.unlabelled(n, ratio, np.random.default_rng(seed)).partners
    rows = np.repeat(np.arange(n), ratio + 1)
    return rows, partners.ravel(), np.tile(np.where(np.arange(ratio + 1) == 0, 1.0, -1.0), n)


def brute_force_terms(n, ratio, kind):
    """Name the pairs and losses that the factorised code is compared with."""
    own_column = (lambda rows: np.arange(rows.start, rows.stop)) if ratio is None else None
    if kind == "ranking":
        loss = ranking_loss(own_column or (lambda rows: np.zeros(rows.stop - rows.start, dtype=int)))
    else:
        signs = own_matches(n) if ratio is None else first_matches(ratio + 1)
        loss = classification_loss(kind, signs)
    pairs = AllPairs(n) if ratio is None else SampledPairs.unlabelled(n, ratio, np.random.default_rng(0))
    return pairs, loss
