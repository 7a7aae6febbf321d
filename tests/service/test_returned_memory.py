"""What a worker has freed goes back to the system, which glibc does not do by itself."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Blocks too large for Python's own heap and too small for pages of their own; the last one holds the top of the heap.
_PROGRAM = """
import threading, time
from diptych.service.operations import workers

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems return memory by themselves")
def test_freed_memory_is_returned_within_a_turn() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 80_000
