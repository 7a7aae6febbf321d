from __future__ import annotations

from pathlib import Path

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


def test_a_new_network_takes_the_place_of_what_was_written_for_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats and names of before go when a network is written; those of other networks and of other people stay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = tmp_path / "diptych" / "networks"

    def describe(graph: GraphBuilder) -> None:
        graph.output("same", graph.node("Identity", graph.input("values", np.float32, ("items",))), ("items",))

    def there() -> set[str]:
        return {path.name for path in cached.glob("*")} - {"digests"}

    def written(name: str, *former: str) -> set[str]:
        before = there()
        Network.written_once(name, GraphBuilder, describe, 1, former_names=former)
        return there() - before

    with monkeypatch.context() as earlier:
        earlier.setattr(onnx_network, "_FORMAT", 1)
        (first,), (other,) = written("one"), written("other")
    (renamed,) = written("one of before")
    (cached / "somebody's").mkdir()
    assert there() == {first, other, renamed, "somebody's"}
    (new,) = written("one", "one of before")
    assert there() == {new, other, "somebody's"}
    assert written("one", "one of before") == set()
    assert (
        Network.written_once("one", GraphBuilder, describe, 1).run("same", {"values": np.ones(2, np.float32)}).sum()
        == 2
    )
