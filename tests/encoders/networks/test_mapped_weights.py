"""Tables of words are let go of and come back as they were; what a session wrote is never lost."""

from __future__ import annotations

import gc
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.networks import onnx_network
from diptych.encoders.networks.onnx_graph import GraphBuilder
from diptych.encoders.networks.onnx_network import MappedSession, Network, let_go_of_tables, unwritten

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is mapped")
_TABLE = np.random.default_rng(0).standard_normal((20_000, 64), dtype=np.float32)


class Mapping:
    """Stands for a session: maps a file as the runtime does, so that writing changes the memory and not the file."""

    def __init__(self, file: Path, *, written: int | None = None) -> None:
        with file.open("rb") as opened:
            self.bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
        if written is not None:
            self.bytes[written] = 7
        self.read = bytes(self.bytes)


def resident(file: Path) -> int:
    """Return how many kilobytes of a file are in the memory of this process."""
    total, is_file = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if not line.split()[0].endswith(":"):
            is_file = line.endswith(str(file.resolve()))
        elif is_file and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_network, "_TABLE_BYTES", 1 << 20)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "weights.bin"
    file.write_bytes(bytes(range(256)) * 4096)
    return file


@ON_LINUX
def test_a_network_answers_the_same_when_its_table_was_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def describe(graph: GraphBuilder) -> None:
        rows = graph.input("rows", np.int64, ("items",))
        graph.output("found", graph.node("Gather", graph.constant(_TABLE), rows), ("items", _TABLE.shape[1]))

    network = Network.written_once("a table", GraphBuilder, describe, 1)
    (weights,) = (tmp_path / "diptych" / "networks").glob(f"*/{onnx_network._PREPARED_WEIGHTS}")
    asked = {"rows": np.arange(0, len(_TABLE), 7)}
    before = network.run("found", asked)
    assert resident(weights) > 4000
    let_go_of_tables()
    assert resident(weights) == 0
    np.testing.assert_array_equal(network.run("found", asked), before)
    assert resident(weights) > 4000
    let_go_of_tables()
    assert resident(weights) == 0


@ON_LINUX
def test_what_was_written_when_it_was_opened_is_kept(file: Path) -> None:
    mapped = MappedSession(file, lambda: Mapping(file, written=5000))
    let_go_of_tables()
    assert mapped.session.bytes[5000] == 7
    assert bytes(mapped.session.bytes) == mapped.session.read


@ON_LINUX
def test_matrices_stay(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_network, "_TABLE_BYTES", (1 << 20) + 1)
    mapped = MappedSession(file, lambda: Mapping(file))
    let_go_of_tables()
    assert resident(file) == len(mapped.session.read) >> 10


@ON_LINUX
def test_what_others_have_mapped_of_the_file_stays(file: Path) -> None:
    """A session's places are those that came with it: others may go away, and theirs be anybody's afterwards."""
    other = Mapping(file)
    mapped = MappedSession(file, lambda: Mapping(file))
    let_go_of_tables()
    assert resident(file) == len(other.read) >> 10
    assert bytes(mapped.session.bytes) == mapped.session.read


@ON_LINUX
def test_a_session_that_is_gone_has_no_places(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = MappedSession(file, lambda: Mapping(file))
    monkeypatch.setattr(MappedSession, "let_go", lambda session: asked.append(session.file))
    asked: list[Path] = []
    let_go_of_tables()
    assert file.resolve() in asked
    del mapped
    gc.collect()
    asked.clear()
    let_go_of_tables()
    assert file.resolve() not in asked


def test_places_with_pages_of_their_own_are_told_from_the_file_s() -> None:
    def described(addresses: str, name: str, anonymous: int = 0, swapped: int = 0) -> list[str]:
        sizes = {"Rss": 64, "Anonymous": anonymous, "Swap": swapped, "SwapPss": 3}
        lines = (f"{size}: {kilobytes:>10} kB" for size, kilobytes in sizes.items())
        return [f"{addresses} rw-p 00000000 fe:00 123 {name}".rstrip(), *lines, "VmFlags: rd wr mr mw me ac"]

    lines = [
        *described("1000-2000", "/a/b.bin"),
        *described("2000-3000", "/a/b.bin", anonymous=4),
        *described("3000-4000", "/a/b.bin", swapped=4),
        *described("4000-5000", "/other/a/b.bin"),
        *described("5000-6000", ""),
        *described("7000-9000", "/a/b.bin"),
        *described("9000-a000", "/a/b.bin (deleted)"),
    ]
    assert unwritten(lines, "/a/b.bin") == [(0x1000, 0x2000), (0x7000, 0x9000)]
