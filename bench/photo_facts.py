"""Read what photographs say of themselves: files per second of processor time, for photos of twelve megapixels.

    python -m bench.photo_facts [--quick] [--photos N]

The photos are made here, with the EXIF of a phone, and read as `diptych index` reads those of a collection that has no
facts yet: header alone, names of places included, nothing decoded and nothing encoded. Bar: 300 files a second.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from bench.speed_report import SpeedReport, speed_parser
from diptych.collection.changes.file_facts import Describing, FileFacts, FileRequest, read_files

BAR, REPEATS = 300, 3
SIZE = (4000, 3000)


def phone_exif(rng: np.random.Generator) -> Image.Exif:
    """Return what a phone writes: camera, exposure, date, place."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = "Google", "Pixel 6"
    camera, gps = exif.get_ifd(0x8769), exif.get_ifd(0x8825)
    camera[0x9003], camera[0x9011] = "2019:07:14 18:05:31", "+01:00"
    camera[0x829A], camera[0x829D], camera[0x8827] = IFDRational(1, 250), IFDRational(185, 100), 125
    north, east = (IFDRational(int(degrees)) for degrees in rng.integers((45, 1), (52, 12)))
    gps[1], gps[2] = "N", (north, IFDRational(3), IFDRational(0))
    gps[3], gps[4] = "E", (east, IFDRational(9), IFDRational(0))
    return exif


def main() -> int:
    """Make photos, read them, print the pace."""
    parser = speed_parser(__doc__)
    parser.add_argument("--photos", type=int, default=1000)
    options = parser.parse_args()
    report = SpeedReport(__file__, options)
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 255, (150, 200, 3), dtype=np.uint8))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        small.resize(SIZE, Image.Resampling.BICUBIC).save(first := Path(folder) / "pixels.jpg", quality=85)
        content = first.read_bytes()
        for number in range(options.photos):
            exif = phone_exif(rng).tobytes()
            paths.append(Path(folder) / f"IMG_{number:05}.jpg")
            paths[-1].write_bytes(content[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + content[2:])
        describing = Describing("all")
        describing.completed([FileFacts("", said={"latitude": 0.0, "longitude": 0.0})])  # reads the list of places
        paces = []
        for _ in range(REPEATS):
            started = time.process_time()
            read = read_files([FileRequest(path, known_content="known") for path in paths])
            facts = describing.completed([one[1] for one in read if isinstance(one, tuple)])
            paces.append(len(facts) / (time.process_time() - started))
    assert all(one.said["camera"] == "Google Pixel 6" and "place" in one.said for one in facts)
    report.bound(f"facts of photos of {SIZE[0]:,} × {SIZE[1]:,} pixels", paces, BAR, unit="photos/s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
