from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diptych.encoders import read_picture
from diptych.errors import InvalidInputError
from tests.encoders.image.hostile_files import HostileFile, make_hostile_files

MEMORY_LIMIT = 250_000_000
SECONDS = 120
NOBODY = 65_534

# A process of its own: its peak memory is that of the pictures alone, and a hang or a crash does not end the tests.
READER = """
import json, resource, sys
from diptych.encoders import ColourEdgeHistograms

paths = json.load(sys.stdin)
encoder = ColourEdgeHistograms(size=96, levels=(1,), n_threads=2)
encoder.transform([bytes.fromhex(sys.argv[1])])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
outcomes = {}
for batch in encoder.stream(paths):
    outcomes.update(dict.fromkeys(batch.rows, ""))
    outcomes.update(batch.failures)
grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(json.dumps({"outcomes": [outcomes[row] for row in range(len(paths))], "grown": grown}))
"""


@pytest.fixture(scope="module")
def hostile() -> Iterator[list[HostileFile]]:
    # Sockets need a short path, which pytest's own folders are not.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield make_hostile_files(Path(folder) / "h")


def test_there_are_enough_of_them(hostile: list[HostileFile]) -> None:
    assert len(hostile) >= 500
    assert len(Counter(file.kind for file in hostile)) >= 20
    assert len({file.path for file in hostile}) == len(hostile)


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of a POSIX system")
def test_every_one_is_read_or_refused_in_bounded_memory(hostile: list[HostileFile]) -> None:
    good = next(file for file in hostile if file.kind == "one pixel")
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", READER, good.path.read_bytes().hex()]
    paths = json.dumps([str(file.path) for file in hostile])
    run = subprocess.run(command, input=paths, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    for file, outcome in zip(hostile, report["outcomes"], strict=True):
        expected = file.verdict == "either" or (outcome == "") == (file.verdict == "read")
        assert expected, f"{file.kind}: {file.path!r} should be {file.verdict}, but {outcome or 'it was read'}"
        assert outcome.isprintable()
        if outcome:
            assert outcome.startswith(str(file.path.parent))
    assert report["grown"] < MEMORY_LIMIT


def test_one_message_says_what_the_file_is(hostile: list[HostileFile]) -> None:
    reasons = {}
    for file in hostile:
        if file.verdict == "refused" and file.kind != "a pixel bomb":
            with pytest.raises(InvalidInputError) as caught:
                read_picture(file.path)
            reasons[file.kind] = str(caught.value)
    for kind, words in {
        "pdf in disguise": "it is a PDF document",
        "postscript in disguise": "it is a PostScript document",
        "drawing in disguise": "it declares entities",
        "page in disguise": "it is a web page",
        "heic in disguise": "meta",
        "text in disguise": "it is text",
        "empty": "it is empty",
        "a folder": "is a folder",
        "absent": "does not exist",
    }.items():
        assert words in reasons[kind]


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "ppm", "gif", "tif", "webp"])
def test_a_pixel_bomb_is_refused_by_its_header(hostile: list[HostileFile], suffix: str) -> None:
    for file in hostile:
        if file.kind == "a pixel bomb" and file.path.suffix == f".{suffix}":
            with pytest.raises(InvalidInputError, match=file.path.name):
                read_picture(file.path)


def test_unreadable_permission_is_named(hostile: list[HostileFile]) -> None:
    locked = next(file for file in hostile if file.kind == "no permission")
    with an_ordinary_user(), pytest.raises(InvalidInputError, match=r"locked\.jpg cannot be opened: Permission denied"):
        read_picture(locked.path)


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Give up for a while what lets the superuser read everything."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has other permissions")
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
