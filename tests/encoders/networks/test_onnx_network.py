from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

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
