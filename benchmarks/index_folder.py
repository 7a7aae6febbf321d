"""Index a folder of photos with one command, twice: how long it takes, and how much faster the second run is.

    python benchmarks/index_folder.py [--limit N]

The photos are Flickr8k's, the cache and the collection start empty, and each run is the program itself. Bar: the second
run takes at most a fiftieth of the first. Start-up of the program is part of both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from diptych.data import find_dataset

BAR = 50


def index(photos: Path, collection: Path, cache: Path) -> float:
    """Run the program and return the seconds it took."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "diptych", "index", str(photos), "--collection", str(collection), "--quiet"]
    subprocess.run(command, check=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    return time.perf_counter() - started


def some_photos(folder: Path, limit: int, target: Path) -> Path:
    """Return a folder of links to the first photos."""
    target.mkdir()
    for path in sorted(folder.iterdir())[:limit]:
        (target / path.name).symlink_to(path)
    return target


def main() -> int:
    """Index twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, help="only so many photos")
    limit = parser.parse_args().limit
    photos = find_dataset("flickr8k").folder() / "images"
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        if limit is not None:
            photos = some_photos(photos, limit, room / "photos")
        count = sum(1 for _ in photos.iterdir())
        first = index(photos, room / "collection", room / "cache")
        print(f"first run:  {count} photos in {first:.1f} s, {count / first:.1f} a second", flush=True)
        second = min(index(photos, room / "collection", room / "cache") for _ in range(3))
        print(f"second run: {second:.2f} s, {first / second:.0f} times faster (bar {BAR})")
    return 0 if first >= BAR * second else 1


if __name__ == "__main__":
    sys.exit(main())
