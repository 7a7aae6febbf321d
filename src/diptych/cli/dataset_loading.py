"""From a data set's name and options to feature matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from diptych.cli.stages import Stages
from diptych.data import Dataset, DatasetSplits, find_dataset
from diptych.encoders import encode_splits
from diptych.errors import InvalidInputError, UnknownNameError


def load(name: str, options: Mapping[str, Any], stages: Stages) -> DatasetSplits:
    """Load the data set as it is, after a check of the options."""
    dataset = find_dataset(name)
    _check_options(dataset, options)
    with stages.run("load", f"loading {name}"):
        return dataset.load(**options)


def encode(splits: DatasetSplits, stages: Stages) -> DatasetSplits:
    """Turn whichever side is raw into features with the default encoder; features pass through."""
    if splits.train.has_image_features and splits.train.has_text_features:
        return splits
    n_images, n_texts = (sum(getattr(part, side) for part in splits.parts.values()) for side in ("n_images", "n_texts"))
    with stages.run("encode", f"encoding {n_images:,} pictures and {n_texts:,} texts"):
        return encode_splits(splits)


def _check_options(dataset: Dataset, options: Mapping[str, Any]) -> None:
    known, hints = dataset.defaults, get_type_hints(dataset.loader)
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(f"option of {dataset.name}", name, known)
        wanted = hints.get(name, object)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            kind = getattr(wanted, "__name__", str(wanted))
            raise InvalidInputError(f"option {name!r} of {dataset.name} takes {kind}, got {value!r}")
