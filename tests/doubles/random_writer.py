"""A process that writes to a collection at random and prints what it begins and what is acknowledged."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.collection import AddProgress, Collection, Record, SavedSearch, StoredRetriever
from diptych.collection.learning import rollback
from diptych.collection.learning.retriever_training import rolls_back_to
from diptych.errors import CollectionBusyError
from tests.doubles.toy_retriever import ToyRetriever, item_state

WRITE_WAIT_S = 30.0


SHARED = {"add": 6, "change": 3, "remove": 2, "pictures": 2, "album": 6, "saved search": 4, "own model": 2}
ALONE = {**SHARED, "own model": 0, "retriever": 2, "further": 5, "repair": 1, "load": 3, "rollback": 2, "index": 1}
"""How often each kind of step is drawn by one of several writers, and by the only one."""


def write_at_random(location: str, workplace: Path, seed: int, *, is_alone: bool = True) -> None:
    """Write until the process is killed; print a line of JSON before and after each step.

    Two writers have an even and an odd seed; each changes its own items, albums, searches and models alone, so that it
    knows what they are.
    """
    dice, own = random.Random(seed), str(seed % 2)
    collection = Collection.open(location, load_retriever=ToyRetriever.load, write_wait=WRITE_WAIT_S)
    say({"opened": len(collection), "done": in_force(collection.retrievers()[0])})
    weights = ALONE if is_alone else SHARED
    step = 0
    while True:
        step += 1
        known = sorted(item.id for item in collection if is_alone or item.id.startswith(f"{own}-"))
        kind = dice.choices(list(weights), list(weights.values()))[0] if known else "add"
        prefix = f"{own}-{seed}-{step}"
        if kind == "add":
            add_texts(collection, prefix, dice.randint(1, 120))
        elif kind == "pictures":
            add_pictures(collection, workplace / "pictures", prefix, dice.randint(1, 12))
        elif kind == "change":
            change(collection, dice.sample(known, min(len(known), dice.randint(1, 20))), prefix)
        elif kind == "remove":
            ids = dice.sample(known, min(len(known), dice.randint(1, 300)))
            state = {
                title: [one for one in members if one not in ids]
                for title, members in _albums(collection)
                if not set(ids).isdisjoint(members)
            }
            state |= dict.fromkeys(ids)
            with said(state):
                collection.remove(ids)
        elif kind == "album":
            change_album(collection, f"{own} {dice.randrange(3)}", dice.sample(known, min(len(known), 5)), dice)
        elif kind == "saved search":
            change_saved_search(collection, f"{own} {dice.randrange(3)}", prefix)
        elif kind == "own model":
            change_own_model(collection, 10 + seed % 2)
        elif kind == "retriever":
            retriever = ToyRetriever(dice.randint(0, 3))
            with said(in_force(retriever)):
                collection.set_retriever(retriever, keep=dice.random() < 0.5)
        elif kind == "load" and len(collection.retrievers()) == 1:
            load_texts(collection, prefix, dice.randint(1, 500))
        elif kind == "rollback":
            name = rolls_back_to(collection)
            before = [one for one in collection.retrievers() if one.name == name and one.ready]
            if before:
                with said(in_force(before[0])):
                    rollback(collection)
        elif kind == "further":
            change_further(collection, dice)
        elif kind == "index":
            collection.search("x", target="texts")
            collection.build_index()
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
        tables.append(columns)
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
        with said({item_id: state}):
            collection.update(item_id, captions=state[0], labels=state[1])


def change_further(collection: Collection, dice: random.Random) -> None:
    """Add, activate or remove one of the retrievers beside the active one."""
    stored = collection.retrievers()
    further = [one for one in stored if not one.active]
    ready = [one for one in further if one.ready]
    kind = dice.choice(["add", "add", "activate", "remove"])
    if kind == "activate" and ready:
        chosen = dice.choice(ready)
        with said(in_force(chosen)):
            collection.activate_retriever(chosen.name)
    elif kind == "remove" and further:
        collection.remove_retriever(dice.choice(further).name)
    else:
        collection.add_retriever(ToyRetriever(dice.randint(0, 3)))


def _albums(collection: Collection) -> list[tuple[str, list[str]]]:
    return [(f"album {album.title}", list(album.ids)) for album in collection.albums]


def change_album(collection: Collection, title: str, ids: list[str], dice: random.Random) -> None:
    """Fill an album anew, or delete it."""
    is_deleted = title in collection.albums and dice.random() < 0.3
    state = {f"album {title}": None if is_deleted else ids}
    with said(state):
        if is_deleted:
            collection.albums.delete(title)
        else:
            collection.albums.set(title, ids)


def change_saved_search(collection: Collection, name: str, query: str) -> None:
    """Save a search, or delete the one that is saved under the name."""
    is_deleted = name in collection.saved_searches
    state = {f"search {name}": None if is_deleted else query}
    with said(state):
        if is_deleted:
            collection.saved_searches.delete(name)
        else:
            collection.saved_searches.save(SavedSearch(name, query))


def change_own_model(collection: Collection, turn: int) -> None:
    """Add a retriever that no other writer changes, or remove it."""
    retriever = ToyRetriever(turn)
    there = [stored for stored in collection.retrievers() if stored.fingerprint == retriever.fingerprint]
    key, is_removed = f"model {retriever.fingerprint}", bool(there) and there[0].ready
    with said({key: None if is_removed else True}):
        if is_removed:
            collection.remove_retriever(there[0].name)
        else:
            collection.add_retriever(retriever)


def state_of(collection: Collection) -> dict[str, Any]:
    """Return what is there as writers say it."""
    own = {ToyRetriever(turn).fingerprint for turn in (10, 11)}
    models = {f"model {stored.fingerprint}": True for stored in collection.retrievers() if stored.fingerprint in own}
    searches = {f"search {search.name}": search.query for search in collection.saved_searches}
    items = {item.id: item_state(item.captions, item.labels) for item in collection}
    return items | dict(_albums(collection)) | searches | models | in_force(collection.retrievers()[0])


def in_force(retriever: StoredRetriever | ToyRetriever) -> dict[str, Any]:
    """Return what writers say where searches use a retriever."""
    return {"in force": retriever.fingerprint}


@contextmanager
def said(state: Mapping[str, Any]) -> Iterator[None]:
    """Say what a step is about to bring about, and after it that it is done."""
    say({"begin": state})
    yield
    say({"done": state})


def say(line: object) -> None:
    """Print a line at once: what was printed before the kill must reach the parent."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Writers:
    """A process that has imported all that writers need, and forks them: that is quicker than starting each."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "tests.doubles.random_writer"]
        environment = {**os.environ, **(environment or {})}
        self._forking = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def begin(self, log: Path, location: str, workplace: Path, seed: int, *, is_alone: bool = True) -> int:
        """Start a writer that says in a log what it does; return its process."""
        return self._ask([str(log), location, str(workplace), seed, is_alone])

    def wait(self, pid: int) -> int:
        """Wait until a writer has ended; return its exit code, which is negative for a signal."""
        return self._ask(pid)

    def close(self) -> None:
        """End the process; writers end by themselves or are killed."""
        self._forking.communicate()

    def _ask(self, question: object) -> int:
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(json.dumps(question) + "\n")
        self._forking.stdin.flush()
        return int(self._forking.stdout.readline())


def fork_writers() -> None:
    """Fork a writer for each list on standard input, and wait for one for each number."""
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1])
        elif not (answer := os.fork()):
            log, location, workplace, seed, is_alone = asked
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), sys.stdout.fileno())
            write(location, Path(workplace), seed, is_alone=is_alone)
        say(answer)


def write(location: str, workplace: Path, seed: int, *, is_alone: bool) -> None:
    """Write until the process is killed or the collection is busy for too long."""
    try:
        write_at_random(location, workplace, seed, is_alone=is_alone)
    except CollectionBusyError as refused:
        say({"refused": str(refused)})
    sys.exit()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), is_alone=True)
    fork_writers()
