"""The loop that networks share: stopping, keeping the best, and going on where it was interrupted."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import LDSP, DeepSM
from diptych.models.neural._torch import Descent, Tower
from diptych.models.neural._training_loop import (
    CheckpointFile,
    EpochReport,
    TrainingLoop,
    epoch_table,
    timed_epoch,
    training_identity,
)

ROWS = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)


def small_tower(seed: int = 0) -> Tower:
    return Tower.drawn((4, 6, 3), np.random.default_rng(seed), dropout=0.3, batch_norm=True)


def trained(tower: Tower, descent: Descent, steps: int) -> float:
    loss = 0.0
    for _ in range(steps):
        value = (tower.outputs(ROWS, training=True) ** 2).mean()
        descent.step(value, 0.01)
        loss = value.item()
    return loss


def test_hidden_values_are_normalized_as_pytorch_does() -> None:
    tower = Tower.drawn((4, 6, 3), np.random.default_rng(1), dropout=0.0, batch_norm=True)
    first, intercept, last, end = (torch.from_numpy(layer) for layer in tower.layers())
    reference = torch.nn.BatchNorm1d(6)
    raw = tower._dense[0].detach()
    for _ in range(3):
        expected = reference(torch.from_numpy(ROWS) @ raw).relu() @ last + end
        np.testing.assert_allclose(tower.outputs(ROWS, training=True).detach(), expected.detach(), atol=1e-5)
    np.testing.assert_allclose(tower._means[0], reference.running_mean, atol=1e-6)
    # PyTorch's running variance is the unbiased one.
    unbiased = 1 + (tower._variances[0] - 0.9**3) * 20 / 19 - (1 - 0.9**3)
    np.testing.assert_allclose(unbiased, reference.running_var, atol=1e-5)
    assert first.shape == (4, 6)
    assert intercept.shape == (6,)


def test_running_statistics_become_part_of_the_layers() -> None:
    tower = small_tower()
    trained(tower, Descent(tower.parameters, 0.0), 30)
    first, second, third, fourth = tower.layers()
    by_hand = np.maximum(ROWS @ first + second, 0) @ third + fourth
    np.testing.assert_allclose(by_hand, tower.outputs(ROWS).detach(), rtol=1e-4, atol=1e-5)


def test_a_restored_training_goes_on_to_the_same_bits() -> None:
    tower = small_tower()
    descent = Descent(tower.parameters, 0.1)
    trained(tower, descent, 5)
    states = tower.state(), descent.state()
    whole = trained(tower, descent, 5)
    other = small_tower(seed=9)
    again = Descent(other.parameters, 0.1)
    other.restore(states[0])
    again.restore(states[1])
    assert trained(other, again, 5) == whole
    for one, two in zip(tower.layers(), other.layers(), strict=True):
        np.testing.assert_array_equal(one, two)


def run_loop(judgements: list[float] | None, **settings) -> tuple[Tower, list[np.ndarray], list[EpochReport]]:
    """Train with given judgements and return the tower, its first layer after each epoch, and the reports."""
    tower = small_tower()
    descent, rng, seen = Descent(tower.parameters, 0.0), np.random.default_rng(0), []

    def train() -> float:
        loss = trained(tower, descent, 1)
        seen.append(tower.layers()[2])
        return loss

    def judge() -> tuple[float, float]:
        assert judgements is not None
        return judgements[len(seen) - 1], 0.5

    loop = TrainingLoop(**{"epochs": 6, "patience": 2, **settings})
    epoch = timed_epoch(train, judge if judgements else None, 20)
    return tower, seen, loop.run([tower], [descent], epoch, EpochReport, rng)


def test_training_stops_in_time_and_keeps_the_best_epoch() -> None:
    tower, seen, reports = run_loop([0.1, 0.4, 0.3, 0.2, 0.9, 0.9])
    assert len(reports) == 4
    np.testing.assert_array_equal(tower.layers()[2], seen[1])
    tower, seen, reports = run_loop([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5, 6]
    assert all(report.items_per_second > 0 for report in reports)
    np.testing.assert_array_equal(tower.layers()[2], seen[5])


def test_without_a_held_out_part_the_last_epoch_is_kept() -> None:
    tower, seen, reports = run_loop(None)
    assert len(reports) == 6
    assert math.isnan(reports[0].judged)
    np.testing.assert_array_equal(tower.layers()[2], seen[-1])
    assert epoch_table(reports, ("epoch", "loss")).shape == (6, 2)


def test_a_checkpoint_of_another_training_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    file = CheckpointFile.within(tmp_path / "new" / "folder", "net", identity="this")
    assert file.read() is None
    file.write({"a": np.arange(3)}, {"epoch": 1})
    # What a crash in the middle of writing leaves behind.
    file.path.with_name(f".{file.path.name}.draft").write_bytes(b"half")
    assert file.read()[1] == {"epoch": 1}
    with pytest.raises(InvalidInputError, match="another training"):
        CheckpointFile(file.path, "that").read()
    file.path.write_bytes(file.path.read_bytes()[:-5])
    with pytest.raises(ModelFileError, match="delete it"):
        file.read()


def test_the_identity_of_a_training_is_that_of_its_parameters_and_data() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    identities = {
        training_identity({"seed": 0}, rows, None),
        training_identity({"seed": 1}, rows, None),
        training_identity({"seed": 0}, rows.reshape(2, 3), None),
        training_identity({"seed": 0}, rows.astype(np.float32), None),
        training_identity({"seed": 0}, rows, rows),
    }
    assert len(identities) == 5
    assert training_identity({"seed": 0, "epochs": 7, "checkpoint": "there"}, rows.copy(), None) in identities


SETTINGS = {
    "n_components": 6,
    "image_hidden": (12,),
    "text_hidden": (10,),
    "batch_size": 40,
    "patience": 1000,
    "learning_rate": 3e-3,
    "device": "cpu",
}


def captions(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    meaning = rng.normal(size=(n, 4))
    images = np.repeat(meaning @ rng.normal(size=(4, 8)), 2, axis=0)
    return images, np.repeat(meaning, 2, axis=0) @ rng.normal(size=(4, 6)) + 0.2 * rng.normal(size=(2 * n, 6))


def assert_same(one: LDSP, two: LDSP) -> None:
    for first, second in zip(one.image_layers_ + one.text_layers_, two.image_layers_ + two.text_layers_, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(one.history_, two.history_)


def test_an_interrupted_training_resumes_to_the_same_bits(tmp_path: Path) -> None:
    images, texts = captions()
    whole = LDSP(epochs=6, **SETTINGS).fit(images, texts)
    folder = str(tmp_path / "run")

    def interrupt(report: EpochReport) -> None:
        if report.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LDSP(epochs=6, checkpoint=folder, **SETTINGS).fit(images, texts, progress=interrupt)
    seen: list[EpochReport] = []
    resumed = LDSP(epochs=6, checkpoint=folder, **SETTINGS).fit(images, texts, progress=seen.append)
    assert [report.epoch for report in seen] == [4, 5, 6]
    assert_same(resumed, whole)
    # A training that is done has nothing left to do, and one that is prolonged goes on.
    seen.clear()
    assert_same(LDSP(epochs=6, checkpoint=folder, **SETTINGS).fit(images, texts, progress=seen.append), whole)
    assert seen == []
    with pytest.raises(InvalidInputError, match="another training"):
        LDSP(epochs=6, checkpoint=folder, **SETTINGS).fit(images, texts + 1)
    with pytest.raises(InvalidInputError, match="another training"):
        LDSP(epochs=6, checkpoint=folder, random_state=1, **SETTINGS).fit(images, texts)


def test_both_networks_of_deep_semantic_matching_resume_to_the_same_bits(tmp_path: Path) -> None:
    images, texts = captions(30)
    labels = np.arange(60) // 20
    settings = {"image_hidden": (8,), "text_hidden": (8,), "epochs": 3, "device": "cpu"}
    whole = DeepSM(**settings).fit(images, texts, labels)
    epochs: list[int] = []

    def interrupt(report: EpochReport) -> None:
        epochs.append(report.epoch)
        if len(epochs) in (2, 4):
            raise KeyboardInterrupt

    model = DeepSM(checkpoint=str(tmp_path / "run"), **settings)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            model.fit(images, texts, labels, progress=interrupt)
    model.fit(images, texts, labels, progress=interrupt)
    assert epochs == [1, 2, 3, 1, 2, 3]
    np.testing.assert_array_equal(model.encode_images(images), whole.encode_images(images))
    np.testing.assert_array_equal(model.encode_texts(texts), whole.encode_texts(texts))
    np.testing.assert_array_equal(model.text_losses_, whole.text_losses_)


CHILD = """
import sys
from test_training_loop import SETTINGS, captions
from diptych.models import LDSP

LDSP(epochs=100_000, checkpoint=sys.argv[1], **SETTINGS).fit(
    *captions(), progress=lambda report: print(report.epoch, flush=True)
)
"""


def test_a_killed_training_loses_at_most_the_epoch_it_was_in(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert child.stdout is not None
    with child:
        reported = 0
        while reported < 3:
            reported = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    images, texts = captions()
    # How far it came is what its file says: nobody knows when the signal struck.
    settings = {**SETTINGS, "checkpoint": str(folder)}
    seen: list[EpochReport] = []
    done = len(LDSP(epochs=1, **settings).fit(images, texts, progress=seen.append).history_)
    assert seen == []
    assert done >= reported
    resumed = LDSP(epochs=done + 2, **settings).fit(images, texts, progress=seen.append)
    assert [report.epoch for report in seen] == [done + 1, done + 2]
    assert_same(resumed, LDSP(epochs=done + 2, **SETTINGS).fit(images, texts))
