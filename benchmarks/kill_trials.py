"""Kill a process that writes to a collection, again and again, and look for anything lost.

Run ``python benchmarks/kill_trials.py`` (needs the ``search`` extra). A child process adds, changes and removes
items, loads columns, changes, adds, activates, removes and takes back retrievers, puts changes into search files and
cleans up, and says before each step what it is about to do and after it that it is done. The parent kills it
(SIGKILL) at a random moment, reopens the collection and checks it: every acknowledged item is there as acknowledged,
every removed one is gone, the step under way has left each item as it was before or after, never in between, and
every point of every finished retriever is the one that it gives. The command exits with 1 when a trial fails;
``reliability/campaign.py`` has its options.
"""

from __future__ import annotations

import hashlib
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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from diptych.collection import AddProgress, Collection, CollectionError, Record
from diptych.collection.learning import rollback
from diptych.collection.storage import rows, store
from diptych.encoders.encoder import EncodedBatch
from diptych.space import Space

WIDTH = 8
WRITE_WAIT_SECONDS = 30.0
START_SECONDS = 120.0
State = dict[str, Any]


class ToyRetriever:
    """A retriever that costs nothing: features are drawn from the digest of the content, points are a turn of them."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        self.turn = turn
        self.space = Space(space)
        self.name = f"toy {turn}"
        self.image_fingerprint = self.text_fingerprint = "toy"
        self.fingerprint = f"toy-{space}-{turn}"
        self.cutoff = 0.5
        self._matrix = np.linalg.qr(np.random.default_rng(turn).standard_normal((WIDTH, WIDTH)))[0]

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Take files that begin with ``bad`` for unreadable pictures."""
        contents = {row: Path(item).read_bytes() for row, item in enumerate(items)}
        good = [row for row, content in contents.items() if not content.startswith(b"bad")]
        failures = {row: "it is bad" for row in contents if row not in good}
        yield EncodedBatch(good, self._drawn([contents[row] for row in good]), failures)

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the features of texts."""
        return self._drawn([text.encode() for text in texts])

    def images_to_points(self, features: np.ndarray) -> np.ndarray:
        """Return the points of features."""
        points = np.asarray(features, dtype=np.float64) @ self._matrix
        if self.space.name == "hamming":
            return np.packbits(points > 0, axis=1)
        return (np.abs(points) if self.space.name == "kl" else points).astype(np.float32)

    texts_to_points = images_to_points

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        """Return the points of files."""
        return self.images_to_points(self._drawn([Path(item).read_bytes() for item in items]))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the points of texts."""
        return self.texts_to_points(self.text_features(texts))

    def probability(self, scores: np.ndarray, direction: str) -> np.ndarray:
        """Return something between 0 and 1 that grows with the score."""
        del direction
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -50, 50))))

    def score_slope(self, direction: str) -> float:
        """Return the slope of the logarithm of the odds."""
        del direction
        return 1.0

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the two numbers that make the retriever."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "toy.json").write_text(json.dumps([self.turn, self.space.name]))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ToyRetriever:
        """Read a saved one."""
        return cls(*json.loads((Path(folder) / "toy.json").read_text()))

    @staticmethod
    def _drawn(contents: Sequence[bytes]) -> np.ndarray:
        return np.array([_drawn_from(content) for content in contents], dtype=np.float32).reshape(-1, WIDTH)


