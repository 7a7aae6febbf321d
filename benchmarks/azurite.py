"""Azure's blob storage on this machine for tests: Azurite, Microsoft's emulator, from npm's package ``azurite``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from seaweed import free_ports

# Every Azurite has this account.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION, _CONTAINER, _READY_SECONDS, _THERE_ALREADY = "2021-08-06", "diptych", 60.0, 409


class Azurite:
    """A blob service on loopback with a container ``diptych``."""

    address = f"az://{_CONTAINER}"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        program = os.environ.get("AZURITE_BLOB") or shutil.which("azurite-blob")
        if program is None:
            raise FileNotFoundError("azurite-blob is not installed; run: npm install -g azurite")
        (port,) = free_ports(1)
        self._endpoint = f"http://127.0.0.1:{port}"
        where = ["--location", str(self._folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
        self._command = [program, *where, "--silent", "--skipApiVersionCheck"]
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, name: str = "") -> None:
        """Start the one server there is, whatever it is called, and wait for it."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._make_container()

    def kill(self, name: str = "") -> None:
        """End it; killed at once, an emulator forgets what it has acknowledged in the last seconds."""
        self._process.terminate()
        self._process.wait()

    def pause(self, name: str = "", *, resume: bool = False) -> None:
        """Freeze it, so that it accepts calls and answers none, or let it go on."""
        self._process.send_signal(signal.SIGCONT if resume else signal.SIGSTOP)

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs in its environment."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": self._endpoint,
        }

    def _make_container(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
            named = f"x-ms-date:{now}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}/{_ACCOUNT}/{_CONTAINER}\nrestype:container"
            signed = hmac.new(base64.b64decode(_KEY), ("PUT" + 12 * "\n" + named).encode(), hashlib.sha256).digest()
            headers = {
                "x-ms-date": now,
                "x-ms-version": _VERSION,
                "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(signed).decode()}",
                "Content-Length": "0",
            }
            address = f"{self._endpoint}/{_ACCOUNT}/{_CONTAINER}?restype=container"
            try:
                urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers)).close()
                return
            except urllib.error.HTTPError as problem:
                if problem.code == _THERE_ALREADY:
                    return
                raise
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.2)
