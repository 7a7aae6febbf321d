from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import Collection
from diptych.collection.store.store import Store
from diptych.errors import NoRoomError
from diptych.service.jobs.runner import JobRunner
from diptych.service.jobs.store import JobStore
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter, run


@pytest.fixture
def jobs(store: Store) -> JobStore:
    return JobStore(store)


@contextmanager
def without_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take every runner that was not heard of just now for lost."""
    with monkeypatch.context() as patch:
        patch.setattr("diptych.service.jobs.store.LOST_AFTER_S", 0.0)
        yield


def state(jobs: JobStore, job_id: str) -> str:
    found = jobs.find(job_id)
    assert found is not None
    return found.state


def wait_until(happened: Any) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_job_is_kept_as_it_was_added_and_as_it_ended(jobs: JobStore) -> None:
    added = jobs.add("index", {"remove_missing": True})
    assert (jobs.find(added.id), jobs.find("unknown")) == (added, None)
    claimed = jobs.claim()
    assert claimed is not None
    jobs.advance(claimed, 3, 8, "reading")
    jobs.finish(claimed, "done", result={"added": 5})
    (ended,) = jobs.newest(5)
    assert (ended.state, ended.done, ended.total, ended.message, ended.result) == (
        "done",
        8,
        8,
        "reading",
        {"added": 5},
    )
    assert ended.created <= str(ended.started) <= str(ended.finished)
    assert ended.is_over


def test_jobs_are_claimed_in_their_order_one_at_a_time_by_one_runner(jobs: JobStore) -> None:
    added = [jobs.add("index", {"number": number}).id for number in range(24)]
    taken = []

    def work(_: int) -> None:
        while jobs.count("waiting"):
            job = jobs.claim()
            if job is not None:
                assert jobs.count("running") == 1
                taken.append(job.id)
                jobs.finish(job, "done")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert taken == added


def test_a_job_without_a_beat_waits_again_and_its_former_runner_has_no_say(
    jobs: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add("index", {})
    lost = jobs.claim()
    assert lost is not None
    assert jobs.claim() is None
    # Two runners are told apart by the millisecond at which they started.
    time.sleep(0.002)
    with without_patience(monkeypatch):
        own = jobs.claim()
    assert own is not None
    assert (own.id, own.started != lost.started) == (lost.id, True)
    assert (jobs.is_to_cancel(lost), jobs.is_to_cancel(own)) == (True, False)
    jobs.advance(lost, 7, 9, "too late")
    jobs.finish(lost, "failed", error="too late")
    assert jobs.find(own.id) == own
    jobs.finish(own, "done")
    assert state(jobs, own.id) == "done"


def test_a_job_that_is_cancelled_stops_or_never_starts(jobs: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (jobs.add("index", {}) for _ in range(3))
    running = jobs.claim()
    assert running is not None
    for job in (first, second):
        jobs.ask_to_cancel(job.id)
    assert (state(jobs, first.id), state(jobs, second.id)) == ("running", "cancelled")
    assert jobs.is_to_cancel(running)
    with without_patience(monkeypatch):
        following = jobs.claim()
    assert following is not None
    assert following.id == third.id
    assert state(jobs, first.id) == "cancelled", "the wish outlives the runner"
    jobs.finish(following, "done")
    jobs.ask_to_cancel(third.id)
    assert state(jobs, third.id) == "done"


def test_only_so_many_finished_jobs_are_kept(jobs: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.service.jobs.store.MAX_FINISHED", 3)
    added = [jobs.add("index", {}).id]
    for _ in range(6):
        job = jobs.claim()
        assert job is not None
        jobs.finish(job, "done")
        added.append(jobs.add("index", {}).id)
    assert [job.id for job in jobs.newest(50)] == added[:-4:-1]


def test_progress_is_written_about_once_a_second(own_scene_collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(collection: Collection, reporter: Reporter) -> dict[str, Any]:
        ends = time.monotonic() + 1.5
        while time.monotonic() < ends:
            reporter.advance(int(1e6 * (ends - time.monotonic())), 1, "working")
        return {"added": 1}

    written = []
    advance = JobStore.advance
    monkeypatch.setitem(JOB_FUNCTIONS, "index", work)
    monkeypatch.setattr(JobStore, "advance", lambda *values: (written.append(values), advance(*values)))
    with Collection.open(own_scene_collection / ".diptych") as collection:
        jobs = JobStore(collection.store)
        jobs.add("index", {})
        claimed = jobs.claim()
        assert claimed is not None
        assert run(collection, claimed) == 0
        job = jobs.find(claimed.id)
    assert job is not None
    assert (job.state, job.result, job.message) == ("done", {"added": 1}, "working")
    assert 1 <= len(written) <= 3


def test_a_process_that_breaks_off_is_a_failure_with_its_last_line(
    store: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.service.jobs.runner.COMMAND", [sys.executable, "-c", "raise SystemExit('no memory')"])
    runner = JobRunner(place, store)
    job = runner.store.add("index", {})
    runner.start()
    wait_until(lambda: state(runner.store, job.id) == "failed")
    runner.stop()
    assert runner.store.find(job.id).error == "The process of the job ended with status 1: no memory"  # type: ignore[union-attr]


QUICK = """
import json, sys
from diptych.collection.store.opening import open_store
from diptych.service.jobs.store import Job, JobStore
request = json.loads(sys.stdin.readline())
jobs, job = JobStore(open_store(request["collection"])), Job(**request["job"])
jobs.advance(job, 1, 1, "working")
jobs.finish(job, "done", result={"added": 1})
"""


@pytest.fixture
def quick_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs be done by a process that does nothing."""
    monkeypatch.setattr("diptych.service.jobs.runner.COMMAND", [sys.executable, "-c", QUICK])


