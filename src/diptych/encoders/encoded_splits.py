"""From raw pictures and words of a data set to two feature matrices per part."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from diptych._version import __version__
from diptych.arrays import FloatArray
from diptych.atomic_files import atomic_write
from diptych.data.dataset import DatasetSplits
from diptych.data.folders import cache_folder
from diptych.data.item_sequences import is_features
from diptych.encoders.encoder import Encoder
from diptych.encoders.feature_cache import FeatureCache, Progress, item_key
from diptych.encoders.image.colour_edge_histograms import ColourEdgeHistograms
from diptych.encoders.text.tfidf import TfidfTopics
from diptych.estimators import clone

Side = Literal["images", "texts"]
_LAZY_SAMPLES = 8


def encode_splits(
    splits: DatasetSplits,
    image_encoder: Encoder | None = None,
    text_encoder: Encoder | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: Progress | None = None,
) -> DatasetSplits:
    """Replace the raw items of every part by features; encoders learn from the training part only.

    A side that already is a feature matrix passes through. Without an encoder, pictures get
    :class:`ColourEdgeHistograms` and texts :class:`TfidfTopics`. The encoders given are cloned, never changed.

    Features are kept on disk by the content of the items: row by row for encoders that learn nothing
    (:class:`FeatureCache`), as whole matrices for those that learn from the training part. ``cache=False`` neither
    reads nor writes, and a folder chooses where.

    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import encode_splits
    >>> splits = encode_splits(load_dataset("scenes", n_train=12, n_test=4, size=32), cache=False)
    >>> splits.test.images.shape[0], splits.test.texts.shape[0]
    (4, 20)
    """
    encoders: dict[Side, Encoder] = {
        "images": ColourEdgeHistograms() if image_encoder is None else image_encoder,
        "texts": TfidfTopics() if text_encoder is None else text_encoder,
    }
    for side, encoder in encoders.items():
        if not is_features(getattr(splits.train, side)):
            features = _features(splits, side, encoder, cache, progress)
            parts: Any = {part: pairs.with_features(**{side: features[part]}) for part, pairs in splits.parts.items()}
            splits = replace(splits, **parts)
    return splits


def _features(
    splits: DatasetSplits, side: Side, encoder: Encoder, cache: bool | str | os.PathLike[str], progress: Progress | None
) -> dict[str, FloatArray]:
    if cache is False:
        return _encoded(splits, side, encoder)
    folder = None if cache is True else Path(cache)
    if not encoder.learns and isinstance(getattr(splits.train, side), tuple):
        rows = FeatureCache(folder and folder / "features")
        return {
            part: rows.encode(encoder, getattr(pairs, side), progress=progress) for part, pairs in splits.parts.items()
        }
    matrices = (cache_folder() if folder is None else folder) / "matrices"
    file = matrices / f"{_cache_key(splits, side, encoder)}.safetensors"
    with suppress(OSError, SafetensorError):
        if (found := load_file(file)).keys() == splits.parts.keys():
            return dict(found)
    features = _encoded(splits, side, encoder)
    try:
        matrices.mkdir(parents=True, exist_ok=True)
        with atomic_write(file, private=True) as draft:
            save_file({part: np.ascontiguousarray(matrix) for part, matrix in features.items()}, draft)
    except OSError as error:
        warnings.warn(f"features were not cached in {matrices}: {error}; pass cache=False", stacklevel=3)
    return features


def _encoded(splits: DatasetSplits, side: Side, encoder: Encoder) -> dict[str, FloatArray]:
    fitted = clone(encoder).fit(getattr(splits.train, side))
    return {part: fitted.transform(getattr(pairs, side)) for part, pairs in splits.parts.items()}


def _cache_key(splits: DatasetSplits, side: Side, encoder: Encoder) -> str:
    digest = hashlib.sha256()
    heading = [__version__, splits.name, sorted(splits.options.items()), side, encoder.fingerprint]
    digest.update(json.dumps(heading, default=repr).encode())
    for part, pairs in splits.parts.items():
        ids = pairs.ids if side == "images" else pairs.text_ids
        digest.update(json.dumps([part, ids.tolist()]).encode())
        for piece in _item_fingerprints(getattr(pairs, side), side):
            digest.update(piece)
    return digest.hexdigest()[:40]


def _item_fingerprints(items: Sequence[Any], side: Side) -> Iterator[bytes]:
    """Yield what tells changed items apart."""
    # Making every item of a lazy sequence would cost what the cache saves; a few betray another seed or size.
    step = 1 if isinstance(items, tuple) else max(1, len(items) // _LAZY_SAMPLES)
    for row in range(0, len(items), step):
        yield item_key(items[row], "image" if side == "images" else "text") or repr(items[row]).encode()
