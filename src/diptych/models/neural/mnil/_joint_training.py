"""How the two networks are trained together: epochs, checkpoints, several processes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Measure, RecallAtK, Relevance, SameLabel, SharedLabel, evaluate
from diptych.models.neural._torch import torch_package
from diptych.models.neural._training_loop import CheckpointFile, TrainingLoop
from diptych.models.neural.mnil._data import Batch, BatchStream, TrainingPairs
from diptych.models.neural.mnil._objective import Optimiser, RankingObjective
from diptych.models.neural.mnil._parameters import MNiLParameters
from diptych.models.neural.mnil._towers import Towers
from diptych.space import Space

HISTORY_COLUMNS = ("epoch", "loss", "rate", "draws", "violating", "held_out", "norm")
_FILE_NAME = "mnil.safetensors"
_WARM_UP = 0.05


@dataclass(frozen=True)
class EpochRecord:
    """Means over one epoch.

    >>> print(EpochRecord(1, 0.4, 0.2, 3.0, 0.9, float("nan"), 1.0, 100.0, 2.0))
    epoch 1: loss 0.4000, 100 pictures a second
    """

    epoch: int
    loss: float
    rate: float
    draws: float  # negatives drawn until one violated the margin, over the anchors that found one
    violating: float  # the share of anchors that did
    held_out: float  # both ways' mean of recall at 10, or of average precision with labels; NaN without such a part
    norm: float  # mean length of points
    pictures_per_second: float
    seconds: float

    def __str__(self) -> str:
        held_out = "" if math.isnan(self.held_out) else f"held out {self.held_out:.3f}, "
        return f"epoch {self.epoch}: loss {self.loss:.4f}, {held_out}{self.pictures_per_second:,.0f} pictures a second"

    @property
    def judged(self) -> float:
        """What the best epoch is chosen by."""
        return self.held_out


class Workers:
    """The processes that ``torchrun`` started, or this one alone.

    Each process encodes its part of a batch; points are exchanged, so that every anchor sees the negatives of all, and
    the sum of the gradients is that of one process with the whole batch.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._torch = torch_package()
        self.rank = rank
        self.size = size

    @classmethod
    def detect(cls, device: str) -> Workers:
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


