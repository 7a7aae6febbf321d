"""A small collection of painted scenes, and real servers on this machine that serve it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from httpx import create_ssl_context

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.collection.root import trust_root
from diptych.collection.store.sqlite import SqliteStore
from diptych.collection.store.store import Store
from diptych.data import load_dataset
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA
from diptych.service.app import create_app
from diptych.service.operations.server import listen, server_config
from diptych.service.settings import Limits, Settings
from tests.collection.store.conftest import postgres_address, postgres_server, store

__all__ = ["postgres_address", "postgres_server", "store"]

N_SCENES = 60
TOKEN = "a-token-that-only-the-tests-know"


@dataclass
class RunningService:
    """A server in a thread of its own; ``folders`` are the roots of what it serves."""

    settings: Settings
    folders: dict[str, Path]
    port: int
    server: uvicorn.Server = field(repr=False)
    thread: threading.Thread = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        assert self.settings.token is not None
        return self.settings.token

    @property
    def headers(self) -> dict[str, str]:
        """What lets a program write."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def context(self) -> Any:
        return self.server.config.loaded_app.state.context

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=30)
        assert not self.thread.is_alive()


@dataclass
class ServiceProcess:
    """``diptych serve`` as people run it."""

    url: str
    process: subprocess.Popen[str] = field(repr=False)
    log: Path = field(repr=False)
    sign_in: str = field(default="", repr=False)

    def wait_until_ready(self, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/ready").status_code == 200:
                    return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        pytest.fail(f"not ready within {seconds} s: {self.log.read_text()}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def place(request: pytest.FixtureRequest, store: Store) -> str:
    """Where other processes find the store."""
    return str(store.folder) if isinstance(store, SqliteStore) else request.getfixturevalue("postgres_address")


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """Every client of httpx reads the certificates of the machine again, which takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", cache(create_ssl_context), raising=False)
        yield


@pytest.fixture
def service_process(own_scene_collection: Path, tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Start ``diptych serve`` on the test's own scenes with further arguments; its log goes to a file."""
    started: list[ServiceProcess] = []

    def start(*words: str, token: str | None = TOKEN, **environment: str) -> ServiceProcess:
        log = tmp_path / f"log-{len(started)}"
        own = {"XDG_STATE_HOME": str(tmp_path / "state"), **({} if token is None else {"DIPTYCH_TOKEN": token})}
        command = [sys.executable, "-m", "diptych", "serve", str(own_scene_collection), "--port", "0", *words]
        with log.open("w") as stream:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stream, text=True, env={**os.environ, **own, **environment}
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, log.read_text()
        told = json.loads(line) if "--json" in words else {"address": line.split()[-1]}
        service = ServiceProcess(told["address"].rstrip("/"), process, log, told.get("sign_in", ""))
        started.append(service)
        service.wait_until_ready()
        return service

    yield start
    for service in started:
        if service.process.poll() is None:
            service.end()
        if service.process.stdout is not None:
            service.process.stdout.close()


@pytest.fixture(scope="session")
def scene_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 60 scenes with its collection in ``.diptych``; tests that write take ``own_scene_collection``."""
    base = tmp_path_factory.mktemp("scenes")
    pictures = write_folder(base / "scenes", N_SCENES, size=64)
    entries = json.loads((pictures / "captions.json").read_text())["pictures"]
    (pictures / "captions.json").unlink()
    retriever = Retriever(
        image_encoder=ColourEdgeHistograms(size=32),
        text_encoder=TfidfTopics(n_components=40),
        model=CCA(n_components=16),
        name="scenes",
        cache=False,
    ).fit(load_dataset("scenes", n_train=N_SCENES, n_test=10, size=32).train, baseline=None)
    records = [
        Record(
            pictures / entry["file"],
            captions=entry["captions"],
            labels=[entry["label"]],
            metadata={
                "colour": entry["objects"][0]["colour"],
                "shape": entry["objects"][0]["kind"],
                "objects": len(entry["objects"]),
            },
        )
        for entry in entries
    ]
    with Collection.create(pictures / ".diptych", retriever, root=pictures) as collection:
        assert collection.add(records).added == N_SCENES
    return pictures


@pytest.fixture
def own_scene_collection(scene_collection: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    folder = Path(shutil.copytree(scene_collection, tmp_path / "scenes", symlinks=True))
    trust_root(folder / ".diptych", folder)
    return folder


@pytest.fixture
def running_service(own_scene_collection: Path) -> Iterator[Callable[..., RunningService]]:
    """Start servers: ``running_service(read_only=True, limits={"burst": 5})`` overrides settings.

    Without ``collections`` each serves the test's own copy of the scenes under the name ``scenes``.
    """
    started: list[RunningService] = []

    def start(**overrides: Any) -> RunningService:
        started.append(_service({"scenes": own_scene_collection}, overrides))
        return started[-1]

    yield start
    for service in started:
        service.stop()


@pytest.fixture
def service(running_service: Callable[..., RunningService]) -> RunningService:
    """Return a server of the test's own scenes."""
    return running_service()


@pytest.fixture
def client(service: RunningService) -> Iterator[httpx.Client]:
    """Send the token to it."""
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_service(
    scene_collection: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., RunningService]]:
    """Do the same for tests that change nothing another one would see: equal settings get the same server."""
    started: dict[str, RunningService] = {}

    def start(**overrides: Any) -> RunningService:
        key = repr(sorted(overrides.items()))
        if key not in started:
            folder = Path(
                shutil.copytree(scene_collection, tmp_path_factory.mktemp("shared") / "scenes", symlinks=True)
            )
            started[key] = _service({"scenes": folder}, dict(overrides))
        return started[key]

    yield start
    for service in started.values():
        service.stop()


def _service(usual: dict[str, Path], overrides: dict[str, Any]) -> RunningService:
    folders = overrides.pop("collections", None) or usual
    limits = Limits(**{"requests_per_second": 0.0, **overrides.pop("limits", {})})
    collections = {name: _collection_in(folder) for name, folder in folders.items()}
    roots = {name: Path(folder) for name, folder in folders.items() if collections[name] != Path(folder)}
    settings = Settings(**{"collections": collections, "roots": roots, "token": TOKEN, "limits": limits, **overrides})
    return _started(settings, {name: Path(folder) for name, folder in folders.items()})


@pytest.fixture(scope="module")
def scene_service(scene_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """One server for all tests of a module that leave its copy of the scenes as they found it."""
    folder = Path(shutil.copytree(scene_collection, tmp_path_factory.mktemp("served") / "scenes", symlinks=True))
    limits = Limits(requests_per_second=0.0)
    service = _started(
        Settings(collections={"scenes": folder / ".diptych"}, roots={"scenes": folder}, token=TOKEN, limits=limits),
        {"scenes": folder},
    )
    yield service
    service.stop()


@pytest.fixture
def reader(scene_service: RunningService) -> Iterator[httpx.Client]:
    """Only read, from the server of the module."""
    with httpx.Client(base_url=scene_service.url, timeout=30) as opened:
        yield opened


def _collection_in(folder: Path) -> Path:
    inside = Path(folder) / ".diptych"
    return inside if inside.is_dir() else Path(folder)


def _started(settings: Settings, folders: dict[str, Path]) -> RunningService:
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(server_config(create_app(settings), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        assert time.monotonic() < deadline, "the service did not start within 30 s"
        time.sleep(0.01)
    return RunningService(settings, folders, port, server, thread)
