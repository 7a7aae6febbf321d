"""A real service with painted scenes, and a real browser that visits it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect, sync_playwright

from diptych import Retriever
from diptych.collection import Collection, PictureText, PictureWord, Record
from diptych.collection.store.opening import open_store
from diptych.collection.store.writing import PICTURE, content_ids, put_picture_texts
from diptych.data import Pairs
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA, SM
from diptych.service.app import create_app
from diptych.service.operations.server import server_config
from diptych.service.security.tokens import PageSessions
from diptych.service.settings import Limits, Settings

N_SCENES = 80
TOKEN = "a-token-that-only-the-tests-know"
# Two cores may be shared by several test processes; what is waited for comes much sooner on a quiet machine.
PATIENCE = 20_000
# A browser remembers the last 50 steps; a window that comes near is not used again.
LONG_HISTORY = 30
# Each window prepares two panels of an address bar that nobody sees, in a second of processor time. Chromium keeps the
# last list it is given; the other names are those that Playwright gives.
UNUSED_FEATURES = (
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,"
    "AimEnabled,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,LensOverlay,MediaRouter,"
    "OptimizationHints,PaintHolding,PreconnectToSearch,ThirdPartyStoragePartitioning"
)
expect.set_options(timeout=PATIENCE)


@dataclass
class Site:
    """A service in a thread of its own."""

    url: str
    pictures: Path
    server: uvicorn.Server = field(repr=False)
    thread: threading.Thread = field(repr=False)

    @property
    def sessions(self) -> PageSessions:
        return cast(PageSessions, self.server.config.loaded_app.state.context.credentials.sessions)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=30)


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of scenes of several shapes, with a collection that has two retrievers."""
    from PIL import Image

    folder = write_folder(tmp_path_factory.mktemp("browser") / "scenes", N_SCENES, size=64)
    entries = json.loads((folder / "captions.json").read_text())["pictures"]
    (folder / "captions.json").unlink()
    for number, entry in enumerate(entries):
        with Image.open(folder / entry["file"]) as picture:
            shape = ((64, 64), (64, 48), (48, 64))[number % 3]
            picture.crop((0, 64 - shape[1], shape[0], 64)).save(folder / entry["file"])
    records = [_record(folder, entry) for entry in entries]
    pairs = Pairs(
        [record.path for record in records],
        [caption for record in records for caption in record.captions or ()],
        labels=[entry["label"] for entry in entries],
        owners=[row for row, record in enumerate(records) for _ in record.captions or ()],
    )
    first, second = (
        _learned(pairs, name, model) for name, model in (("scenes", CCA(n_components=16)), ("topics", SM()))
    )
    with Collection.create(folder / ".diptych", first, root=folder) as collection:
        assert collection.add(records).added == N_SCENES
        collection.add_retriever(second, name="topics")
        # As if a word had been read in the first picture.
        corners = ((0.25, 0.5), (0.75, 0.5), (0.75, 0.75), (0.25, 0.75))
        text = PictureText("Kaliso", (PictureWord("Kaliso", corners),))
        digest = str(next(iter(collection)).content_hash)
    store = open_store(folder / ".diptych")
    store.write(lambda db: put_picture_texts(db, {content_ids(db, [digest], PICTURE)[digest]: text}))
    store.close()
    return folder


def _record(folder: Path, entry: dict[str, Any]) -> Record:
    first = entry["objects"][0]
    metadata = {"colour": first["colour"], "year": 1950 + int(entry["file"][6:12])}
    return Record(folder / entry["file"], captions=entry["captions"], labels=[entry["label"]], metadata=metadata)


def _learned(pairs: Pairs, name: str, model: Any) -> Retriever:
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(n_components=40)}
    return Retriever(model=model, name=name, cache=False, **parts).fit(pairs, baseline=None)


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Site]]:
    """Start services, each with a copy of a folder: ``serve(folder, log_clicks=False)``."""
    started: list[Site] = []

    def start(folder: Path, **overrides: Any) -> Site:
        pictures = Path(shutil.copytree(folder, tmp_path_factory.mktemp("served") / "scenes"))
        limits = Limits(requests_per_second=0.0)
        served = {"collections": {"scenes": pictures / ".diptych"}, "roots": {"scenes": pictures}}
        chosen = {**served, "token": TOKEN, "limits": limits, **overrides}
        site = _started(Settings(**chosen), pictures)
        started.append(site)
        return site

    yield start
    for site in started:
        site.server.should_exit = True
    for site in started:
        site.stop()


