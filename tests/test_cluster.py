"""A cluster that loses a worker: every result is the one that a single process finds."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.running import Catalogue, ClusterEngine, OwnData, run_benchmark
from diptych.errors import InvalidInputError
from diptych.models import CCA, GMLDA, SCM, fit_from_files

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two workers; one that is killed comes back."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as running:
        yield running


class KillOnce:
    """Kills a worker when it is first told to."""

    def __init__(self, cluster) -> None:
        with distributed.Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2)
            self.worker = sorted(client.run(os.getpid).values())[0]
        self.left_when_killed: int | None = None

    def __call__(self, left: int) -> None:
        if self.left_when_killed is None:
            os.kill(self.worker, signal.SIGKILL)
            self.left_when_killed = left


def test_killing_one_of_two_workers_changes_nothing_in_the_results_of_a_benchmark(cluster, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(160) % 8
    meaning = 2 * np.eye(8)[labels] + 0.5 * rng.normal(size=(160, 8))
    np.savez(tmp_path / "own.npz", images=meaning @ rng.normal(size=(8, 9)), texts=meaning, labels=labels)
    catalogue = Catalogue(data=OwnData(str(tmp_path / "own.npz")), folds=2)
    units = catalogue.units(["extendable-*"], ["cca", "cfa", "cvh-8"])
    alone, together = ResultFolder(tmp_path / "alone"), ResultFolder(tmp_path / "together")
    run_benchmark(catalogue, units, alone)
    kill = KillOnce(cluster)
    report = run_benchmark(
        catalogue,
        units,
        together,
        engine=ClusterEngine(cluster.scheduler_address),
        progress=lambda outcome, waiting, total: kill(len(waiting)) if isinstance(outcome, Record) else None,
    )
    assert kill.left_when_killed > len(units) // 2
    assert report.failures == ()
    first, second = ({record.key: record.numbers() for record in folder.records()} for folder in (alone, together))
    assert first == second
    assert len(second) == len(units) == 12


def test_killing_one_of_two_workers_changes_no_bit_of_a_fit_from_files(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("diptych.data.feature_files._PART_ROWS", 100)
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(4, size=3000))
    texts = np.eye(4)[labels] + rng.normal(size=(3000, 4)) - 2
    np.save(tmp_path / "images.npy", texts @ rng.normal(size=(4, 9)) + rng.normal(size=(3000, 9)))
    np.save(tmp_path / "texts.npy", texts)
    np.save(tmp_path / "labels.npy", labels)
    kill = KillOnce(cluster)
    for model in (GMLDA, lambda: SCM(correlation=CCA(n_components=2))):
        alone = fit_from_files(model(), tmp_path)
        together = fit_from_files(
            model(), tmp_path, scheduler=cluster.scheduler_address, progress=lambda done, total: kill(total - done)
        )
        for name, value in vars(alone).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, getattr(together, name), err_msg=name)
    assert kill.left_when_killed > 1500
    texts[2000, 0] = np.inf
    np.save(tmp_path / "texts.npy", texts)
    with pytest.raises(InvalidInputError, match="first in row 2000"):
        fit_from_files(CCA(), tmp_path, scheduler=cluster.scheduler_address)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("diptych.cluster._PATIENCE_SECONDS", 1)
    catalogue = Catalogue(folds=1)
    units = catalogue.units(["extendable-scenes-seen"], ["random"])
    with pytest.raises(InvalidInputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_benchmark(catalogue, units, ResultFolder(tmp_path), engine=ClusterEngine("tcp://127.0.0.1:9"))
