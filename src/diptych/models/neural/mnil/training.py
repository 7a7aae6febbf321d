"""How the two networks are trained together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.metrics import AP, Measure, RecallAtK, Relevance, SameLabel, SharedLabel, evaluate
from diptych.models.neural.mnil.batch import Batch
from diptych.models.neural.mnil.batch_stream import BatchStream
from diptych.models.neural.mnil.checkpoint import Checkpoint
from diptych.models.neural.mnil.epoch_record import EpochRecord
from diptych.models.neural.mnil.optimiser import Optimiser
from diptych.models.neural.mnil.ranking_objective import RankingObjective
from diptych.models.neural.mnil.towers import Towers
from diptych.models.neural.mnil.training_pairs import TrainingPairs
from diptych.models.neural.mnil.training_settings import TrainingSettings
from diptych.models.neural.mnil.workers import Workers
from diptych.models.neural.torch_package import torch_package
from diptych.space import Space

Progress = Callable[[EpochRecord], None]

_WARM_UP = 0.05


class Training:
    """Trains towers on pairs, epoch by epoch.

    Whatever is random in an epoch is drawn from the seed and the epoch's number, so that a training that is taken up
    again goes on as if it had never stopped.
    """

    def __init__(
        self,
        settings: TrainingSettings,
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
            settings.optimiser,
            self._groups(),
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        self._generator = self._torch.Generator(towers.device)
        self._records: list[EpochRecord] = []
        self._best: dict[str, AnyArray] = {}
        per_epoch = len(self._batches(0))
        self._n_steps = settings.epochs * -(-per_epoch // settings.accumulate)

    def run(self, folder: Path | None, identity: str, progress: Progress | None) -> list[EpochRecord]:
        """Train to the end, from the checkpoint in ``folder`` where there is one; the best epoch is kept."""
        if folder is not None:
            self._take_up(Checkpoint.read(folder, identity))
        # What the memory's dropout draws comes from the global generator, which is put back afterwards.
        with self._torch.random.fork_rng(devices=self._devices()):
            while len(self._records) < self._settings.epochs and not self._is_over():
                self._records.append(self._epoch(len(self._records) + 1))
                self._keep_best()
                self._save(folder, identity)
                if progress is not None and self._workers.rank == 0:
                    progress(self._records[-1])
        if self._best:
            self._put(self._best, self._state())
        return self._records

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
        self._torch.manual_seed(_seed(settings.seed, epoch, 1 + workers.rank))
        self._generator.manual_seed(_seed(settings.seed, epoch, 0))
        batches = self._batches(epoch)
        stream = BatchStream(
            self._pairs,
            [batch.share(workers.rank, workers.size) for batch in batches],
            margin=settings.margin,
            flip=settings.flip,
            device=self._towers.device,
        )
        sums = self._torch.zeros(5, dtype=self._torch.float64, device=self._towers.device)
        rng = np.random.default_rng([settings.seed, epoch, 1 + workers.rank])
        for number, batch in enumerate(stream.ready(rng), start=1):
            sums += self._gradients(batch)
            if number % settings.accumulate == 0 or number == len(batches):
                self._step()
        workers.average(list(self._towers.buffers().values()))
        # Reading the sums waits for the device: once an epoch, not at every step.
        loss, norm, draws, found, anchors = sums.tolist()
        seconds = time.perf_counter() - started
        n_pictures = sum(len(batch) for batch in batches)
        return EpochRecord(
            epoch=epoch,
            loss=loss / len(batches),
            rate=self._rate(),
            draws=draws / max(1.0, found),
            violating=found / anchors,
            held_out=self._held_out_score(),
            norm=norm / len(batches),
            pictures_per_second=n_pictures / seconds,
            seconds=seconds,
        )

    def _batches(self, epoch: int) -> list[Any]:
        rng = np.random.default_rng([self._settings.seed, epoch])
        order = self._pairs.order(self._settings.texts_per_picture, rng)
        size = min(self._settings.pictures_per_batch, len(order) - len(order) % self._workers.size)
        self._workers.check_batch(size)
        return order.batches(size)

    def _gradients(self, batch: Batch) -> Any:
        """Add the gradients of one batch to the parameters and return its sums for the record."""
        towers, workers = self._towers, self._workers
        own_images = towers.image_points(batch.pictures, batch.corners, batch.mirrored, training=True)
        own_texts = towers.text_points(batch.codes, batch.lengths, training=True)
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
        texts = self._towers.encode_codes(pairs.codes, pairs.lengths)
        measure: Measure = RecallAtK(10) if pairs.labels is None else AP()
        by_image: Relevance = SameLabel(np.arange(len(chosen)), position)
        by_text: Relevance = SameLabel(position, np.arange(len(chosen)))
        if pairs.labels is not None:
            by_image = SharedLabel(pairs.labels[first], pairs.labels)
            by_text = SharedLabel(pairs.labels, pairs.labels[first])
        of_images = evaluate(images, texts, self._space, by_image, [measure], direction="image_query")
        of_texts = evaluate(texts, images, self._space, by_text, [measure], direction="text_query")
        return (of_images.mean[measure] + of_texts.mean[measure]) / 2

    def _is_over(self) -> bool:
        if self._held_out is None or self._settings.patience is None or not self._records:
            return False
        scores = [record.held_out for record in self._records]
        return len(scores) - 1 - int(np.argmax(scores)) >= self._settings.patience

    def _keep_best(self) -> None:
        scores = [record.held_out for record in self._records]
        if self._held_out is not None and int(np.argmax(scores)) == len(scores) - 1:
            self._best = self._copied(self._state())

    def _state(self) -> dict[str, Any]:
        return {**self._towers.parameters(), **self._towers.buffers()}

    def _copied(self, tensors: dict[str, Any]) -> dict[str, AnyArray]:
        return {name: tensor.detach().cpu().contiguous().numpy().copy() for name, tensor in tensors.items()}

    def _put(self, arrays: dict[str, AnyArray], tensors: dict[str, Any]) -> None:
        with self._torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(self._torch.from_numpy(arrays[name]))

    def _save(self, folder: Path | None, identity: str) -> None:
        if folder is None:
            return
        if self._workers.rank == 0:
            arrays = {f"now.{name}": values for name, values in self._copied(self._state()).items()}
            arrays |= {f"memory.{name}": values for name, values in self._copied(self._optimiser.memory()).items()}
            arrays |= {f"best.{name}": values for name, values in self._best.items()}
            records = tuple(self._records)
            Checkpoint(identity, len(records), self._optimiser.n_steps, records, arrays).write(folder)
        self._workers.wait()

    def _take_up(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is None:
            return
        parts: dict[str, dict[str, AnyArray]] = {"now": {}, "memory": {}, "best": {}}
        for name, values in checkpoint.arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = values
        self._put(parts["now"], self._state())
        self._put(parts["memory"], self._optimiser.memory())
        self._best = parts["best"]
        self._optimiser.n_steps = checkpoint.n_steps
        self._records = list(checkpoint.records)

    def _devices(self) -> list[str]:
        return [self._towers.device] if self._towers.device.startswith("cuda") else []


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
