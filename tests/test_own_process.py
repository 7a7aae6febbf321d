"""A program of ours leaves out what other programs could need, and nothing that it needs itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_program_ends_as_it_should(tmp_path: Path) -> None:
    """What is to be done at the end is done, and the status is the program's, although nothing is looked through."""
    program = (
        "import atexit, gc, sys, tempfile\n"
        "from diptych import own_process\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
        "own_process.claim()\n"
        f"kept = tempfile.TemporaryDirectory(dir={str(tmp_path)!r})\n"
        "atexit.register(print, 'last words')\n"
        f"stream = open({str(tmp_path / 'written')!r}, 'w')\n"
        "stream.write('whole')\n"
        "sys.exit(3)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.split("\n"), run.stderr) == (3, ["last words", "True", ""], "")
    assert [path.name for path in tmp_path.iterdir()] == ["written"]
    assert (tmp_path / "written").read_text() == "whole"


def test_a_program_that_has_started_keeps_what_is_there_and_looks_through_what_comes() -> None:
    program = (
        "import gc, weakref\n"
        "from diptych import own_process\n"
        "own_process.claim()\n"
        "own_process.settle()\n"
        "class Ring: pass\n"
        "ring = Ring(); ring.itself = ring; gone = weakref.ref(ring); del ring\n"
        "held = [[] for _ in range(20_000)]\n"
        "print(gc.get_freeze_count() > 0, gone() is None)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "True"]
