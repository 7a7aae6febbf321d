"""Showing a picture with the system's own program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from diptych.errors import InvalidInputError

_SECONDS_TO_FAIL = 2.0


def show(path: Path) -> None:
    """Open a picture as a double click would, without waiting for the program to end."""
    if not path.is_file():
        raise InvalidInputError(f"{path} is no longer there; bring the collection up to date with: diptych index")
    if sys.platform == "win32":
        os.startfile(path)
        return
    program = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        started = subprocess.Popen(
            [program, os.fspath(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        failed = started.wait(_SECONDS_TO_FAIL) != 0
    except subprocess.TimeoutExpired:
        # It is still running, so it is showing the picture.
        failed = False
    except OSError:
        failed = True
    if failed:
        raise InvalidInputError(f"no program for pictures was found here; the file is {path}")
