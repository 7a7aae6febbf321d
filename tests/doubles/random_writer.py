"""A process that writes to a collection at random and prints what it begins and what is acknowledged."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from diptych.collection.storage import rows, store

from diptych.collection import AddProgress, Collection, CollectionError, Record
from diptych.collection.learning import rollback
from tests.doubles.toy_retriever import ToyRetriever, item_state

WRITE_WAIT_S = 30.0


def write_at_random(location: str, workplace: Path, seed: int) -> None:
    """Write until the process is killed; print a line of JSON before and after each step."""
    dice = random.Random(seed)
    if seed % 2:
        # A hundred rows count as many: the newest of them are joined by themselves.
        store._INDEXED_FROM, rows._MANY_FRAGMENTS = 100, 8
    collection = Collection.open(location, load_retriever=ToyRetriever.load, write_wait=WRITE_WAIT_S)
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


if __name__ == "__main__":
    write_at_random(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
