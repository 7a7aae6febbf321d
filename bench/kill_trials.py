"""Kill a process that writes to a collection, or its server, again and again, and look for anything lost.

    python -m bench.kill_trials [--fault client | server | primary | pause]

A writer, a process of its own, adds, changes and removes items, albums, saved searches and retrievers, loads columns,
takes back retrievers and cleans up, and says before each step what it is about to do and after it that it is done. The
parent kills it (SIGKILL) at a random moment, reopens the collection and checks it: everything acknowledged is there as
acknowledged, what was removed is gone, the step under way has left each item as it was before or after, never in
between, the history of search models ends with the one that is used, and every point of every finished retriever is the
one that it gives.

The usual collection is a folder. With a ``--fault`` it is one of a PostgreSQL server that this command starts: killed
are the writer, the server, or the primary, whose synchronous replica is promoted; or there are two writers, of which
one is stopped for a while at a random moment (SIGSTOP), also longer than others wait for it, while the other goes on.
The command exits with 1 when a trial fails; ``bench/campaign.py`` has its options.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.campaign import Outcome, campaign, failures, has_ended, processor_seconds_of, wait_until
from diptych.collection import Collection
from tests.doubles import ToyRetriever, wrong_points
from tests.doubles.postgres_server import PostgresServer
from tests.doubles.random_writer import Writers, state_of

START_S = 120.0
SCHEMA = "trials"
LONG_PAUSE_SHARE, LONG_PAUSE_S = 0.1, 13.0
State = dict[str, Any]


def wait_for_work(pid: int, seconds: float) -> None:
    """Wait until a process has worked for some time."""
    ends = processor_seconds_of(pid) + seconds
    wait_until(lambda: processor_seconds_of(pid) >= ends or has_ended(pid), 30 * seconds)


class Trials:
    """Runs writers against one collection, wherever it is, and remembers what was acknowledged."""

    CHECKED_CAPTIONS: int | None = None

    def __init__(self, location: str, workplace: Path, seed: int, environment: Mapping[str, str] | None = None) -> None:
        self.location = location
        self.workplace = workplace
        self.seed = seed
        self.dice = random.Random(seed)
        self.steps = 0
        self.writers = Writers(environment)
        with Collection.create(
            location, ToyRetriever(), root=workplace, load_retriever=ToyRetriever.load
        ) as collection:
            self.acknowledged = state_of(collection)

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a writer work for some time, kill it, and return what is wrong with the collection."""
        writer = self.begin(1000 * self.seed + number)
        wait_for_work(writer, seconds)
        status = self.kill(writer)
        return self.problems() if status == -signal.SIGKILL else [f"the writer ended by itself with {status}"]

    def begin(self, seed: int, *, is_alone: bool = True) -> int:
        """Start a writer, and return its process when it has opened the collection."""
        log = self.workplace / f"log-{seed}"
        log.touch()
        pid = self.writers.begin(log, self.location, self.workplace, seed, is_alone=is_alone)
        wait_until(lambda: "\n" in log.read_text() or has_ended(pid), START_S)
        return pid

    def kill(self, pid: int) -> int:
        """Kill a writer, and return how it ended."""
        os.kill(pid, signal.SIGKILL)
        return self.writers.wait(pid)

    def close(self) -> None:
        """End the process that forks writers."""
        self.writers.close()

    def under_way(self) -> State:
        """Take in what the children said, and return what they had begun and not finished."""
        under_way: State = {}
        for log in sorted(self.workplace.glob("log-*")):
            for line in log.read_text().splitlines(keepends=True):
                if not line.endswith("\n"):
                    break
                said = json.loads(line)
                under_way.update(said.get("begin", {}))
                for key, state in said.get("done", {}).items():
                    self.steps += 1
                    under_way.pop(key, None)
                    self.acknowledged[key] = state
            log.unlink()
        return under_way

    def problems(self) -> list[str]:
        """Compare the reopened collection with what was acknowledged."""
        under_way = self.under_way()
        with Collection.open(self.location, load_retriever=ToyRetriever.load) as collection:
            found = state_of(collection)
            # A retriever that was being added is unfinished, and says so.
            wrong = [problem for problem in collection.verify().problems if "unfinished" not in problem]
            changes = [record for record in collection.retriever_history() if record.action != "kept"]
            if changes and changes[-1].after_fingerprint != found["in force"]:
                wrong.append(f"the history ends with {changes[-1]}, {found['in force']} is in force")
            for key in found.keys() | self.acknowledged.keys():
                allowed = [self.acknowledged.get(key)]
                if key in under_way:
                    allowed.append(under_way[key])
                if found.get(key) not in allowed:
                    wrong.append(f"{key} is {found.get(key)}, allowed {allowed}")
            for stored in collection.retrievers():
                # One at rest gets the points of later items when it is used again.
                if stored.ready and not stored.missing:
                    wrong += wrong_points(collection, stored.name, self.dice, self.CHECKED_CAPTIONS)
        # The next trial starts from what is there.
        self.acknowledged = found
        return wrong


