"""Batches made ready while the device works on the ones before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.mnil.batch import Batch
from diptych.models.neural.mnil.pair_order import PairOrder
from diptych.models.neural.mnil.training_pairs import TrainingPairs
from diptych.models.neural.torch_package import torch_package

_AHEAD = 3


class BatchStream:
    """Gathers batches in a thread of its own and sends them to the device from pinned memory.

    Pictures are read row by row from an array in memory or in a mapped file, so that however many there are, no more
    than a few batches are held.
    """

    def __init__(self, pairs: TrainingPairs, batches: Sequence[PairOrder], *, margin: int, flip: bool, device: str):
        self._torch = torch_package()
        self._pairs = pairs
        self._batches = batches
        self._margin = margin
        self._flip = flip
        self._device = device

    def ready(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield the batches in order; ``rng`` draws how pictures are cut and turned."""
        waiting: queue.Queue[Batch | BaseException | None] = queue.Queue(_AHEAD)
        stopped = threading.Event()

        def offer(made: Batch | BaseException | None) -> None:
            while not stopped.is_set():
                try:
                    waiting.put(made, timeout=0.1)
                except queue.Full:
                    continue
                return

        def work() -> None:
            try:
                for order in self._batches:
                    if stopped.is_set():
                        return
                    offer(self._made(order, rng))
                offer(None)
            except BaseException as error:
                # Raised again where the batches are used: a thread that dies silently would leave training waiting.
                offer(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while (made := waiting.get()) is not None:
                if isinstance(made, BaseException):
                    raise made
                yield made
        finally:
            stopped.set()
            thread.join()

    def _made(self, order: PairOrder, rng: np.random.Generator) -> Batch:
        pairs, rows = self._pairs, order.texts.reshape(-1)
        lengths = pairs.lengths[rows]
        corners = rng.integers(self._margin + 1, size=(len(order), 2))
        mirrored = rng.random(len(order)) < (0.5 if self._flip else 0.0)
        return Batch(
            pictures=self._sent(np.take(pairs.pictures, order.pictures, axis=0)),
            codes=self._sent(pairs.codes[rows]),
            lengths=self._sent(lengths),
            groups=self._sent(np.asarray(order.pictures, dtype=np.int64)),
            labels=None if pairs.labels is None else self._sent(pairs.labels[rows].astype(np.float32)),
            corners=self._sent(corners),
            mirrored=self._sent(mirrored),
        )

    def _sent(self, values: AnyArray) -> Any:
        tensor = self._torch.from_numpy(values)
        if self._device == "cpu":
            return tensor
        return tensor.pin_memory().to(self._device, non_blocking=True)
