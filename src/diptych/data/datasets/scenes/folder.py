"""Scenes as a folder of PNG files, for anything that reads real pictures from disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from diptych.data.datasets.scenes.scene import SMALLEST_PICTURE, Scene, make_scene
from diptych.errors import InvalidInputError

CAPTIONS_FILE = "captions.json"
_ORIGIN = "diptych scenes"
_UNFINISHED = ".part"


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
    run can simply be repeated. A folder that holds anything else is left alone. ``progress`` is called with
    (pictures written, n).

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data.datasets.scenes import write_folder
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = write_folder(Path(parent) / "scenes", 2, size=32)
    ...     sorted(file.name for file in folder.iterdir())
    ['captions.json', 'scene-000000.png', 'scene-000001.png']
    """
    # Imported here: Pillow is needed for nothing else in this package and takes a while to load.
    from PIL import Image

    if n < 1:
        raise InvalidInputError(f"n must be at least 1, got {n}")
    if size < SMALLEST_PICTURE:
        raise InvalidInputError(f"size must be at least {SMALLEST_PICTURE} pixels, got {size}")
    folder = Path(path)
    names = [f"scene-{number:06d}.png" for number in range(n)]
    _claim(folder, names)
    entries = []
    for number, name in enumerate(names):
        scene = make_scene(number, seed)
        unfinished = folder / (name + _UNFINISHED)
        Image.fromarray(scene.render(size)).save(unfinished, format="PNG")
        os.replace(unfinished, folder / name)
        entries.append(_entry(name, scene))
        if progress is not None:
            progress(number + 1, n)
    _write_captions(folder, {"origin": _ORIGIN, "seed": seed, "size": size, "pictures": entries})
    return folder


def _claim(folder: Path, names: list[str]) -> None:
    """Make the folder, or check that it holds nothing but what this run is about to write."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    ours = {CAPTIONS_FILE, *names}
    for file in sorted(folder.iterdir()):
        if file.name.removesuffix(_UNFINISHED) not in ours:
            raise InvalidInputError(f"{folder} already holds other files ({file.name}); name a new or empty folder")
    captions = folder / CAPTIONS_FILE
    if captions.exists():
        if not _is_ours(captions):
            raise InvalidInputError(f"{captions} was not written by Diptych; name a new or empty folder")
        # Until this run ends, the old captions would describe pictures that are being replaced.
        captions.unlink()


def _is_ours(captions: Path) -> bool:
    try:
        content = json.loads(captions.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("origin") == _ORIGIN


def _entry(name: str, scene: Scene) -> dict[str, Any]:
    return {
        "file": name,
        "captions": list(scene.captions),
        "label": scene.label,
        "kinds": list(scene.kinds),
        "background": scene.background,
        "objects": [asdict(thing) | {"place": thing.place} for thing in scene.objects],
    }


def _write_captions(folder: Path, content: dict[str, Any]) -> None:
    unfinished = folder / (CAPTIONS_FILE + _UNFINISHED)
    unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
    os.replace(unfinished, folder / CAPTIONS_FILE)