class ServerTrials(Trials):
    """Trials on a PostgreSQL server: the writer, the server, or a primary whose replica takes over, is killed."""

    # Each is a query of its own there.
    CHECKED_CAPTIONS = 50

    def __init__(self, fault: str, workplace: Path, seed: int) -> None:
        self.fault = fault
        self.server = PostgresServer()
        self.replica = self._standby() if fault == "primary" else None
        super().__init__(self.server.address(SCHEMA), workplace, seed)

    def _standby(self) -> PostgresServer:
        """Start a replica that has each change before it is acknowledged."""
        replica = PostgresServer(self.server)
        self.server.set("synchronous_standby_names", "*")
        return replica

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a writer work for some time, kill it or the server, and return what is wrong with the collection."""
        if self.fault == "client":
            return super().run(number, seconds)
        writer = self.begin(1000 * self.seed + number)
        wait_for_work(writer, seconds)
        self.server.kill()
        if self.replica is not None:
            self.replica.promote()
            self.server.close()
            self.server, self.replica = self.replica, None
            self.server.set("synchronous_standby_names", "")
            self.location = self.server.address(SCHEMA)
            # At another address the folder of pictures is trusted when it is named once more.
            Collection.open(self.location, root=self.workplace, load_retriever=ToyRetriever.load).close()
        else:
            self.server.start()
        # The writer goes on by itself, or says that it could not.
        time.sleep(self.dice.uniform(0.0, 0.5))
        status = self.kill(writer)
        if status not in (0, -signal.SIGKILL):
            return [f"the writer ended by itself with {status}"]
        wrong = self.problems()
        if self.fault == "primary":
            self.replica = self._standby()
        return wrong

    def close(self) -> None:
        """End the servers."""
        super().close()
        for server in (self.server, self.replica):
            if server is not None:
                server.close()


class PauseTrials(ServerTrials):
    """Trials with two writers, of which one is stopped for a while."""

    def run(self, number: int, seconds: float) -> list[str]:
        """Stop one of two writers at a random moment, let the other work, and return what is wrong."""
        seeds = [1000 * self.seed + 2 * number + writer for writer in (0, 1)]
        writers = [self.begin(seed, is_alone=False) for seed in seeds]
        self.dice.shuffle(writers)
        paused, other = writers
        wait_for_work(paused, seconds)
        os.kill(paused, signal.SIGSTOP)
        is_long = self.dice.random() < LONG_PAUSE_SHARE
        time.sleep(LONG_PAUSE_S if is_long else self.dice.uniform(0.0, 1.0))
        wait_for_work(other, self.dice.uniform(0.0, 0.3))
        if self.dice.random() < 0.5:
            os.kill(paused, signal.SIGCONT)
            wait_for_work(paused, self.dice.uniform(0.0, 0.3))
        ends = [self.kill(writer) for writer in writers]
        wrong = [f"a writer ended by itself with {status}" for status in ends if status not in (0, -signal.SIGKILL)]
        return wrong + self.problems()


def run_trials(trials: int, seed: int = 0, longest: float = 0.6) -> Outcome:
    """Run trials one after the other on one collection; return what was counted, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="diptych-kill-") as workplace:
        return _run(Trials(f"{workplace}/collection", Path(workplace), seed), trials, longest)


def run_on_a_server(fault: str, trials: int, seed: int, longest: float = 0.6) -> Outcome:
    """Run trials one after the other on one server."""
    with tempfile.TemporaryDirectory(prefix="diptych-kill-") as workplace:
        kind = PauseTrials if fault == "pause" else ServerTrials
        return _run(kind(fault, Path(workplace), seed), trials, longest)


def _run(runner: Trials, trials: int, longest: float) -> Outcome:
    with closing(runner):
        failed, wrong = failures(trials, lambda number: runner.run(number, runner.dice.uniform(0.0, longest)))
    return {"trials": trials, "acknowledged": runner.steps, "lost": failed, "recovered": trials - failed}, wrong


ON_A_SERVER = {
    "client": "a killed process, PostgreSQL",
    "server": "a killed server",
    "primary": "a killed primary, its replica promoted",
    "pause": "a writer that stands still beside another",
}

if __name__ == "__main__":
    others = {
        fault: (name, lambda trials, seed, fault=fault: run_on_a_server(fault, trials, seed))
        for fault, name in ON_A_SERVER.items()
    }
    sys.exit(campaign(__doc__, "a killed process", run_trials, trials=200, at_once=25, others=others))
