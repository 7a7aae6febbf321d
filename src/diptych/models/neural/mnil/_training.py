"""How MNiL's two networks are trained together: batches, epochs, checkpoints, several processes.

This module is imported when a training starts: nothing else needs PyTorch.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Measure, RecallAtK, Relevance, SameLabel, SharedLabel, evaluate
from diptych.models.neural._torch import Descent
from diptych.models.neural._training_loop import CheckpointFile, TrainingLoop
from diptych.models.neural.mnil._items import PairOrder, TrainingPairs
from diptych.models.neural.mnil._networks import Networks
from diptych.models.neural.mnil._objective import RankingObjective
from diptych.models.neural.mnil._parameters import EpochRecord, MNiLParameters, Progress

FILE_NAME = "mnil.safetensors"
WARM_UP_SHARE = 0.05
LARGEST_SLOPE = 8.0
"""Entries of gradients are clamped to ±8, as in the code the authors of the method released."""


class Workers:
    """The processes that ``torchrun`` started, or this one alone.

    Each process encodes its part of a batch; points are exchanged, so that every anchor sees the negatives of all, and
    the sum of the gradients is that of one process with the whole batch.
    """

    def __init__(self, device: str) -> None:
        self.rank = 0
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.device = device
        if self.size == 1:
            return
        if not distributed.is_initialized():
            distributed.init_process_group("nccl" if device == "cuda" else "gloo")
        self.rank = distributed.get_rank()
        # Processes on one machine take its graphics cards in turn.
        self.device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device

    def gathered(self, rows: Any) -> Any:
        """Return the rows of all processes; only those of this one carry gradients."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        distributed.all_gather(parts, rows.detach().contiguous())
        parts[self.rank] = rows
        return torch.cat(parts)

    def add(self, tensors: Sequence[Any]) -> None:
        """Replace tensors by their sums over the processes."""
        for tensor in tensors if self.size > 1 else ():
            distributed.all_reduce(tensor)

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            distributed.barrier()


@dataclass(frozen=True)
class SharedCheckpoint(CheckpointFile):
    """A checkpoint that the first process writes while the others wait."""

    workers: Workers

    def write(self, arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> None:
        """Put the state in place of the one before."""
        if self.workers.rank == 0:
            super().write(arrays, facts)
        self.workers.wait()


class Batch(NamedTuple):
    """Tensors of one process's part of a step."""

    pictures: Any
    word_ids: Any  # as the lengths, ``texts_per_picture`` consecutive rows for each picture
    lengths: Any
    groups: Any  # the pictures' numbers
    labels: Any  # indicator rows of the texts, or None
    corners: Any
    mirrored: Any


def ready_batches(
    pairs: TrainingPairs,
    orders: Sequence[PairOrder],
    *,
    margin: int,
    flip: bool,
    device: str,
    rng: np.random.Generator,
) -> Iterator[Batch]:
    """Yield batches on the device; ``rng`` draws by how many pixels of ``margin`` pictures move, and which turn."""

    def sent(values: AnyArray) -> Any:
        tensor = torch.from_numpy(values)
        return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)

    for order in orders:
        rows = order.texts.reshape(-1)
        corners = rng.integers(margin + 1, size=(len(order), 2))
        mirrored = rng.random(len(order)) < (0.5 if flip else 0.0)
        yield Batch(
            pictures=sent(np.take(pairs.pictures, order.pictures, axis=0)),
            word_ids=sent(pairs.word_ids[rows]),
            lengths=sent(pairs.lengths[rows]),
            groups=sent(np.asarray(order.pictures, dtype=np.int64)),
            labels=None if pairs.labels is None else sent(pairs.labels[rows].astype(np.float32)),
            corners=sent(corners),
            mirrored=sent(mirrored),
        )