def test_only_one_runner_works_on_a_collection(own_scene_collection: Path) -> None:
    folder = own_scene_collection / ".diptych"
    with Collection.open(folder) as collection:
        runners = [JobRunner(str(folder), collection.store) for _ in range(2)]
        for runner in runners:
            runner.start()
        try:
            added = [runners[0].store.add("reencode", {}).id for _ in range(2)]
            while not all(job.is_over for job in runners[1].store.newest(2)):
                assert runners[1].store.count("running") <= 1
                time.sleep(0.05)
            done = runners[0].store.newest(2)
        finally:
            for runner in runners:
                runner.stop()
    assert [job.id for job in done] == added[::-1]
    # Nothing was begun, so there was nothing to finish.
    assert [(job.state, (job.result or {}).get("pictures")) for job in done] == [("done", 0)] * 2


@pytest.mark.usefixtures("quick_work")
def test_jobs_go_on_after_the_store_could_not_be_written(
    store: Store, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NoRoomError(Path("here"), 1)

    monkeypatch.setattr("diptych.service.jobs.runner.RETRY_SECONDS", 0.1)
    runner = JobRunner(place, store)
    job = runner.store.add("reencode", {})
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", refuse)
        runner.start()
        wait_until(lambda: "jobs cannot be run now" in caplog.text)
    wait_until(lambda: state(runner.store, job.id) == "done")
    runner.stop()


CLAIM = """
import sys, time
from diptych.collection.store.opening import open_store
from diptych.service.jobs.store import JobStore
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter, run
print(JobStore(open_store(sys.argv[1])).claim().id, flush=True)
time.sleep(60)
"""


@pytest.mark.usefixtures("quick_work")
def test_what_ran_in_a_killed_service_is_run_by_another(
    store: Store, jobs: JobStore, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = jobs.add("index", {})
    with subprocess.Popen([sys.executable, "-c", CLAIM, place], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == job.id
        process.send_signal(signal.SIGKILL)
    assert state(jobs, job.id) == "running"
    runner = JobRunner(place, store)
    with without_patience(monkeypatch):
        runner.start()
        wait_until(lambda: jobs.find(job.id).message == "working")  # type: ignore[union-attr]
    wait_until(lambda: state(jobs, job.id) == "done")
    runner.stop()
