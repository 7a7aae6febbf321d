"""ONNX Runtime, set up the way all our networks are run."""

from __future__ import annotations

from typing import Any

from diptych.errors import MissingPackageError


def onnx_session(model: bytes, threads: int) -> Any:
    """Return a runtime session of the network on that many threads of the processor."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPackageError("running a network", "onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # Threads that wait by spinning take the cores away from those that decode the next pictures.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
