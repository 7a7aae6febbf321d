"""Processes that train one model together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from diptych.errors import InvalidInputError
from diptych.models.neural.torch_package import torch_package


class Workers:
    """The processes that ``torchrun`` started, or this one alone.

    Each process encodes its part of a batch; points are exchanged, so that every anchor sees the negatives of all, and
    the sum of the gradients is that of one process with the whole batch.

    >>> from diptych.models.neural.mnil.workers import Workers
    >>> workers = Workers.found("cpu")
    >>> workers.rank, workers.size
    (0, 1)
    """

    def __init__(self, rank: int, size: int) -> None:
        self._torch = torch_package()
        self.rank = rank
        self.size = size

    @classmethod
    def found(cls, device: str) -> Workers:
        """Join the group of processes that the environment names; nothing happens outside ``torchrun``."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(0, 1)
        distributed = torch_package("torch.distributed")
        if not distributed.is_initialized():
            distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
        return cls(distributed.get_rank(), distributed.get_world_size())

    def own_device(self, device: str) -> str:
        """Return this process's device: processes on one machine take its graphics cards in turn."""
        return f"cuda:{int(os.environ.get('LOCAL_RANK', '0'))}" if device == "cuda" and self.size > 1 else device

    def check_batch(self, n_pictures: int) -> None:
        """Raise unless a batch of so many pictures can be shared out evenly."""
        if n_pictures % self.size:
            raise InvalidInputError(
                f"a batch of {n_pictures} pictures cannot be shared by {self.size} processes; choose a multiple"
            )

    def gathered(self, rows: Any) -> Any:
        """Return the rows of all processes; only those of this one carry gradients."""
        if self.size == 1:
            return rows
        parts = [self._torch.empty_like(rows) for _ in range(self.size)]
        self._distributed.all_gather(parts, rows.detach().contiguous())
        parts[self.rank] = rows
        return self._torch.cat(parts)

    def add(self, tensors: Sequence[Any]) -> None:
        """Replace tensors by their sums over the processes, in one message."""
        if self.size == 1:
            return
        flat = self._torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._distributed.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def average(self, tensors: Sequence[Any]) -> None:
        """Replace tensors by their means over the processes."""
        if self.size > 1 and tensors:
            self.add(tensors)
            for tensor in tensors:
                tensor.div_(self.size)

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            self._distributed.barrier()

    @property
    def _distributed(self) -> Any:
        return torch_package("torch.distributed")
