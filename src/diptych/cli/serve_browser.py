"""Opening the page once it is there."""

from __future__ import annotations

import threading
import time
import urllib.request
import webbrowser
from contextlib import suppress

_PATIENCE_SECONDS = 60.0


def open_when_ready(address: str) -> None:
    """Open the page in the browser as soon as the service answers, without holding it up."""
    threading.Thread(target=_open, args=(address,), name="browser", daemon=True).start()


def _open(address: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(f"{address}health", timeout=5).close()
            webbrowser.open(address)
            return
        time.sleep(0.1)
