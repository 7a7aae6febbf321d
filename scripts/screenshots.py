"""Take the pictures of the web page that the documentation shows.

    python scripts/screenshots.py [--into docs/images]

The pictures on the page are generated scenes. Needs the extras ``serve`` and ``dev``, and Chromium.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.data import Pairs
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA, SM
from diptych.service.app import create_app
from diptych.service.maps import make_map
from diptych.service.settings import Limits, Settings

N_SCENES = 300
SIDE = 384
# Photographs come in several shapes; so do the scenes.
SHAPES = ((1, 1), (4, 3), (3, 4), (1, 1), (3, 2), (4, 5))
LARGEST_FILE = 400_000
COLOURS = 256
TOKEN = "a-token-for-the-pictures-alone"
PATIENCE = 60_000


@dataclass(frozen=True)
class Shot:
    """One picture: where to go, what to wait for, and how large the window is."""

    name: str
    path: str
    ready: str
    width: int = 1360
    height: int = 860
    dark: bool = False
    opened: bool = False


SEARCH = Shot("page-search", "/?q=a+red+car+in+the+city", ".tile .score")
SHOTS = (
    SEARCH,
    replace(SEARCH, name="page-search-dark", dark=True),
    Shot("page-detail", SEARCH.path, ".why-view .signed", opened=True),
    Shot("page-compare", f"/compare{SEARCH.path[1:]}", ".compare-column .score"),
    Shot("page-map", "/map", ".map-near img"),
    replace(SEARCH, name="page-small", width=390, height=780),
    replace(SEARCH, name="page-small-dark", width=390, height=780, dark=True),
)


def scene_collection(base: Path) -> Path:
    """Make a collection of scenes, as they would look if they were photographs of several shapes."""
    folder = write_folder(base / "scenes", N_SCENES, size=SIDE)
    listing = folder / "captions.json"
    entries = json.loads(listing.read_text())["pictures"]
    listing.unlink()
    records = []
    for number, entry in enumerate(entries):
        path = folder / entry["file"]
        crop(path, *SHAPES[number % len(SHAPES)])
        first = entry["objects"][0]
        metadata = {"background": entry["background"], "colour": first["colour"], "size": first["size"]}
        records.append(Record(path, captions=entry["captions"], labels=[entry["label"]], metadata=metadata))
    return store(folder, records, Retriever(**parts(), model=CCA(n_components=48), name="scenes"))


def crop(path: Path, wide: int, high: int) -> None:
    """Cut a square picture to a shape."""
    scale = SIDE // max(wide, high)
    left, top = (SIDE - wide * scale) // 2, (SIDE - high * scale) // 2
    with Image.open(path) as picture:
        cut = picture.crop((left, top, left + wide * scale, top + high * scale))
    cut.save(path)


def parts() -> dict[str, object]:
    """Return encoders that know scenes."""
    return {"image_encoder": ColourEdgeHistograms(size=64), "text_encoder": TfidfTopics(n_components=256)}


def store(folder: Path, records: list[Record], retriever: Retriever) -> Path:
    """Learn from the records and keep them, with a second retriever and a map."""
    pairs = Pairs(
        [record.path for record in records],
        [caption for record in records for caption in record.captions or ()],
        labels=[(record.labels or ["none"])[0] for record in records],
        owners=[row for row, record in enumerate(records) for _ in record.captions or ()],
    )
    second = Retriever(**parts(), model=SM(), name="topics").fit(pairs, baseline=None)
    with Collection.create(folder / ".diptych", retriever.fit(pairs, baseline=None), root=folder) as collection:
        collection.add(records)
        collection.add_retriever(second, name="topics")
        make_map(collection)
    return folder / ".diptych"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a collection on this machine, and yield the address."""
    limits = Limits(requests_per_second=0)
    settings = Settings(collections={"scenes": folder}, token=TOKEN, limits=limits, log_clicks=True)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def take(browser: Browser, home: str, shot: Shot, into: Path) -> Path:
    """Take one picture and make its file small."""
    page = browser.new_page(
        base_url=home,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
    )
    page.set_default_timeout(PATIENCE)
    page.request.post("/v1/session", data={"token": TOKEN})
    page.goto(shot.path)
    if shot.opened:
        page.locator(".tile .tile-link").first.click()
    page.locator(shot.ready).first.wait_for()
    # Every picture in sight is drawn, and the original of an opened one.
    page.wait_for_load_state("networkidle")
    page.wait_for_function(
        """() => !document.querySelector('.blurred') && [...document.images].every(
             (image) => image.naturalWidth > 0 || image.getBoundingClientRect().top > innerHeight)"""
    )
    file = into / f"{shot.name}.png"
    page.screenshot(path=file)
    page.close()
    shrink(file)
    return file


def shrink(file: Path) -> None:
    """Write a picture with as many colours as the largest file allows."""
    with Image.open(file) as picture:
        plain = picture.convert("RGB")
    plain.save(file, optimize=True)
    colours = COLOURS
    while file.stat().st_size > LARGEST_FILE and colours >= 16:
        plain.quantize(colours, dither=Image.Dither.NONE).save(file, optimize=True)
        colours //= 2


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of the web page.")
    parser.add_argument("--into", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        with served(scene_collection(Path(base))) as home:
            for shot in SHOTS:
                file = take(browser, home, shot, options.into)
                print(f"{file} ({file.stat().st_size // 1000} kB)")
        browser.close()


if __name__ == "__main__":
    main()
