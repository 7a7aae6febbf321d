"""How fast files are read that Pillow does not read by itself: photographs of 12 megapixels, and a video in full HD.

A photograph is read as for the default retriever, which needs 260 pixels along the shortest side, with its thumbnail; a
video is looked through for its moments, each of which is then read in the same way. Its key frames are so few that all
frames are decoded, ten for each second. Counted is processor time. Bars for each second of it: half a HEIC photograph,
with the small picture that phones put in, a RAW one that has to be developed, and 5 seconds of video.

    python -m bench.formats [--quick]
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pillow_heif
from PIL import Image

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.collection.changes.file_facts import FileRequest, file_facts
from diptych.data.picture_files import moment_path
from diptych.encoders import read_picture
from diptych.encoders.image.decoding_process import become_worker
from tests.doubles.picture_samples import dng_file, write_video

SIDE = 260
REPEATS = 3
# In a second of the processor; the JPEG is there for comparison.
BARS = {"jpg": 1.0, "heic": 0.5, "dng": 1.0}
VIDEO_BAR = 5.0
SCENES, SCENE_SECONDS = 5, 6


def scene(seed: int, size: tuple[int, int]) -> Image.Image:
    """Return something with the detail of a photograph: clouds of several sizes, in colour."""
    rng = np.random.default_rng(seed)
    total = np.zeros((size[1], size[0], 3), dtype=np.float32)
    for side in (4, 16, 64, 256, 1024):
        clouds = Image.fromarray(rng.integers(0, 256, (side * 3 // 4, side, 3), dtype=np.uint8))
        total += np.asarray(clouds.resize(size, Image.Resampling.BICUBIC), dtype=np.float32) / side**0.5
    return Image.fromarray((255 * (total - total.min()) / (total.max() - total.min())).astype(np.uint8))


def rates(do: Callable[[], object], amount: float = 1.0) -> list[float]:
    """Return how much is done in a second of the processor, turn by turn."""
    return [amount / taken for taken in in_turns({"ours": do}, REPEATS, clock=time.process_time)["ours"]]


def index(path: Path) -> None:
    """Read a file as indexing does: its facts, and the pictures that networks see."""
    facts = file_facts(FileRequest(path))
    for picture in (path, *(moment_path(path, seconds) for seconds, _ in facts.moments)):
        read_picture(picture, shortest_side=SIDE)


def main() -> int:
    """Measure the rates; return the exit status."""
    report = SpeedReport(__file__, speed_parser(__doc__).parse_args())
    # Decoders in processes of their own take the same time, which would not be counted.
    become_worker()
    photograph = scene(0, (4000, 3000))
    jpeg = io.BytesIO()
    photograph.save(jpeg, "JPEG", quality=90)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.jpg").write_bytes(jpeg.getvalue())
        pillow_heif.from_pillow(photograph).save(folder / "a.heic", quality=80, thumbnails=[320])
        # The development makes one pixel of four.
        (folder / "a.dng").write_bytes(dng_file(scene(1, (2000, 1500))))
        write_video(folder / "a.mp4", [scene(seed, (1920, 1080)) for seed in range(SCENES)], seconds=SCENE_SECONDS)
        for kind, bar in BARS.items():
            work = f"a photograph of 12 megapixels as .{kind}"
            report.bound(work, rates(partial(index, folder / f"a.{kind}")), bar, unit="photos/s")
        video = rates(partial(index, folder / "a.mp4"), SCENES * SCENE_SECONDS)
        report.bound("video in full HD", video, VIDEO_BAR, unit="seconds of video/s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