def _started(settings: Settings, pictures: Path) -> Site:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(create_app(settings), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        assert time.monotonic() < deadline, "the service did not start within a minute"
        time.sleep(0.01)
    return Site(f"http://127.0.0.1:{listening.getsockname()[1]}", pictures, server, thread)


@pytest.fixture(scope="session")
def site(scenes: Path, serve: Callable[..., Site]) -> Site:
    """The service that most tests visit."""
    return serve(scenes)


@pytest.fixture
def own_site(scenes: Path, serve: Callable[..., Site]) -> Site:
    """A service whose collection and log belong to one test."""
    return serve(scenes)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; without it these tests are skipped, but in CI they fail."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        problem = "no Chromium here: sudo apt-get install chromium-headless-shell"
        pytest.fail(problem, pytrace=False) if os.environ.get("CI") else pytest.skip(problem)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", f"--disable-features={UNUSED_FEATURES}"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page in a browser window, and everything that went wrong in it."""

    page: Page
    home: str
    wrong: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def go(self, path: str) -> None:
        """Load another page of the same service."""
        self.page.goto(self.home + path)

    def open_first(self) -> None:
        """Open the detail view of the first answer."""
        self.page.locator(".tile .tile-link").first.click()
        self.page.locator(".detail-side").wait_for()

    def note(self, text: str) -> None:
        self.wrong.append(text)

    def unexpected(self) -> list[str]:
        return [text for text in self.wrong if not any(part in text for part in self.expected)]


@dataclass
class Windows:
    """Windows that one test after another uses: most of what a new one costs is the start of its processes."""

    browser: Browser
    free: dict[str, list[Page]] = field(default_factory=dict)

    def take(self, options: dict[str, Any]) -> Page:
        if waiting := self.free.get(repr(options)):
            return waiting.pop()
        context = self.browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE)
        return context.new_page()

    def give_back(self, page: Page, options: dict[str, Any]) -> None:
        """Forget all that a test did: what it stored, what it held back, where its mouse was."""
        if page.evaluate("history.length") > LONG_HISTORY:
            page.context.close()
            return
        page.unroute_all(behavior="ignoreErrors")
        page.evaluate("localStorage.clear()")
        # Something small of the same service: for an empty page the browser would start a process, and end this one.
        page.goto(page.evaluate("location.origin") + "/health")
        page.mouse.move(0, 0)
        page.context.clear_cookies()
        self.free.setdefault(repr(options), []).append(page)


@pytest.fixture(scope="session")
def windows(browser: Browser) -> Windows:
    return Windows(browser)


@pytest.fixture
def visit(windows: Windows, site: Site) -> Iterator[Callable[..., Visit]]:
    """Open a page: ``visit("/map", width=360, dark=True)``; errors and requests to elsewhere fail the test.

    Visitors have signed in, but for ``signed_in=False``. ``expected`` are parts of messages that a test brings about on
    purpose; other options are those of a window.
    """
    visits: list[Visit] = []

    def open_page(
        path: str = "/", *, at: Site = site, width: int = 1280, height: int = 800, dark: bool = False, **options: Any
    ) -> Visit:
        expected, signed_in = options.pop("expected", ()), options.pop("signed_in", True)
        page = windows.take(options)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        new = Visit(page, at.url, expected=expected)
        closing.callback(windows.give_back, page, options)
        closing.enter_context(_watched(new, has_policy="bypass_csp" not in options))
        visits.append(new)
        if signed_in:
            page.context.request.post(f"{at.url}/v1/session", data={"token": TOKEN})
        new.go(path)
        return new

    with ExitStack() as closing:
        yield open_page
    for one in visits:
        assert not one.unexpected()


@contextmanager
def _watched(visit: Visit, *, has_policy: bool) -> Iterator[None]:
    page = visit.page
    handlers: dict[Any, Callable[[Any], Any]] = {
        # An answer of 400 and more is a console error, and so is a request to elsewhere, which the content security
        # policy forbids: to be told of each request as well would take as long as most of them.
        "console": lambda message: message.type in ("error", "warning") and visit.note(message.text),
        "pageerror": lambda error: visit.note(f"uncaught: {error}"),
    }
    if not has_policy:
        handlers["request"] = lambda request: (
            request.url.startswith((visit.home, "blob:")) or visit.note(f"outside: {request.url}")
        )
    for event, handler in handlers.items():
        page.on(event, handler)
    yield
    for event, handler in handlers.items():
        page.remove_listener(event, handler)
