"""Kill a process that writes to a collection, again and again, and look for anything lost.

Run ``python -m bench.kill_trials`` (needs the ``search`` extra). A child process adds, changes and removes
items, loads columns, changes, adds, activates, removes and takes back retrievers, puts changes into search files and
cleans up, and says before each step what it is about to do and after it that it is done. The parent kills it
(SIGKILL) at a random moment, reopens the collection and checks it: every acknowledged item is there as acknowledged,
every removed one is gone, the step under way has left each item as it was before or after, never in between, and
every point of every finished retriever is the one that it gives. The command exits with 1 when a trial fails;
``bench/campaign.py`` has its options.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.campaign import Outcome, campaign, failures, processor_seconds_of, wait_until
from diptych.collection import Collection
from tests.doubles import ToyRetriever, item_state, wrong_points

START_S = 120.0
State = dict[str, Any]


def wait_for_work(pid: int, seconds: float) -> None:
    """Wait until a process has worked for some time."""
    ends = processor_seconds_of(pid) + seconds
    wait_until(lambda: processor_seconds_of(pid) >= ends, 30 * seconds)


class Trials:
    """Runs children against one collection, wherever it is, and remembers what was acknowledged."""

    def __init__(self, location: str, workplace: Path, seed: int) -> None:
        self.location = location
        self.workplace = workplace
        self.seed = seed
        self.dice = random.Random(seed)
        self.acknowledged: State = {}
        self.steps = 0
        Collection.create(location, ToyRetriever(), root=workplace, load_retriever=ToyRetriever.load).close()

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a child work for some time, kill it, and return what is wrong with the collection."""
        status = self.work(number, seconds)
        return [f"the child ended by itself with {status}"] if status != -signal.SIGKILL else self.problems()

    def work(self, number: int, seconds: float, **environment: str) -> int:
        """Let a child work from when it has opened the collection, kill it, and return how it ended."""
        command = [sys.executable, "-m", "tests.doubles.random_writer", self.location, str(self.workplace)]
        with self.log.open("w") as log:
            child = subprocess.Popen(
                [*command, str(1000 * self.seed + number)], stdout=log, env={**os.environ, **environment}
            )
        wait_until(lambda: "\n" in self.log.read_text() or child.poll() is not None, START_S)
        wait_for_work(child.pid, seconds)
        child.kill()
        return child.wait()

    @property
    def log(self) -> Path:
        """What the child says."""
        return self.workplace / "log"

    def under_way(self) -> State:
        """Take in what the child said, and return what it had begun and not finished."""
        under_way: State = {}
        for line in self.log.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            said = json.loads(line)
            under_way.update(said.get("begin", {}))
            for item_id, state in said.get("done", {}).items():
                self.steps += 1
                under_way.pop(item_id, None)
                if state is None:
                    self.acknowledged.pop(item_id, None)
                else:
                    self.acknowledged[item_id] = state
        return under_way

    def problems(self) -> list[str]:
        """Compare the reopened collection with what was acknowledged."""
        under_way = self.under_way()
        with Collection.open(self.location, load_retriever=ToyRetriever.load) as collection:
            found = {item.id: item_state(item.captions, item.labels) for item in collection}
            # A retriever that was being added is unfinished, and says so.
            wrong = [problem for problem in collection.verify().problems if "unfinished" not in problem]
            for item_id in found.keys() | self.acknowledged.keys():
                allowed = [self.acknowledged.get(item_id)]
                if item_id in under_way:
                    allowed.append(under_way[item_id])
                if found.get(item_id) not in allowed:
                    wrong.append(f"{item_id} is {found.get(item_id)}, allowed {allowed}")
            stored_ids = {name for rows in collection._state.store.all_rows() for name in rows["id"].to_pylist()}
            if stored_ids != found.keys():
                wrong.append(f"search files and store differ in {sorted(stored_ids ^ found.keys())[:5]}")
            for stored in collection.retrievers():
                # One at rest gets the points of later items when it is used again.
                if stored.ready and stored.fingerprint not in collection._state.layout.resting:
                    wrong += wrong_points(collection, stored.name)
        # The next trial starts from what is there.
        self.acknowledged = found
        return wrong


def run_trials(trials: int, seed: int = 0, longest: float = 1.5) -> Outcome:
    """Run trials one after the other on one collection; return what was counted, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="diptych-kill-") as workplace:
        runner = Trials(f"{workplace}/collection", Path(workplace), seed)
        failed, wrong = failures(trials, lambda number: runner.run(number, runner.dice.uniform(0.0, longest)))
    return {"trials": trials, "acknowledged": runner.steps, "lost": failed, "recovered": trials - failed}, wrong


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "a killed process", run_trials, trials=200, at_once=25))
