"""Scenes: generated pictures with captions, classes and attributes; any size, identical on every machine."""

from __future__ import annotations

from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, choose_captions
from diptych.data.datasets.scenes import CLASS_NAMES, PictureSequence, make_scene
from diptych.data.pairs import Pairs
from diptych.errors import InvalidInputError, UnknownNameError

# Each part counts from its own start, so the test pictures stay the same whatever the number of training pictures.
_LARGEST_PART = 100_000_000
_STARTS = {"train": 0, "test": _LARGEST_PART, "dev": 2 * _LARGEST_PART}
_LABELS = ("class", "kinds")


def load_scenes(
    *,
    n_train: int = 2000,
    n_test: int = 500,
    n_dev: int = 0,
    seed: int = 0,
    size: int = 128,
    label: str = "class",
    captions: str | int = "all",
) -> DatasetSplits:
    """Describe the scenes of each part, a prefix of its own endless sequence; pictures are painted when looked at."""
    if label not in _LABELS:
        raise UnknownNameError("label of scenes", label, _LABELS)
    wanted = {"train": n_train, "test": n_test, "dev": n_dev}
    for part, count in wanted.items():
        fewest = 0 if part == "dev" else 1
        if not fewest <= count <= _LARGEST_PART:
            raise InvalidInputError(f"n_{part} must lie in {fewest}..{_LARGEST_PART}, got {count}")
    parts = {
        part: choose_captions(_make_pairs(range(_STARTS[part], _STARTS[part] + count), seed, size, label), captions)
        for part, count in wanted.items()
        if count
    }
    return DatasetSplits(train=parts["train"], test=parts["test"], dev=parts.get("dev"))


def _make_pairs(numbers: range, seed: int, size: int, label: str) -> Pairs:
    scenes = [make_scene(number, seed) for number in numbers]
    kinds = [[int(kind in scene.kinds) for kind in CLASS_NAMES] for scene in scenes]
    return Pairs(
        PictureSequence(numbers, seed=seed, size=size),
        [caption for scene in scenes for caption in scene.captions],
        labels=kinds if label == "kinds" else [scene.label for scene in scenes],
        ids=[f"scene-{number}" for number in numbers],
        class_names=CLASS_NAMES,
        owners=[row for row, scene in enumerate(scenes) for _ in scene.captions],
    )


SCENES = Dataset(
    name="scenes",
    summary="Generated pictures of one to four things in a little world, with five captions each; needs no download",
    homepage="part of Diptych",
    citation="the Diptych developers, Diptych",
    licence="Apache-2.0, like the code that draws it",
    splits="any number of training, test and development scenes, disjoint by construction",
    options={
        "n_train": "number of training scenes",
        "n_test": "number of test scenes",
        "n_dev": "number of development scenes; 0 for none",
        "seed": "of the whole world",
        "size": "width and height of the pictures in pixels",
        "label": "'class', the kind of the main thing, or 'kinds', all kinds in the picture",
        "captions": CAPTIONS_HELP,
    },
    loader=load_scenes,
)