@dataclass(frozen=True)
class SharedCheckpoint(CheckpointFile):
    """A checkpoint that the first process writes while the others wait."""

    workers: Workers

    def write(self, arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> None:
        """Put the state in place of the one before."""
        if self.workers.rank == 0:
            super().write(arrays, facts)
        self.workers.wait()


Progress = Callable[[EpochRecord], None]


class JointTraining:
    """Trains towers on pairs; what an epoch draws depends on the seed and its number alone, so that it can go on."""

    def __init__(
        self,
        settings: MNiLParameters,
        objective: RankingObjective,
        towers: Towers,
        pairs: TrainingPairs,
        held_out: TrainingPairs | None,
        space: Space,
        workers: Workers,
    ) -> None:
        self._torch = torch_package()
        self._settings = settings
        self._objective = objective
        self._towers = towers
        self._pairs = pairs
        self._held_out = held_out
        self._space = space
        self._workers = workers
        self._optimiser = Optimiser(
            settings.optimizer, self._groups(), momentum=settings.momentum, weight_decay=settings.weight_decay
        )
        self._generator = self._torch.Generator(towers.device)
        self._n_steps = settings.epochs * -(-len(self._batches(0)) // settings.accumulate)

    def run(self, folder: Path | None, identity: str, progress: Progress | None) -> list[EpochRecord]:
        """Train to the end, from the checkpoint in ``folder`` where there is one; the best epoch is kept."""
        workers = self._workers
        loop = TrainingLoop(
            self._settings.epochs,
            self._settings.patience,
            None if folder is None else SharedCheckpoint(folder / _FILE_NAME, identity, workers),
            progress if workers.rank == 0 else None,
            keep_first=True,
        )
        devices = [self._towers.device] if self._towers.device.startswith("cuda") else []
        # What the memory's dropout draws comes from the global generator, which is put back afterwards.
        with self._torch.random.fork_rng(devices=devices):
            return loop.run([self._towers], self._optimiser, self._epoch, EpochRecord)

    def _groups(self) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {"image": [], "text": [], "maps": []}
        for name, tensor in self._towers.parameters().items():
            if name.startswith("image.") and not self._settings.train_image:
                tensor.requires_grad_(False)
                continue
            groups["maps" if "_map." in name else name.partition(".")[0]].append(tensor)
        return groups

    def _epoch(self, epoch: int) -> EpochRecord:
        started = time.perf_counter()
        settings, workers = self._settings, self._workers
        self._torch.manual_seed(_combined_seed(settings.random_state, epoch, 1 + workers.rank))
        self._generator.manual_seed(_combined_seed(settings.random_state, epoch, 0))
        batches = self._batches(epoch)
        stream = BatchStream(
            self._pairs,
            [batch.share(workers.rank, workers.size) for batch in batches],
            margin=settings.crop_margin,
            flip=settings.flip,
            device=self._towers.device,
        )
        sums = self._torch.zeros(5, dtype=self._torch.float64, device=self._towers.device)
        rng = np.random.default_rng([settings.random_state, epoch, 1 + workers.rank])
        for number, batch in enumerate(stream.ready(rng), start=1):
            sums += self._gradients_of(batch)
            if number % settings.accumulate == 0 or number == len(batches):
                self._step()
        workers.average(list(self._towers.buffers().values()))
        # Reading the sums waits for the device: once an epoch, not at every step.
        loss, norm, draws, found, anchors = sums.tolist()
        seconds = time.perf_counter() - started
        return EpochRecord(
            epoch=epoch,
            loss=loss / len(batches),
            rate=self._rate(),
            draws=draws / max(1.0, found),
            violating=found / anchors,
            held_out=self._held_out_score(),
            norm=norm / len(batches),
            pictures_per_second=sum(map(len, batches)) / seconds,
            seconds=seconds,
        )

    def _batches(self, epoch: int) -> list[Any]:
        rng = np.random.default_rng([self._settings.random_state, epoch])
        order = self._pairs.order(self._settings.texts_per_picture, rng)
        n_processes = self._workers.size
        size = min(self._settings.pictures_per_batch, len(order) - len(order) % n_processes)
        if size % n_processes:
            raise InvalidInputError(
                f"a batch of {size} pictures cannot be shared by {n_processes} processes; choose a multiple"
            )
        return order.batches(size)

    def _gradients_of(self, batch: Batch) -> Any:
        """Add the gradients of one batch to the parameters and return its sums for the record."""
        towers, workers = self._towers, self._workers
        own_images = towers.image_points(batch.pictures, batch.corners, batch.mirrored, training=True)
        own_texts = towers.text_points(batch.word_ids, batch.lengths, training=True)
        images, texts = workers.gathered(own_images), workers.gathered(own_texts)
        groups = workers.gathered(batch.groups)
        labels = None if batch.labels is None else workers.gathered(batch.labels)
        loss, sums = self._objective.loss(images, texts, groups, labels, self._generator)
        (loss / self._settings.accumulate).backward()
        with self._torch.no_grad():
            norm = (images.norm(dim=1).mean() + texts.norm(dim=1).mean()) / 2
            return self._torch.cat([self._torch.stack([loss, norm]).double(), sums])

    def _step(self) -> None:
        for tensor in self._optimiser.tensors:
            if tensor.grad is None:
                tensor.grad = self._torch.zeros_like(tensor)
        self._workers.add([tensor.grad for tensor in self._optimiser.tensors])
        rate, settings = self._rate(), self._settings
        self._optimiser.step({"image": rate * settings.image_factor, "text": rate, "maps": rate * settings.map_factor})
        self._towers.retract()

    def _rate(self) -> float:
        if self._settings.schedule == "constant":
            return self._settings.learning_rate
        done = self._optimiser.n_steps / self._n_steps
        warm = min(1.0, (self._optimiser.n_steps + 1) / max(1.0, _WARM_UP * self._n_steps))
        return self._settings.learning_rate * warm * (1 + math.cos(math.pi * min(1.0, done))) / 2

    def _held_out_score(self) -> float:
        """Return how well held-out items find each other: by average precision with labels, else by recall at 10."""
        pairs = self._held_out
        if pairs is None:
            return math.nan
        chosen, first, position = np.unique(pairs.picture_of, return_index=True, return_inverse=True)
        images = self._towers.encode_pictures(pairs.pictures[chosen])
        texts = self._towers.encode_word_ids(pairs.word_ids, pairs.lengths)
        measure: Measure = RecallAtK(10) if pairs.labels is None else AP()
        by_image: Relevance = SameLabel(np.arange(len(chosen)), position)
        by_text: Relevance = SameLabel(position, np.arange(len(chosen)))
        if pairs.labels is not None:
            by_image = SharedLabel(pairs.labels[first], pairs.labels)
            by_text = SharedLabel(pairs.labels, pairs.labels[first])
        of_images = evaluate(images, texts, self._space, by_image, [measure], direction="image_query")
        of_texts = evaluate(texts, images, self._space, by_text, [measure], direction="text_query")
        return (of_images.mean[measure] + of_texts.mean[measure]) / 2


def _combined_seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
