"""A scene and how it becomes a picture, a sequence of pictures, a folder of PNG files, or a data set."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.atomic_files import atomic_write
from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, choose_captions
from diptych.data.datasets.scenes.backdrops import draw_backdrop
from diptych.data.datasets.scenes.canvas import INK, Canvas, PortableRandom, ellipse
from diptych.data.datasets.scenes.captions import write_captions
from diptych.data.datasets.scenes.composition import SceneObject, compose, depth
from diptych.data.datasets.scenes.things import CLASS_NAMES, draw_thing
from diptych.data.pairs import Pairs
from diptych.errors import InvalidInputError, UnknownNameError

SMALLEST_PICTURE = 32
CAPTIONS_FILE = "captions.json"
_ORIGIN = "diptych scenes"
_UNFINISHED = ".part"


@dataclass(frozen=True)
class Scene:
    """A little world: a background, one to four things in it, and five captions that are true of it.

    ``objects`` begins with the main thing, whose kind is the ``label``; ``kinds`` is the multi-label set, sorted.
    A scene is a description; pixels are made by :meth:`render`, at any size, and are the same on every machine.
    """

    index: int
    label: str
    kinds: tuple[str, ...]
    background: str
    objects: tuple[SceneObject, ...]
    captions: tuple[str, ...] = field(repr=False)
    seed: int = 0

    def render(self, size: int = 128) -> NDArray[np.uint8]:
        """Return the picture as (size, size, 3) RGB bytes."""
        _check_size(size)
        canvas = Canvas(size)
        draw_backdrop(canvas, self.background, PortableRandom("backdrop", self.seed, self.index))
        for thing in sorted(self.objects, key=depth):
            x, y, extent = thing.x, thing.y, thing.extent
            if thing.setting == "ground":
                shadow = canvas.window(x, y + extent * 0.98, extent, reach=1.3)
                shadow.glow(ellipse(shadow.u, shadow.v, 0.08, 0, 0.7, 0.08), INK, 0.35, 0.25)
            draw_thing(canvas.window(x, y, extent), thing.kind, thing.colour)
        return canvas.picture()


def _check_size(size: int) -> None:
    if size < SMALLEST_PICTURE:
        raise InvalidInputError(f"size must be at least {SMALLEST_PICTURE} pixels, got {size}")


def make_scene(index: int, seed: int = 0) -> Scene:
    """Return scene number ``index`` of the data set with the given seed.

    Every scene is drawn from its own random stream, so it is the same whatever else is made, and in any order.

    >>> from diptych.data.datasets.scenes import make_scene
    >>> make_scene(5).render(64).shape, len(make_scene(5).captions)
    ((64, 64, 3), 5)
    """
    if index < 0:
        raise InvalidInputError(f"index must be 0 or more, got {index}")
    background, objects = compose(PortableRandom("scene", seed, index))
    captions = write_captions(background, objects, PortableRandom("captions", seed, index))
    kinds = tuple(sorted({thing.kind for thing in objects}))
    return Scene(index, objects[0].kind, kinds, background, objects, captions, seed)


class PictureSequence(Sequence[NDArray[np.uint8]]):
    """The pictures of some scenes, rendered one by one when asked for, so that thousands cost no memory.

    ``scenes`` is a number (the first so many scenes) or the scene numbers themselves; a slice is lazy, too.
    """

    def __init__(self, scenes: int | Sequence[int], *, seed: int = 0, size: int = 128) -> None:
        self.scenes = range(scenes) if isinstance(scenes, int) else scenes
        self.seed = seed
        self.size = size
        _check_size(size)

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return PictureSequence(self.scenes[index], seed=self.seed, size=self.size)
        return make_scene(int(self.scenes[index]), self.seed).render(self.size)


def write_folder(
    path: str | os.PathLike[str],
    n: int,
    seed: int = 0,
    size: int = 128,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the first ``n`` scenes as ``scene-000000.png``, … with one ``captions.json``, and return the folder.

    ``captions.json`` holds, for each picture, its file, captions, label, kinds, background and objects; it is written
    last, so that its presence means the folder is complete. Each file appears whole or not at all, and an interrupted
    run can simply be repeated. A folder that holds anything else but a collection is left alone. ``progress`` is called
    with (pictures written, n).
    """
    # Imported here: Pillow is needed for nothing else in this package and takes a while to load.
    from PIL import Image

    if n < 1:
        raise InvalidInputError(f"n must be at least 1, got {n}")
    _check_size(size)
    folder = Path(path)
    names = [f"scene-{number:06d}.png" for number in range(n)]
    _claim_folder(folder, names)
    entries = []
    for number, name in enumerate(names):
        scene = make_scene(number, seed)
        with atomic_write(folder / name, draft=folder / (name + _UNFINISHED)) as draft:
            Image.fromarray(scene.render(size)).save(draft, format="PNG")
        things = [asdict(thing) | {"place": thing.place} for thing in scene.objects]
        entries.append({"file": name, **asdict(scene), "objects": things})
        if progress is not None:
            progress(number + 1, n)
    content = {"origin": _ORIGIN, "seed": seed, "size": size, "pictures": entries}
    with atomic_write(folder / CAPTIONS_FILE, draft=folder / (CAPTIONS_FILE + _UNFINISHED)) as draft:
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder


def _claim_folder(folder: Path, names: list[str]) -> None:
    """Make the folder, or check that it holds nothing but what this run is about to write."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    # A collection of the pictures may lie among them, and follows what is written.
    ours = {CAPTIONS_FILE, ".diptych", *names}
    for file in sorted(folder.iterdir()):
        if file.name.removesuffix(_UNFINISHED) not in ours:
            raise InvalidInputError(f"{folder} already holds other files ({file.name}); name a new or empty folder")
    captions = folder / CAPTIONS_FILE
    if captions.exists():
        if f'"origin": "{_ORIGIN}"' not in captions.read_text(encoding="utf-8"):
            raise InvalidInputError(f"{captions} was not written by Diptych; name a new or empty folder")
        # Until this run ends, the old captions would describe pictures that are being replaced.
        captions.unlink()


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
