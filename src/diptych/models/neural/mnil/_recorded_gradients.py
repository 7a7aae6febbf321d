"""The gradients of a batch as one task of the graphics card, recorded once: hundreds of short ones keep it waiting."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from diptych.models.neural._torch import torch_package
from diptych.models.neural.mnil._data import Batch

# Libraries choose their algorithms and make their tables in the first ones, which cannot be recorded.
_UNRECORDED = 3


class RecordedGradients:
    """Does ``work``, which adds gradients to ``tensors`` and returns sums, and repeats its record on later batches.

    What is drawn comes from ``generator`` or from PyTorch's own, and goes on from batch to batch. A batch of another
    shape is worked on as ever, and all of them are where recording fails.
    """

    def __init__(self, work: Callable[[Batch], Any], tensors: Sequence[Any], generator: Any) -> None:
        self._torch = torch_package()
        self._work = work
        self._tensors = tensors
        self._generator = generator
        self._n_done = 0
        self._graph: Any = None

    def __call__(self, batch: Batch) -> Any:
        """Give the tensors the gradients of a batch, and return its sums."""
        self._n_done += 1
        if self._n_done == _UNRECORDED + 1:
            self._record(batch)
        if self._graph is None or _shapes(batch) != _shapes(self._batch):
            return self._work(batch)
        for held, given in zip(self._batch, batch, strict=True):
            if held is not None:
                held.copy_(given, non_blocking=True)
        self._graph.replay()
        for tensor, slope in zip(self._tensors, self._slopes, strict=True):
            tensor.grad = slope
        return self._sums.clone()

    def _record(self, batch: Batch) -> None:
        self._batch = Batch(*(None if part is None else part.clone() for part in batch))
        graph = self._torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        try:
            # Another thread sends the next batches meanwhile.
            with self._torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._sums = self._work(self._batch)
        except RuntimeError as error:
            warnings.warn(f"training goes on without a record of its steps, and is slower: {error}", stacklevel=2)
        else:
            self._graph = graph
        self._slopes = [tensor.grad for tensor in self._tensors]
        for tensor in self._tensors:
            tensor.grad = None


def _shapes(batch: Batch) -> list[tuple[int, ...] | None]:
    return [None if part is None else tuple(part.shape) for part in batch]
