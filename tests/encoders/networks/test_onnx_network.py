from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
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
        get_inputs = session.get_inputs

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


def product() -> Any:
    graph = GraphBuilder()
    weights = graph.weight(np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32))
    graph.output("product", graph.node("MatMul", graph.input("rows", np.float32, ("n", 64)), weights), ("n", 48))
    return graph.model()


def test_a_network_is_written_once_and_again_when_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    n_written = 0

    def answer() -> bytes:
        def make() -> Any:
            nonlocal n_written
            n_written += 1
            return product()

        return Network.made_once("one", make, 1).run("product", {"rows": rows}).tobytes()

    first = answer()
    assert answer() == first
    assert n_written == 1
    (weights,) = tmp_path.rglob("*.onnx_data")
    weights.write_bytes(weights.read_bytes()[:100])
    assert answer() == first
    assert n_written == 2
