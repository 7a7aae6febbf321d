"""A cluster that loses a worker: every result is the one that a single process finds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from typer.testing import CliRunner

from diptych import Retriever
from diptych.benchmark import Catalogue, OwnData, Record, ResultFolder, run_benchmark
from diptych.cli import app
from diptych.cluster import connect, open_workers
from diptych.collection import Collection
from diptych.collection import Record as Described
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import CCA, GMLDA, SCM, fit_from_files

distributed = pytest.importorskip("distributed")

N_PHOTOS = 24


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
        scheduler=cluster.scheduler_address,
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


@pytest.fixture(scope="module")
def pairs():
    return load_dataset("scenes", n_train=60, n_test=N_PHOTOS, size=32)


@pytest.fixture(scope="module")
def retriever(pairs):
    """A retriever that takes no time."""
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    return Retriever(model=CCA(n_components=8), cache=False, name="first", **parts).fit(pairs.train, baseline=None)


@pytest.fixture
def photos(pairs, tmp_path, monkeypatch):
    """Records of pictures, among them copies and one that is none, for batches of four, which are divided."""
    monkeypatch.setattr("diptych.collection.indexing.adding.PICTURES_AT_ONCE", 4)
    monkeypatch.setattr("diptych.collection.indexing.adding.MAX_PICTURES_AT_ONCE", 4)
    monkeypatch.setattr("diptych.collection.indexing.reencoding.CONTENTS_AT_ONCE", 4)
    folder = tmp_path / "photos"
    folder.mkdir()
    records = []
    for number in range(N_PHOTOS):
        path = folder / f"{number:02}.png"
        Image.fromarray(np.asarray(pairs.test.images[number])).save(path)
        # Every other caption is that of a neighbour in another batch, too.
        texts = [pairs.test.texts[5 * row] for row in (number, number // 6)]
        records.append(Described(path, captions=texts, labels=[f"row {number % 4}"], metadata={"number": number}))
    (folder / "13.png").write_bytes(b"no picture")
    shutil.copyfile(folder / "07.png", folder / "11.png")
    shutil.copyfile(folder / "07.png", folder / "22.png")
    return records


def contents(collection):
    """Return all that is stored, in its order, ids and times aside."""
    items = list(collection)
    said = ("path", "content_hash", "size", "mtime_ns", "width", "height", "labels", "metadata", "captions")
    found = {name: [getattr(item, name) for item in items] for name in said}
    found["thumbnails"] = collection.thumbnails(item.id for item in items)
    for name in [stored.name for stored in collection.retrievers()]:
        for side in ("image", "text"):
            for kind in (collection.points, collection.features):
                ids, rows = kind(side, retriever=name)
                assert len(ids) == len(items) * (2 if side == "text" else 1)
                found[name, side, kind.__name__] = rows.tolist()
    return found


def test_killing_one_of_two_workers_changes_nothing_in_what_is_indexed(cluster, retriever, pairs, photos, tmp_path):
    """Two retrievers share an encoder of pictures, and a third one comes later, which has another."""
    cousin = clone(retriever).set_params(name="cousin", text_encoder=TfidfTopics(n_components=20))
    later = clone(retriever).set_params(name="later", image_encoder=ColourEdgeHistograms(size=16))
    others = [each.fit(pairs.train, baseline=None) for each in (cousin, later)]
    found, reports = [], []
    for scheduler in (None, cluster.scheduler_address):
        folder = tmp_path / ("alone" if scheduler is None else "together")
        with Collection.create(folder, retriever, root=tmp_path, scheduler=scheduler) as collection:
            collection.add_retriever(others[0])
            kill = KillOnce(cluster) if scheduler else lambda left: None
            steps = []

            def progress(step, kill=kill, steps=steps):
                steps.append((step.done, step.total, len(step.stored)))
                if step.stored:
                    kill(step.total - step.done)

            report = collection.add(photos, progress=progress)
            change = collection.set_retriever(others[1], keep=True)
            assert change.pictures == change.read_again == N_PHOTOS - 3
            assert collection.verify().is_whole
            reports.append((report.added, report.skipped, report.duplicates, change.captions, steps))
            found.append(contents(collection))
    assert kill.left_when_killed == N_PHOTOS - 4
    assert reports[0] == reports[1]
    assert reports[0][0] == N_PHOTOS - 1
    assert list(reports[0][1]) == [str(tmp_path / "photos" / "13.png")]
    assert found[0].keys() == found[1].keys()
    for name, values in found[0].items():
        assert found[1][name] == values, name


def test_the_program_indexes_on_a_cluster(cluster, retriever, photos, tmp_path):
    retriever.save(tmp_path / "retriever")
    words = ["index", photos[0].path.parent, "--retriever", tmp_path / "retriever", "--json"]
    result = CliRunner().invoke(app, [*map(str, words), "--scheduler", cluster.scheduler_address])
    assert result.exit_code == 0, result.output
    assert (json.loads(result.stdout)["added"], json.loads(result.stdout)["pictures"]) == (N_PHOTOS - 1, N_PHOTOS - 1)


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs a file that another process does not see")
def test_pictures_that_only_the_driver_sees_are_an_error_that_says_so(
    cluster, retriever, pairs, photos, tmp_path, monkeypatch
):
    monkeypatch.chdir(photos[0].path.parent)
    here = Path("/proc/self/cwd")
    with Collection.create(tmp_path / "c", retriever, root=here, scheduler=cluster.scheduler_address) as collection:
        with pytest.raises(InvalidInputError, match=r"a worker cannot open /proc/self/cwd/00\.png, which is here"):
            collection.add([here / "00.png", here / "01.png"])
        assert len(collection) == 0
    with Collection.open(tmp_path / "c") as opened:
        opened.add([here / "00.png"])
    moved = clone(retriever).set_params(image_encoder=ColourEdgeHistograms(size=16)).fit(pairs.train, baseline=None)
    with (
        Collection.open(tmp_path / "c", scheduler=cluster.scheduler_address) as again,
        pytest.raises(InvalidInputError, match=r"a worker cannot open /proc/self/cwd/00\.png, which is here"),
    ):
        again.set_retriever(moved)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("diptych.cluster._PATIENCE_SECONDS", 1)
    catalogue = Catalogue(folds=1)
    units = catalogue.units(["extendable-scenes-seen"], ["random"])
    with pytest.raises(InvalidInputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_benchmark(catalogue, units, ResultFolder(tmp_path), scheduler="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_is_told_of():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None, silence_logs=50) as empty,
        pytest.warns(UserWarning, match="no workers yet; start some with `dask worker inproc"),
    ):
        connect(empty.scheduler_address).close()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_work_ahead_and_together_in_the_order_of_the_tasks(n_threads: int) -> None:
    begun = [threading.Event() for _ in range(6)]
    together = threading.Barrier(n_threads)

    def work(number: int) -> tuple[int, int]:
        begun[number].set()
        together.wait(timeout=60)
        return number, threading.get_ident()

    with open_workers(n_threads=n_threads, ahead=True) as workers:
        results = workers.map(work, range(6))
        first = next(results)
        # The next ones are begun while nobody asks for them.
        assert begun[n_threads].wait(timeout=60)
        assert not begun[n_threads + 1].is_set()
        found = [first, *results]
    assert [number for number, _ in found] == list(range(6))
    assert len({thread for _, thread in found}) == n_threads
    assert threading.get_ident() not in {thread for _, thread in found}
