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
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.campaign import campaign
from diptych.collection import Collection
from tests.doubles import ToyRetriever, item_state, wrong_points
from tests.doubles.random_writer import say, write_at_random

START_SECONDS = 120.0
State = dict[str, Any]


def nursery() -> None:
    """Fork children on request, so that each starts with everything imported; nothing of the engine runs before."""
    # It warns of forks: of what is under way in other threads, of which there are none.
    warnings.simplefilter("ignore", RuntimeWarning)
    import lancedb  # noqa: F401

    import_module("pyarrow.dataset")
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            say({"status": os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])})
            continue
        pid = os.fork()
        if pid == 0:
            log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, sys.stdout.fileno())
            os.environ.update(order["environment"])
            write_at_random(order["location"], Path(order["workplace"]), order["seed"])
        say({"pid": pid})


def wait_for_work(pid: int, seconds: float) -> None:
    """Wait for some time in which a process has worked: on a busy machine for longer, until it had a third of it."""
    began, ends = processor_seconds_of(pid), time.monotonic() + 30 * seconds
    time.sleep(seconds)
    while processor_seconds_of(pid) - began < seconds / 3 and time.monotonic() < ends:
        time.sleep(0.005)


def processor_seconds_of(pid: int) -> float:
    """Return the processor time of a process as Linux tells it, infinity where it does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Trials:
    """Runs children against one collection, wherever it is, and remembers what was acknowledged."""

    def __init__(self, location: str, workplace: Path, seed: int) -> None:
        self.location = location
        self.workplace = workplace
        self.seed = seed
        self.dice = random.Random(seed)
        self.acknowledged: State = {}
        self.steps = 0
        command = [sys.executable, "-m", "bench.kill_trials", "--nursery"]
        self.nursery = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        Collection.create(location, ToyRetriever(), root=workplace, load_retriever=ToyRetriever.load).close()

    def run(self, number: int, seconds: float) -> list[str]:
        """Let a child work for some time, kill it, and return what is wrong with the collection."""
        pid = self.start(number)
        wait_for_work(pid, seconds)
        if (status := self.kill(pid)) != -signal.SIGKILL:
            return [f"the child ended by itself with {status}"]
        return self.problems(self.under_way())

    def start(self, number: int, **environment: str) -> int:
        """Start a child, and return its process number when it has opened the collection."""
        self.log.unlink(missing_ok=True)
        place = {"location": self.location, "workplace": str(self.workplace), "log": str(self.log)}
        pid = self._ask({**place, "seed": 1000 * self.seed + number, "environment": environment})["pid"]
        deadline = time.monotonic() + START_SECONDS
        while not self.log.exists() or "\n" not in self.log.read_text():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the child has not opened {self.location} within {START_SECONDS:.0f} s")
            time.sleep(0.005)
        return int(pid)

    def kill(self, pid: int) -> int:
        """Kill a child and return what it ended with."""
        os.kill(pid, signal.SIGKILL)
        return int(self._ask({"wait": pid})["status"])

    def under_way(self) -> State:
        """Take in what the child said, and return what it had begun and not finished."""
        return self._replay(self.log.read_text())

    @property
    def log(self) -> Path:
        """What the child says."""
        return self.workplace / "log"

    def close(self) -> None:
        """End the nursery."""
        self.nursery.communicate()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        self.nursery.stdin.write(json.dumps(order) + "\n")
        self.nursery.stdin.flush()
        return dict(json.loads(self.nursery.stdout.readline()))

    def _replay(self, output: str) -> State:
        under_way: State = {}
        for line in output.splitlines(keepends=True):
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

    def problems(self, under_way: State) -> list[str]:
        """Compare the reopened collection with what was acknowledged."""
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


def run_trials(trials: int, seed: int = 0, longest: float = 1.5) -> tuple[dict[str, int], list[str]]:
    """Run trials one after the other on one collection; return what was counted, and what went wrong."""
    workplace = Path(tempfile.mkdtemp(prefix="diptych-kill-"))
    runner = Trials(str(workplace / "collection"), workplace, seed)
    wrong: list[str] = []
    failed = 0
    try:
        for number in range(trials):
            problems = runner.run(number, runner.dice.uniform(0.0, longest))
            failed += bool(problems)
            wrong += [f"trial {number}: {problem}" for problem in problems]
    finally:
        runner.close()
        shutil.rmtree(workplace, ignore_errors=True)
    return {"trials": trials, "acknowledged": runner.steps, "lost": failed, "recovered": trials - failed}, wrong


def main() -> int:
    """Be the nursery, or run the trials and return the exit code."""
    if "--nursery" in sys.argv:
        nursery()
        return 0
    return campaign(__doc__, "a killed process", run_trials, trials=200, at_once=25)


if __name__ == "__main__":
    sys.exit(main())