@lru_cache(maxsize=20_000)
def _drawn_from(content: bytes) -> np.ndarray:
    """Return features; texts come again and again, and to begin a generator takes longer than all else of a trial."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:8])).standard_normal(WIDTH)


def item_state(captions: Sequence[str], labels: Sequence[str]) -> list[list[str]]:
    """Return what the trial remembers of an item."""
    return [list(captions), list(labels)]


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
            child(order["location"], Path(order["workplace"]), order["seed"])
        say({"pid": pid})


def child(location: str, workplace: Path, seed: int) -> None:
    """Write at random until killed; a line before and after each step."""
    dice = random.Random(seed)
    if seed % 2:
        # A hundred rows count as many: the newest of them are joined by themselves.
        store._INDEXED_FROM, rows._MANY_FRAGMENTS = 100, 8
    collection = Collection.open(location, load_retriever=ToyRetriever.load, write_wait=WRITE_WAIT_SECONDS)
    say({"opened": len(collection)})
    step = 0
    while True:
        step += 1
        known = {item.id: item for item in collection}
        kinds = ["add", "change", "remove", "retriever", "further", "repair", "pictures", "fold", "load", "rollback"]
        kind = dice.choices(kinds, weights=[8, 3, 3, 2, 5, 1, 3, 5, 3, 2])[0] if known else "add"
        prefix = f"{seed}-{step}"
        if kind == "add":
            add_texts(collection, prefix, dice.randint(1, 120))
        elif kind == "pictures":
            add_pictures(collection, workplace / "pictures", prefix, dice.randint(1, 12))
        elif kind == "change":
            change(collection, dice.sample(sorted(known), min(len(known), dice.randint(1, 20))), prefix)
        elif kind == "remove":
            ids = dice.sample(sorted(known), min(len(known), dice.randint(1, 300)))
            say({"begin": dict.fromkeys(ids)})
            collection.remove(ids)
            say({"done": dict.fromkeys(ids)})
        elif kind == "retriever":
            collection.set_retriever(ToyRetriever(dice.randint(0, 3)), keep=dice.random() < 0.5)
        elif kind == "load" and len(collection.retrievers()) == 1:
            load_texts(collection, prefix, dice.randint(1, 500))
        elif kind == "rollback":
            # Not every change can be taken back.
            with suppress(CollectionError):
                rollback(collection)
        elif kind == "further":
            change_further(collection, dice)
        elif kind == "fold":
            # Points are put into files with the items when they have been searched.
            collection.search("x", target="texts")
            collection._state.fold(everything=dice.random() < 0.5)
        else:
            collection.repair()


def add_texts(collection: Collection, prefix: str, count: int) -> None:
    """Add texts, acknowledged batch by batch."""
    records = [
        Record(captions=[f"text {prefix}-{number}"], labels=["new"], id=f"{prefix}-{number}") for number in range(count)
    ]
    put(collection, records)


def add_pictures(collection: Collection, folder: Path, prefix: str, count: int) -> None:
    """Add files that the retriever takes for pictures."""
    folder.mkdir(exist_ok=True)
    records = []
    for number in range(count):
        path = folder / f"{prefix}-{number}.png"
        path.write_text(f"picture {prefix}-{number}")
        records.append(Record(path, captions=[f"caption {prefix}-{number}"], labels=["new"], id=f"{prefix}-{number}"))
    put(collection, records)


def load_texts(collection: Collection, prefix: str, count: int) -> None:
    """Load columns with points, in groups that are acknowledged one by one."""
    pa = import_module("pyarrow")
    texts = {f"{prefix}-{number}": f"loaded {prefix}-{number}" for number in range(count)}
    points = collection.retriever.encode_texts(list(texts.values()))
    # Every other group lacks a column, which keeps it from being joined with the one before.
    groups = [slice(start, start + count // 4 + 1) for start in range(0, count, count // 4 + 1)]
    states, tables = {}, []
    for number, group in enumerate(groups):
        ids = list(texts)[group]
        labels = {"labels": [["new"]] * len(ids)} if number % 2 else {}
        states |= {one: item_state([texts[one]], ["new"] if labels else []) for one in ids}
        columns = {"id": ids, "caption": [texts[one] for one in ids], "text_point": list(points[group]), **labels}
        tables.append(pa.table(columns))
    say({"begin": states})
    collection.load(tables, progress=lambda n: say({"done": {one: states[one] for one in list(states)[:n]}}))


def put(collection: Collection, records: Sequence[Record]) -> None:
    """Add records and say which are durable."""
    states = {str(record.id): item_state(record.captions or (), record.labels or ()) for record in records}
    say({"begin": states})

    def acknowledge(progress: AddProgress) -> None:
        say({"done": {item_id: states[item_id] for item_id in progress.stored}})

    collection.add(records, progress=acknowledge)


def change(collection: Collection, ids: Sequence[str], prefix: str) -> None:
    """Give items other captions and labels, one by one."""
    for number, item_id in enumerate(ids):
        state = item_state([f"changed {prefix}-{number}", f"also {prefix}-{number}"], ["changed"])
        say({"begin": {item_id: state}})
        collection.update(item_id, captions=state[0], labels=state[1])
        say({"done": {item_id: state}})


def change_further(collection: Collection, dice: random.Random) -> None:
    """Add, activate or remove one of the retrievers beside the active one."""
    stored = collection.retrievers()
    further = [one for one in stored if not one.active]
    ready = [one for one in further if one.ready]
    kind = dice.choice(["add", "add", "activate", "remove"])
    if kind == "activate" and ready:
        collection.activate_retriever(dice.choice(ready).name)
    elif kind == "remove" and further:
        collection.remove_retriever(dice.choice(further).name)
    else:
        collection.add_retriever(ToyRetriever(dice.randint(0, 3)))


def say(line: dict[str, Any]) -> None:
    """Print a line at once: what was printed before the kill must reach the parent."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


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
        command = [sys.executable, __file__, "--nursery"]
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


def wrong_points(collection: Collection, retriever: str | None = None) -> list[str]:
    """Ask for every caption by its own point: the best answer must be itself, with a score of one."""
    captions = {
        caption: text for item in collection for caption, text in zip(item.caption_ids, item.captions, strict=True)
    }
    if not captions:
        return []
    source = collection.retriever if retriever is None else collection.retriever_named(retriever)
    ids, scores = collection.nearest(
        source.encode_texts(list(captions.values())), 1, target="texts", retriever=retriever
    )
    return [
        f"caption {caption} is found as {found} with {score:.4f}"
        for caption, found, score in zip(captions, ids[:, 0], scores[:, 0], strict=True)
        if captions.get(found) != captions[caption] or abs(score - 1) > 1e-5
    ]


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
    sys.path.insert(0, str(Path(__file__).parents[1] / "reliability"))
    campaign = import_module("campaign").campaign
    return int(campaign(__doc__, "a killed process", run_trials, trials=200, at_once=25))


if __name__ == "__main__":
    sys.exit(main())
