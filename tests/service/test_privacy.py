"""Nothing leaves the machine: the files that indexing, searching and serving write, and the addresses they name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import diptych

CALLS = "openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,connect,sendto,sendmsg"
PHOTOGRAPHS = [Path(diptych.__file__).parent / "data" / "photographs" / name for name in ("cat.jpg", "coffee.jpg")]
HARMLESS_PLACES = tuple(map(Path, ("/dev", "/proc")))
INDEX_SEARCH_SERVE = """
import json, subprocess, sys, urllib.request
folder = sys.argv[1]
diptych = [sys.executable, "-m", "diptych"]
subprocess.run([*diptych, "index", folder], check=True)
subprocess.run([*diptych, "search", folder, "a cat"], check=True)
serve = [*diptych, "serve", folder, "--port", "0", "--json"]
with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
    address = json.loads(server.stdout.readline())["address"].rstrip("/")
    try:
        with urllib.request.urlopen(address + "/v1/collections/photos/search?q=coffee") as answer:
            assert answer.status == 200
    finally:
        server.terminate()
"""
CARELESS = """
import os, socket, sys
open(os.path.expanduser("~/device-id"), "w").close()
os.mkdir(os.path.expanduser("~/queue"))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.53", 53))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("192.0.2.1", 443))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "temporary").mkdir(parents=True)
    return folder


def traced(home: Path, program: str, *words: object) -> list[str]:
    """Run a program with a home folder of its own, and return the system calls of all its processes."""
    if shutil.which("strace") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs strace: sudo apt-get install strace")
    logs = home.with_name("calls")
    logs.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DIPTYCH_"))},
        "HOME": str(home),
        "TMPDIR": str(home / "temporary"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    tracer = ["strace", "--seccomp-bpf", "-ff", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-o", logs / "of"]
    command = [*tracer, sys.executable, "-c", program, *words]
    done = subprocess.run(list(map(str, command)), env=environment, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line for log in logs.iterdir() for line in log.read_text(errors="replace").splitlines()]


def written(calls: list[str], folder: Path) -> set[Path]:
    """Return the paths that were made, moved to, or opened for writing."""
    opened = re.compile(r'^(?:openat\(\w+, |creat\()"(?P<path>[^"]*)", .*(?:O_WRONLY|O_RDWR|O_CREAT|creat).*= \d')
    made = re.compile(r'^(?:mkdir|rename|link|symlink)\w*\(.*"(?P<path>[^"]*)"[^"]*\) = 0')
    found = (pattern.match(call) for call in calls for pattern in (opened, made))
    return {folder / match["path"] for match in found if match}


def strangers(calls: list[str]) -> list[str]:
    """Return calls that name an address other than this machine's, or the port of name servers anywhere."""
    inet = [call for call in calls if "sa_family=AF_INET" in call]
    own = re.compile(r'inet_addr\("127\.|inet_pton\(AF_INET6, "::1"|sa_family=AF_INET6, .*"::ffff:127\.')
    return [call for call in inet if not own.search(call) or re.search(r"_port=htons\((53|853|5353)\)", call)]


def test_indexing_searching_and_serving_stay_on_this_machine(home: Path) -> None:
    photos = home / "photos"
    photos.mkdir()
    for path in PHOTOGRAPHS:
        shutil.copy(path, photos)
    calls = traced(home, INDEX_SEARCH_SERVE, photos)
    assert strangers(calls) == []
    own = (
        photos,
        home / ".cache" / "diptych",
        home / ".local" / "state" / "diptych",
        home / "temporary",
        *HARMLESS_PLACES,
    )
    above = {parent for place in own for parent in place.parents}
    assert {path for path in written(calls, home) if not any(path.is_relative_to(place) for place in own)} <= above


def test_the_trace_notices_what_would_leave(home: Path) -> None:
    calls = traced(home, CARELESS)
    assert {home / "device-id", home / "queue"} <= written(calls, home)
    assert len(strangers(calls)) == 2
