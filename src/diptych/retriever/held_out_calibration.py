"""Calibration learned from pairs that the model has not seen."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.data import Pairs
from diptych.retriever.calibration import Calibration, SearchDirection
from diptych.space import Space

_MOST_PICTURES, _MOST_TEXTS = 1000, 3000
_UNANSWERED = 0.01


def calibrate(space: Space, image_points: AnyArray, text_points: AnyArray, pairs: Pairs, prior: float) -> Calibration:
    """Fit a calibration on held-out pairs.

    With labels an answer is relevant when it shares one with the query, and the share of relevant answers is that of
    the data. Without, a text is relevant to its own picture and to the other texts of that picture, which undercounts:
    a caption often fits other pictures too; ``prior`` says how many. No pairs tell which two pictures belong
    together, so picture-to-picture search learns from the texts: its target is the calibrated probability that their
    captions describe one picture.

    The cut-off is what the best answers to 99 % of the held-out texts reach, each of which has a picture to find.
    """
    rows = np.random.default_rng(0).permutation(pairs.n_images)[:_MOST_PICTURES]
    texts = np.flatnonzero(np.isin(pairs.owners, rows))
    texts = np.sort(np.random.default_rng(1).permutation(texts)[:_MOST_TEXTS])
    images_at, texts_at = image_points[rows], text_points[texts]
    places = np.full(pairs.n_images, -1)
    places[rows] = np.arange(len(rows))
    owners = places[pairs.owners[texts]]
    across = space.compare(texts_at, images_at, "text_query")
    among_texts = space.compare(texts_at, texts_at, "text_query")
    among_images = space.compare(images_at, images_at)
    if pairs.labels is not None and pairs.text_labels is not None:
        fitted = _by_labels(across, among_texts, among_images, pairs.labels[rows], pairs.text_labels[texts])
    else:
        fitted = _by_partners(across, among_texts, among_images, owners, prior)
    best = fitted.probability(across.max(axis=1), "text_to_image")
    fitted.cutoff_ = float(np.quantile(best, _UNANSWERED))
    return fitted


def _by_labels(
    across: FloatArray, among_texts: FloatArray, among_images: FloatArray, of_images: AnyArray, of_texts: AnyArray
) -> Calibration:
    between = _agree(of_texts, of_images)
    judged: dict[SearchDirection, tuple[FloatArray, FloatArray]] = {
        "text_to_image": (across, between),
        "image_to_text": (across, between),
        "image_to_image": _without_self(among_images, _agree(of_images, of_images)),
        "text_to_text": _without_self(among_texts, _agree(of_texts, of_texts)),
    }
    return Calibration(prior=None).fit({way: pair for way, pair in judged.items() if 0 < pair[1].mean() < 1})


def _by_partners(
    across: FloatArray, among_texts: FloatArray, among_images: FloatArray, owners: IntArray, prior: float
) -> Calibration:
    partners = (owners[:, None] == np.arange(among_images.shape[0])[None, :]).astype(np.float64)
    judged: dict[SearchDirection, tuple[FloatArray, FloatArray]] = {
        "text_to_image": (across, partners),
        "image_to_text": (across, partners),
    }
    siblings = _without_self(among_texts, (owners[:, None] == owners[None, :]).astype(np.float64))
    if siblings[1].sum() == 0:
        return Calibration(prior=prior).fit(judged)
    judged["text_to_text"] = siblings
    through_texts = Calibration(prior=prior).fit(judged).probability(among_texts, "text_to_text")
    means = partners / np.maximum(partners.sum(axis=0), 1)
    judged["image_to_image"] = _without_self(among_images, means.T @ through_texts @ means)
    return Calibration(prior=prior).fit(judged)


def _agree(first: AnyArray, second: AnyArray) -> FloatArray:
    if first.ndim == 1:
        return np.asarray(first[:, None] == second[None, :], dtype=np.float64)
    return (first.astype(np.float64) @ second.astype(np.float64).T > 0).astype(np.float64)


def _without_self(scores: FloatArray, relevance: FloatArray) -> tuple[FloatArray, FloatArray]:
    others: BoolArray = ~np.eye(len(scores), dtype=bool)
    return scores[others], relevance[others]
