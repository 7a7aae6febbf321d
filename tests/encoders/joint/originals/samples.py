"""Pictures and texts on which preparations and tokenizers differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

TEXTS = [
    "a red boat at sea",
    "Two DOGS play in the SNOW!",
    "it's 2 o'clock   in \n BERLIN, isn't it?",
    "a very long caption about boats, dogs and the sea, " * 20,
    "snowman ☃ 🚤🐕‍🦺 naïve cafe\u0301 Ünïcode",
    "salt &amp; pepper &lt;3 &amp;quot;quoted&amp;quot; caf&eacute;",
    "Tom’s “ﬁrst” ＢＯＡＴ\u3000trip…",
    "snake_case_words, e.g. photo_of_a_dog.jpg",
    "",
]


def photo(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Return waves with sharp edges and fine texture, so that every filter and every pixel has something to say."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    scale = rng.uniform(0.01, 0.05, (3, 2)) * 300 / min(height, width)
    waves = [np.sin(y * a + x * b + rng.uniform(0, 6)) for a, b in scale]
    values = 128 + 90 * np.stack(waves, axis=2) + rng.normal(0, 25, (height, width, 3))
    values[((y // 37 + x // 53) % 7) == seed % 7] *= 0.3
    return np.clip(values, 0, 255).astype(np.uint8)


def write_pictures(folder: Path) -> dict[str, Path]:
    """Write a picture of every kind that libraries treat in their own ways."""
    folder.mkdir()
    images = {
        f"{h}x{w}.png": Image.fromarray(photo(h, w, h)) for h, w in ((427, 640), (640, 427), (200, 201), (20, 31))
    }
    images["grey.png"] = Image.fromarray(photo(301, 222, 1)).convert("L")
    clear = np.dstack([photo(240, 333, 2), photo(240, 333, 3)[:, :, 0]])
    images["transparent.png"] = Image.fromarray(clear)
    images["transparent_grey.png"] = Image.fromarray(clear).convert("LA")
    images["palette.png"] = Image.fromarray(photo(222, 301, 4)).quantize(64)
    images["cmyk.jpg"] = Image.fromarray(photo(260, 281, 5)).convert("CMYK")
    images["large.jpg"] = Image.fromarray(photo(1400, 1903, 6))
    paths = {name: folder / name for name in images}
    for name, image in images.items():
        image.save(paths[name])
    paths["turned.jpg"] = folder / "turned.jpg"
    notes = Image.Exif()
    notes[0x0112] = 6
    Image.fromarray(photo(300, 451, 7)).save(paths["turned.jpg"], exif=notes)
    return paths