class JointTraining:
    """Trains networks on pairs; what an epoch draws depends on the seed and its number alone, so that it can go on."""

    def __init__(
        self,
        model: MNiLParameters,
        networks: Networks,
        pairs: TrainingPairs,
        held_out: TrainingPairs | None,
        workers: Workers,
    ) -> None:
        self._model = model
        self._networks = networks
        self._pairs = pairs
        self._held_out = held_out
        self._workers = workers
        self._objective = RankingObjective(model, len(pairs))
        momentum = model.momentum if model.optimizer == "sgd" else None
        self._descents = {
            group: Descent(tensors, model.weight_decay, momentum=momentum) for group, tensors in self._groups().items()
        }
        self._generator = torch.Generator(networks.device)
        self._n_steps = model.epochs * -(-len(self._batches(0)) // model.accumulate)

    def run(self, folder: Path | None, identity: str, progress: Progress | None) -> list[EpochRecord]:
        """Train to the end, from the checkpoint in ``folder`` where there is one; the best epoch is kept."""
        loop = TrainingLoop(
            self._model.epochs,
            self._model.patience,
            None if folder is None else SharedCheckpoint(folder / FILE_NAME, identity, self._workers),
            progress if self._workers.rank == 0 else None,
            keep_first=True,
        )
        return loop.run([self._networks], list(self._descents.values()), self._epoch, EpochRecord)

    def _groups(self) -> dict[str, list[Any]]:
        """Return the tensors that learn, by the rate that they learn at."""
        self._networks.image.requires_grad_(self._model.train_image)
        groups: dict[str, list[Any]] = {}
        for name, tensor in self._networks.named_parameters():
            if tensor.requires_grad:
                groups.setdefault("maps" if "_map." in name else name.partition(".")[0], []).append(tensor)
        return groups

    def _epoch(self, epoch: int) -> EpochRecord:
        started = time.perf_counter()
        model, workers = self._model, self._workers
        # Dropout draws from the global generator.
        torch.manual_seed(_combined_seed(model.random_state, epoch, 1 + workers.rank))
        self._generator.manual_seed(_combined_seed(model.random_state, epoch, 0))
        batches = self._batches(epoch)
        stream = ready_batches(
            self._pairs,
            [batch.share(workers.rank, workers.size) for batch in batches],
            margin=model.crop_margin,
            flip=model.flip,
            device=self._networks.device,
            rng=np.random.default_rng([model.random_state, epoch, 1 + workers.rank]),
        )
        self._networks.train()
        sums = torch.zeros(5, dtype=torch.float64, device=self._networks.device)
        for number, batch in enumerate(stream, start=1):
            sums += self._gradients_of(batch)
            if number % model.accumulate == 0 or number == len(batches):
                self._step()
        for statistics in self._networks.moving_statistics():
            workers.add([statistics])
            statistics /= workers.size
        # Reading the sums waits for the device: once an epoch, not at every step.
        loss, norm, draws, violators, anchors = sums.tolist()
        seconds = time.perf_counter() - started
        return EpochRecord(
            epoch=epoch,
            loss=loss / len(batches),
            rate=self._rate(),
            draws=draws / max(1.0, violators),
            violating=violators / anchors,
            held_out=self._held_out_score(),
            norm=norm / len(batches),
            pictures_per_second=sum(map(len, batches)) / seconds,
            seconds=seconds,
        )

    def _batches(self, epoch: int) -> list[PairOrder]:
        rng = np.random.default_rng([self._model.random_state, epoch])
        order = PairOrder.drawn(self._pairs.picture_of, self._model.texts_per_picture, rng)
        n_processes = self._workers.size
        size = min(self._model.pictures_per_batch, len(order) - len(order) % n_processes)
        if size % n_processes:
            raise InvalidInputError(
                f"a batch of {size} pictures cannot be shared by {n_processes} processes; choose a multiple"
            )
        return order.batches(size)

    def _gradients_of(self, batch: Batch) -> Any:
        """Add the gradients of one batch to the parameters and return its sums for the record."""
        networks, workers = self._networks, self._workers
        images = workers.gathered(networks.image_points(batch.pictures, batch.corners, batch.mirrored))
        texts = workers.gathered(networks.text_points(batch.word_ids, batch.lengths))
        groups = workers.gathered(batch.groups)
        labels = None if batch.labels is None else workers.gathered(batch.labels)
        loss, sums = self._objective.loss(images, texts, groups, labels, self._generator)
        (loss / self._model.accumulate).backward()
        with torch.no_grad():
            norm = (images.norm(dim=1).mean() + texts.norm(dim=1).mean()) / 2
            return torch.cat([torch.stack([loss, norm]).double(), sums])

    def _step(self) -> None:
        factors = {"image": self._model.image_factor, "text": 1.0, "maps": self._model.map_factor}
        rate = self._rate()
        for group, descent in self._descents.items():
            slopes = [torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in descent.tensors]
            self._workers.add(slopes)
            descent.move([slope.clamp(-LARGEST_SLOPE, LARGEST_SLOPE) for slope in slopes], rate * factors[group])
        self._networks.zero_grad()
        self._networks.retract()

    def _rate(self) -> float:
        if self._model.schedule == "constant":
            return self._model.learning_rate
        n_steps = next(iter(self._descents.values())).n_steps
        warm = min(1.0, (n_steps + 1) / max(1.0, WARM_UP_SHARE * self._n_steps))
        return self._model.learning_rate * warm * (1 + math.cos(math.pi * min(1.0, n_steps / self._n_steps))) / 2

    def _held_out_score(self) -> float:
        """Return how well held-out items find each other: by average precision with labels, else by recall at 10."""
        pairs = self._held_out
        if pairs is None:
            return math.nan
        chosen, first, position = np.unique(pairs.picture_of, return_index=True, return_inverse=True)
        images = self._networks.encode_pictures(pairs.pictures[chosen])
        texts = self._networks.encode_word_ids(pairs.word_ids, pairs.lengths)
        measure: Measure = RecallAtK(10) if pairs.labels is None else AP()
        by_image: Relevance = SameLabel(np.arange(len(chosen)), position)
        by_text: Relevance = SameLabel(position, np.arange(len(chosen)))
        if pairs.labels is not None:
            by_image = SharedLabel(pairs.labels[first], pairs.labels)
            by_text = SharedLabel(pairs.labels, pairs.labels[first])
        of_images = evaluate(images, texts, self._model.space, by_image, [measure], direction="image_query")
        of_texts = evaluate(texts, images, self._model.space, by_text, [measure], direction="text_query")
        return (of_images.mean[measure] + of_texts.mean[measure]) / 2


def _combined_seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
