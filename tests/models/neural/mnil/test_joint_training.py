"""How MNiL trains: orders, checkpoints, processes, accumulated gradients."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import MNiL
from diptych.models.neural._torch import Descent
from diptych.models.neural.mnil._items import PairOrder, distinct_pictures, squares
from diptych.models.neural.mnil._networks import cut


def features_and_texts(n: int = 48) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    things = rng.integers(6, size=(n, 2))
    features = np.eye(6)[things].reshape(n, 12) + 0.1 * rng.normal(size=(n, 12))
    names = ("one", "two", "three", "four", "five", "six")
    return features, [f"{names[first]} beside {names[second]}" for first, second in things]


def tiny(**changes) -> MNiL:
    settings = {
        "image_tower": "features",
        "word_size": 6,
        "hidden_size": 8,
        "n_components": 5,
        "epochs": 4,
        "batch_size": 16,
        "device": "cpu",
    }
    return MNiL(**{**settings, **changes})


def states(model: MNiL) -> list[np.ndarray]:
    return model.image_arrays_ + model.text_arrays_


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 20))
def test_an_epoch_shows_every_text_and_groups_those_of_a_picture(seed, together, n_pictures):
    rng = np.random.default_rng(seed)
    picture_of = np.concatenate([np.arange(n_pictures), rng.integers(n_pictures, size=15)])
    order = PairOrder.drawn(picture_of, together, rng)
    assert set(order.texts.ravel().tolist()) == set(range(len(picture_of)))
    assert (picture_of[order.texts] == order.pictures[:, None]).all()
    counts = np.bincount(picture_of)
    assert len(order) == (-(-counts // together)).sum()
    whole_groups = np.repeat(counts, -(-counts // together)) >= together
    distinct = [len(set(row)) for row in order.texts.tolist()]
    assert sum(count == together for count in distinct) >= (counts // together).sum()
    assert whole_groups.any() or max(distinct) < together


def test_batches_are_equal_and_shares_cover_them():
    order = PairOrder.drawn(np.arange(23), 1, np.random.default_rng(0))
    batches = order.batches(6)
    assert [len(batch) for batch in batches] == [6, 6, 6]
    assert len(order.batches(50)[0]) == 23
    shares = [batches[0].share(rank, 3).pictures for rank in range(3)]
    np.testing.assert_array_equal(np.concatenate(shares), batches[0].pictures)


def test_a_stopped_training_goes_on_as_if_it_had_not(tmp_path):
    data = features_and_texts()
    whole = tiny(validation=0.2).fit(*data)

    def stop(record):
        if record.epoch == 2:
            raise KeyboardInterrupt

    model = tiny(validation=0.2, checkpoint=str(tmp_path / "kept"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, progress=stop)
    seen = []
    model.fit(*data, progress=lambda record: seen.append(record.epoch))
    assert seen == [3, 4]
    for first, second in zip(states(whole), states(model), strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(whole.history_, model.history_)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["mnil.safetensors"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    images, texts = features_and_texts()
    tiny(epochs=1, checkpoint=str(tmp_path)).fit(images, texts)
    with pytest.raises(InvalidInputError, match="another training"):
        tiny(epochs=2, checkpoint=str(tmp_path)).fit(images, texts)
    with pytest.raises(InvalidInputError, match="another training"):
        tiny(epochs=1, checkpoint=str(tmp_path)).fit(images[::-1], texts)
    (tmp_path / "mnil.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="train from the start"):
        tiny(epochs=1, checkpoint=str(tmp_path)).fit(images, texts)


def test_two_processes_train_what_one_does(tmp_path):
    target, program = tmp_path / "states.npz", tmp_path / "train.py"
    program.write_text(
        "import os, sys\n"
        "import numpy as np\n"
        "import torch.distributed\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_joint_training import features_and_texts, states, tiny\n"
        # The second process has imported everything when the first one has.
        "second = os.fork()\n"
        "os.environ['RANK'] = os.environ['LOCAL_RANK'] = '0' if second else '1'\n"
        "model = tiny(dropout=0.0).fit(*features_and_texts())\n"
        "assert torch.distributed.get_rank() == int(os.environ['RANK'])\n"
        "if second:\n"
        f"    np.savez({str(target)!r}, *states(model), history=model.history_)\n"
        "torch.distributed.destroy_process_group()\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) if second else 0)\n",
        encoding="utf-8",
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # What torchrun tells its processes, without the seconds its own start takes.
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(program)], env={**os.environ, **told}, check=True, timeout=120)
    alone = tiny(dropout=0.0).fit(*features_and_texts())
    together = np.load(target)
    for number, values in enumerate(states(alone)):
        np.testing.assert_allclose(together[f"arr_{number}"], values, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(together["history"][:, :5], alone.history_[:, :5], rtol=1e-4)


def test_accumulated_batches_make_one_step_of_their_mean():
    images, texts = features_and_texts(32)
    settings = {"batch_size": 8, "epochs": 1, "optimizer": "sgd", "schedule": "constant", "momentum": 0.0}
    start, once, often = (
        tiny(**settings, accumulate=together, learning_rate=rate).fit(images, texts)
        for together, rate in ((1, 1e-12), (4, 1e-5), (1, 1e-5))
    )
    row = start.text_names_.index("map.weight")
    moved, moved_often = (model.text_arrays_[row] - start.text_arrays_[row] for model in (once, often))
    # Steps this small hardly change the next gradient, so that four of them go four times as far as one.
    np.testing.assert_allclose(moved_often, 4 * moved, atol=0.1 * np.abs(moved_often).max())


def test_the_maps_learn_ten_times_as_fast():
    images, texts = features_and_texts(16)
    settings = {"epochs": 1, "schedule": "constant", "weight_decay": 0.0, "optimizer": "adam", "learning_rate": 1e-4}
    start = tiny(**{**settings, "learning_rate": 1e-12}).fit(images, texts)
    model = tiny(**settings).fit(images, texts)
    names = model.text_names_
    moved = {
        name: np.abs(after - before).max()
        for name, after, before in zip(names, model.text_arrays_, start.text_arrays_, strict=True)
    }
    # Adam's first step is the learning rate itself.
    assert moved["memory.weight_ih_l0"] == pytest.approx(1e-4, rel=0.05)
    assert moved["map.weight"] == pytest.approx(1e-3, rel=0.05)


@pytest.mark.parametrize("momentum", [0.9, None])
def test_momentum_and_adam_are_those_of_their_papers(momentum):
    scale = np.linspace(0, 1, 6).reshape(2, 3)
    place = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    descent = Descent([place], 0.01, momentum=momentum)
    wanted, first, second = np.ones((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))
    for step in range(1, 6):
        descent.step(((place * torch.from_numpy(scale) - 1) ** 2).sum(), 0.1)
        slope = 2 * scale * (wanted * scale - 1)
        wanted = wanted * (1 - 0.1 * 0.01)
        if momentum:
            first = momentum * first + slope
            wanted = wanted - 0.1 * first
        else:
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            wanted = wanted - 0.1 * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(place.detach().numpy(), wanted, rtol=1e-12)


def test_squares_are_cut_where_their_corners_are():
    pictures = torch.arange(2 * 5 * 5 * 3).reshape(2, 5, 5, 3).to(torch.uint8)
    squares_cut = cut(pictures, 3, torch.tensor([[0, 2], [1, 0]]), torch.tensor([False, True]))
    assert torch.equal(squares_cut[0], pictures[0, :3, 2:])
    assert torch.equal(squares_cut[1], pictures[1, 1:4, :3].flip(1))
    assert torch.equal(cut(pictures, 3, None, None), pictures[:, 1:4, 1:4])


class MadeWhenAsked(Sequence):
    """Pictures that exist only while they are looked at, so that one lies where the one before lay."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, row):
        if row >= len(self):
            raise IndexError(row)
        return np.full((2, 2, 3), row % 20, dtype=np.uint8)


def test_pictures_made_when_asked_for_are_told_apart_by_what_they_show():
    rows, picture_of = distinct_pictures(MadeWhenAsked())
    assert rows.tolist() == list(range(20))
    assert picture_of.tolist() == 2 * list(range(20))


def test_many_pictures_are_kept_in_a_mapped_file(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 255, size=(6, 8, 8, 3)).astype(np.uint8)
    rows, picture_of = distinct_pictures(tuple(pictures[[0, 1, 0, 2]]))
    assert (rows.tolist(), picture_of.tolist()) == ([0, 1, 3], [0, 1, 0, 2])
    mapped = squares(pictures, np.array([4, 1]), 8, memory=10)
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, pictures[[4, 1]])
    assert squares(pictures, np.arange(6), 8) is pictures
