"""From a data set's name and options to feature matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from diptych.cli.stages import Stages
from diptych.data import Dataset, DatasetSplits, find_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.errors import InvalidInputError, UnknownNameError


def load(name: str, options: Mapping[str, Any], stages: Stages) -> DatasetSplits:
    """Load the data set as it is, after a check of the options."""
    dataset = find_dataset(name)
    _check_options(dataset, options)
    with stages.run("load", f"loading {name}"):
        return dataset.load(**options)


def choose_encoders(
    splits: DatasetSplits, image_encoder: Encoder | None, text_encoder: Encoder | None
) -> dict[str, Encoder]:
    """Return the encoder of each side that is raw: the one asked for, or the default.

    An encoder for a side that already is features has nothing to encode, which is an error.
    """
    sides = {
        "images": (splits.train.has_image_features, image_encoder, ColourEdgeHistograms()),
        "texts": (splits.train.has_text_features, text_encoder, TfidfTopics()),
    }
    chosen: dict[str, Encoder] = {}
    for side, (has_features, wanted, default) in sides.items():
        if not has_features:
            chosen[side] = default if wanted is None else wanted
        elif wanted is not None:
            raise InvalidInputError(
                f"the {side} of {splits.name} come as features, so {type(wanted).__name__} has nothing to encode; "
                f"leave out --{side[:-1]}-encoder"
            )
    return chosen


def encode(splits: DatasetSplits, encoders: Mapping[str, Encoder], stages: Stages) -> DatasetSplits:
    """Turn whichever side is raw into features; features pass through."""
    if not encoders:
        return splits
    n_images, n_texts = (sum(getattr(part, side) for part in splits.parts.values()) for side in ("n_images", "n_texts"))
    total = ("images" in encoders) * n_images + ("texts" in encoders) * n_texts
    with stages.run("encode", f"encoding {n_images:,} pictures and {n_texts:,} texts") as advance:
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            advance(done, total)

        return encode_splits(splits, encoders.get("images"), encoders.get("texts"), progress=count)


def _check_options(dataset: Dataset, options: Mapping[str, Any]) -> None:
    known, hints = dataset.defaults, get_type_hints(dataset.loader)
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(f"option of {dataset.name}", name, known)
        wanted = hints.get(name, object)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            kind = getattr(wanted, "__name__", str(wanted))
            raise InvalidInputError(f"option {name!r} of {dataset.name} takes {kind}, got {value!r}")
