from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from diptych.encoders.networks import onnx_network
from diptych.encoders.networks.onnx_graph import GraphBuilder
from diptych.encoders.networks.onnx_network import Network
from diptych.errors import ModelFileError, NoMemoryError


def filling_network(path: Path) -> Network:
    """A network that fills an array of whatever size it is asked for."""
    shape = onnx.helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [None])
    filled = onnx.helper.make_tensor_value_info("filled", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node("ConstantOfShape", ["shape"], ["filled"])
    graph = onnx.helper.make_graph([node], "filling", [shape], [filled])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return Network(path, n_threads=1)


def test_too_little_memory_is_one_clear_error(tmp_path: Path) -> None:
    network = filling_network(tmp_path / "network.onnx")
    assert network.run("filled", {"shape": np.array([2, 3])}).shape == (2, 3)
    with pytest.raises(NoMemoryError, match=r"not enough memory .* smaller batches") as raised:
        network.run("filled", {"shape": np.array([10**15])})
    assert "\n" not in str(raised.value)
    with pytest.raises(ModelFileError, match="a network cannot be run"):
        network.run("filled", {"shape": np.array([-3])})


def test_no_more_runs_go_on_at_once_than_there_are_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime keeps the memory of as many runs as ever went on at once."""
    monkeypatch.setattr(onnx_network, "available_processors", lambda: 2)
    network = filling_network(tmp_path / "network.onnx")
    session, running, finish, most = network._session, [0], threading.Event(), [0]

    class Slow:
        def run(self, outputs: list[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
            running[0] += 1
            most[0] = max(most[0], running[0])
            finish.wait(30)
            running[0] -= 1
            return session.run(outputs, inputs)

    monkeypatch.setattr(network, "_session", Slow())
    sizes: list[int] = []
    ask = lambda size: sizes.append(network.run("filled", {"shape": np.array([size])}).size)  # noqa: E731
    threads = [threading.Thread(target=ask, args=(size,)) for size in range(6)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 30
    while running[0] < 2 and time.monotonic() < until:
        time.sleep(0.01)
    # The others have begun, too, and would be there by now.
    time.sleep(0.2)
    finish.set()
    for thread in threads:
        thread.join()
    assert most[0] == 2
    assert sorted(sizes) == list(range(6))


def product(graph: GraphBuilder) -> None:
    weights = graph.weight(np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32))
    graph.output("product", graph.node("MatMul", graph.input("rows", np.float32, ("n", 64)), weights), ("n", 48))


def test_a_network_is_kept_as_the_processor_has_it_and_answers_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written plainly for a processor that nobody names, and anew for another version of the runtime."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)

    def answer() -> bytes:
        return Network.written_once("one", GraphBuilder, product, 1).run("product", {"rows": rows}).tobytes()

    def files(name: str) -> list[Path]:
        return sorted((tmp_path / "diptych" / "networks").glob(f"*/{name}"))

    with monkeypatch.context() as unknown:
        unknown.setattr(onnx_network, "processor_kind", lambda: "")
        plain = answer()
    assert len(files("network.onnx")) == 1
    assert not files("prepared.onnx")
    monkeypatch.setattr(onnx_network, "processor_kind", lambda: "this one")
    assert answer() == plain
    (prepared,) = files("prepared.onnx")
    # A plain one stays for those whom it serves: a graphics card, for example.
    assert len(files("network.onnx")) == 1
    written = prepared.stat().st_mtime_ns
    assert answer() == plain
    assert prepared.stat().st_mtime_ns == written
    monkeypatch.setattr(onnxruntime, "__version__", "another one")
    assert answer() == plain
    assert prepared.stat().st_mtime_ns > written


def test_what_is_prepared_lies_where_every_processor_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product of x86 reads 64 bytes at a time of what was laid out for it, and ends the process anywhere else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    table, matrix = (rng.normal(size=size).astype(np.float32) for size in ((13, 56), (56, 24)))

    def describe(graph: GraphBuilder) -> None:
        rows = graph.node("Gather", graph.weight(table), graph.input("places", np.int64, ("n",)), axis=0)
        graph.output("product", graph.affine(rows, matrix), ("n", 24))

    network = Network.written_once("odd sizes", GraphBuilder, describe, 1)
    (prepared,) = tmp_path.rglob("prepared.onnx")
    places = [
        int(place)
        for tensor in onnx.load(prepared, load_external_data=False).graph.initializer
        for entry in tensor.external_data
        if entry.key == "offset" or entry.key.startswith("prepacked")
        for place in entry.value.rpartition("|")[2].split(";")[::3]
    ]
    assert len(places) >= 3
    assert all(place % 64 == 0 for place in places)
    found = network.run("product", {"places": np.arange(13)})
    np.testing.assert_allclose(found, table @ matrix, rtol=1e-5, atol=1e-5)


def test_large_networks_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(onnx_network, "_MOST_PREPARED_BYTES", 1000)
    Network.written_once("one", GraphBuilder, product, 1)
    assert {path.name for path in tmp_path.rglob("*.onnx")} == {"network.onnx"}


def test_processors_are_told_apart_where_the_system_tells_of_them() -> None:
    said = onnx_network.processor_kind()
    assert bool(said) == Path("/proc/cpuinfo").is_file()
    assert "processor" not in {line.partition(":")[0].strip() for line in said.splitlines()}
