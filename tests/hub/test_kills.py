"""A model of 1.2 GB, whose program is killed at 20, 50 and 80 %: nothing comes twice, and memory stays small."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.doubles.hub import FakeHub, RemoteFile, noise, onnx_repository

SIZE = 1_200_000_000
# The peak is asked of the process itself: what `wait` tells includes what it had before it became another program.
CODE = """
import resource, sys
from pathlib import Path
from diptych.cli import main
sys.argv[1:] = ["models", "get", "hub:owner/large", "--yes", "--quiet"]
try:
    main()
finally:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(status["VmHWM"].split()[0], file=sys.stderr)
"""


def test_killed_three_times_it_arrives_once(hub: FakeHub, models: Path) -> None:
    pictures = RemoteFile(size=SIZE * 3 // 4, make=noise)
    texts = RemoteFile(size=SIZE // 4, make=noise)
    hub.add("owner/large", {**onnx_repository(), "onnx/vision_model.onnx": pictures, "onnx/text_model.onnx": texts})
    for share in (0.2, 0.5, 0.8):
        process = subprocess.Popen([sys.executable, "-c", CODE], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while hub.sent < share * SIZE and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    folder = models / "owner--large"
    assert ended.stdout == f"{folder}\n"
    assert (folder / "onnx" / "vision_model.onnx").stat().st_size == pictures.size
    assert hub.sent <= 1.02 * SIZE
    assert int(ended.stderr.split()[-1]) <= 200_000
