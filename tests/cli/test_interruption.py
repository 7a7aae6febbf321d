"""The program in a terminal, as a person sees it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import Run, World

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

PATIENCE = 90.0
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A pseudo-terminal with a program in it."""

    def __init__(self, folder: Path, *words: str | Path, **environment: str) -> None:
        self._master, slave = pty.openpty()
        self.program = subprocess.Popen(
            [sys.executable, "-m", "diptych", *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
            close_fds=True,
            start_new_session=True,
            # Whoever runs the tests in the background may ignore Ctrl-C, and children would inherit that.
            preexec_fn=_heed_interrupts,
        )
        os.close(slave)
        self.raw = ""

    @property
    def text(self) -> str:
        return CODES.sub("", self.raw).replace("\r", "")

    def wait_for(self, words: str, times: int = 1) -> None:
        end = time.monotonic() + PATIENCE
        while self.text.count(words) < times:
            assert time.monotonic() < end, f"waited for {words!r}, saw:\n{self.text}"
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.raw += os.read(self._master, 65536).decode(errors="replace")
                except OSError:
                    break
        assert self.text.count(words) >= times, f"waited for {words!r}, saw:\n{self.text}"

    def close(self) -> int:
        try:
            return self.program.wait(PATIENCE)
        finally:
            os.close(self._master)


def test_an_interrupted_index_keeps_what_is_done_and_goes_on(run: Run, scenery: World, nothing_indexed: Path) -> None:
    """Ctrl-C in the middle: no traceback, a hint, and the next run does the rest."""
    world = scenery.copied(nothing_indexed / "pictures")
    # Many more that differ only after the end of the picture, so that there is a middle.
    for number in range(640):
        content = (world.pictures / f"scene-{number % 60:06d}.png").read_bytes()
        (world.pictures / f"copy-{number}.png").write_bytes(content + str(number).encode())
    terminal = Terminal(nothing_indexed, "index", "pictures", "--retriever", world.retriever)
    terminal.wait_for("indexing 700 pictures")
    terminal.wait_for("64/700")
    os.killpg(terminal.program.pid, signal.SIGINT)
    terminal.wait_for("the same command goes on")
    assert terminal.close() == 130
    assert "Traceback" not in terminal.text
    done = run("index", "pictures")
    assert done.exit_code == 0, done.stderr
    counts = dict(re.findall(r"([\d,]+) (added|unchanged)", done.stdout)[::-1])
    assert "700 pictures are searchable" in done.stdout
    assert "unchanged" in done.stdout
    assert len(counts) == 2
