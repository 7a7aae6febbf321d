"""A cluster that loses a worker."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pytest

from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.running import Catalogue, ClusterEngine, OwnData, run_benchmark
from diptych.errors import InvalidInputError

distributed = pytest.importorskip("distributed")


def test_killing_one_of_two_workers_changes_nothing_in_the_results(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(160) % 8
    meaning = 2 * np.eye(8)[labels] + 0.5 * rng.normal(size=(160, 8))
    np.savez(tmp_path / "own.npz", images=meaning @ rng.normal(size=(8, 9)), texts=meaning, labels=labels)
    catalogue = Catalogue(data=OwnData(str(tmp_path / "own.npz")), folds=2)
    units = catalogue.units(["extendable-*"], ["cca", "cfa", "cvh-8"])
    alone, together = ResultFolder(tmp_path / "alone"), ResultFolder(tmp_path / "together")
    run_benchmark(catalogue, units, alone)
    killed = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            workers = sorted(client.run(os.getpid).values())

        def kill_one(outcome, waiting, total):
            if isinstance(outcome, Record) and not killed:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(len(waiting))

        report = run_benchmark(
            catalogue, units, together, engine=ClusterEngine(cluster.scheduler_address), progress=kill_one
        )
    assert killed[0] > len(units) // 2
    assert report.failures == ()
    first, second = ({record.key: record.numbers() for record in folder.records()} for folder in (alone, together))
    assert first == second
    assert len(second) == len(units) == 12


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[ClusterEngine.__module__], "_PATIENCE_SECONDS", 1)
    catalogue = Catalogue(folds=1)
    units = catalogue.units(["extendable-scenes-seen"], ["random"])
    with pytest.raises(InvalidInputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_benchmark(catalogue, units, ResultFolder(tmp_path), engine=ClusterEngine("tcp://127.0.0.1:9"))
