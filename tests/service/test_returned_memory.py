"""What a worker has freed goes back to the system, which glibc does not do by itself."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Blocks too large for Python's own heap and too small for pages of their own; the last one holds the top of the heap.
_MEMORY = """
import threading, time
from diptych import own_process
from diptych import own_process
from diptych.service.operations import workers

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
"""
_PROGRAM = """
blocks = [bytes(2000) for _ in range(50_000)]
last = bytes(2000)
full = anonymous()
del blocks
time.sleep(0.5)
assert anonymous() > full - 20_000, "the system had it back before"
workers._RETURN_SECONDS = 0.1
threading.Thread(target=workers._return_memory, daemon=True).start()
until = time.monotonic() + 30
while anonymous() > full - 80_000 and time.monotonic() < until:
    time.sleep(0.1)
print(full - anonymous())
"""


# Once larger blocks have been freed, glibc takes a megabyte from the heap, where smaller ones keep it in its place.
_LARGE = """
own_process.keep_heaps_small(2)
before = bytes(20 << 20)
del before
blocks, small = [], []
for _ in range(100):
    blocks.append(b"x" * (1 << 20))
    small.append(b"x" * (100 << 10))
full = anonymous()
del blocks
print(full - anonymous())
"""
_WEIGHTS = """
turns = threading.Semaphore(0)
workers.let_go_of_tables = turns.release
workers._RETURN_SECONDS = 0.01
threading.Thread(target=workers._return_memory, daemon=True).start()
print(all(turns.acquire(timeout=30) for _ in range(3)))
"""
_KEPT = """
own_process.keep_freed_memory()
blocks = [b"x" * (8 << 20) for _ in range(12)]
full = anonymous()
del blocks
print(full - anonymous())
"""
# As the service is started: nothing has imported PyArrow before.
_POOL = """
import sys
assert "pyarrow" not in sys.modules
own_process.keep_heaps_small(2)
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems return memory by themselves")


@ON_GLIBC
def test_freed_memory_is_returned_within_a_turn() -> None:
    assert _returned(_PROGRAM) > 80_000


@ON_GLIBC
def test_large_blocks_are_returned_at_once() -> None:
    assert _returned(_LARGE) > 90_000


@ON_GLIBC
def test_processes_that_fill_large_blocks_all_the_time_keep_them() -> None:
    assert _returned(_KEPT) < 20_000


def test_tables_of_words_are_let_go_of_again_and_again() -> None:
    assert _said(_WEIGHTS) == "True"


@pytest.mark.parametrize(("chosen", "taken"), [(None, "system"), ("mimalloc", "mimalloc")])
def test_tables_take_from_the_heaps_that_are_given_back(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, taken: str
) -> None:
    """PyArrow's own heaps keep what was freed; whoever has set its variable has it that way."""
    variable = "ARROW_DEFAULT_MEMORY_POOL"
    monkeypatch.delenv(variable, raising=False) if chosen is None else monkeypatch.setenv(variable, chosen)
    assert _said(_POOL) == taken


def _returned(program: str) -> int:
    """Return the kilobytes that a program says went back."""
    return int(_said(program))


def _said(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", _MEMORY + program], capture_output=True, text=True, check=True)
    return done.stdout.strip()
