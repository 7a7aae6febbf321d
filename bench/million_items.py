"""A collection of a million items on one machine: start, memory, searches, filters, facets, additions.

Each item has a point of 256 numbers, a caption and three fields. The collection is filled through its store, because
encoding a million pictures is another matter, and opened by fresh processes, as a service's workers would. Times stand
beside those of the bare index and of the bare engine in the same run.

    python -m bench.million_items --items 1000000 --folder /var/tmp/million
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.filled_collection import (
    WIDTH,
    Peak,
    PointRetriever,
    facts,
    fill,
    opened,
    private_megabytes,
    timed,
)
from diptych.collection import Collection, Record
from diptych.collection.search.gallery import PointBlock
from diptych.collection.storage.word_index import WordIndex

PROGRAM = (sys.executable, "-m", "bench.million_items")

_BATCH = 20_000
# Below what a process and the files that it uses take at a million items.
_LITTLE_MEGABYTES = 500
# Where Linux limits memory, in its former and its present way.
_CONTROL_GROUPS = {"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}
_GROUP = "diptych-million-items-"


# On two quiet cores, with a million items.
BARS = {
    "open to first answer, s": 1.5,
    "plain to bare index": 1.5,
    "recall@10": 0.95,
    "short to bare index and words": 1.5,
    "hybrid to bare index and words": 1.5,
    "new filter and search, ms": 100,
    "facets, ms": 300,
    "private memory, MB": 300,
    "seen by all, ms": 200,
    "bulk load: ours to the engine's own": 0.7,
}
_AT_LEAST = ("recall@10", "bulk load: ours to the engine's own")


def _median(work: Callable[[int], Any], times: int = 30) -> float:
    return 1000 * statistics.median(timed(lambda turn=turn: work(turn)) for turn in range(times))


def _medians_in_turns(*works: Callable[[int], Any], times: int = 40) -> list[float]:
    """Return the median milliseconds of works that take turns: each finds the machine as the other leaves it."""
    taken = [[timed(lambda turn=turn, work=work: work(turn)) for work in works] for turn in range(times)]
    return [1000 * statistics.median(each) for each in zip(*taken, strict=True)]


def ask(folder: Path) -> dict[str, float]:
    """Open the collection as a worker of the service does, ask it everything, and return what it took."""
    import faiss

    started = time.perf_counter()
    collection = opened(folder)
    collection.search("first", k=10)
    found = {"open to first answer, s": time.perf_counter() - started}
    queries = [f"query {number}" for number in range(40)]
    embedded = {text: collection.retriever.encode_texts([text]) for text in queries}
    for text in queries:
        collection.search(text, hybrid=False)
        collection.search(text)
    snapshot = collection._state.snapshot()
    block = max(snapshot.galleries["image"].blocks, key=len)
    if block.index is None:
        found["plain, ms"] = _median(lambda turn: collection.search(queries[turn], hybrid=False))
    else:
        found["plain, ms"], found["bare index, ms"] = _medians_in_turns(
            lambda turn: collection.search(queries[turn], hybrid=False),
            # Another query: what the last one has brought into the processor's cache would help.
            lambda turn: _bare_search(block, embedded[queries[(turn + 20) % 40]]),
        )
    # Short queries may be names, and are looked for among words besides; one of these has a word that all paths have.
    found["short, ms"] = _median(lambda turn: collection.search(queries[turn]))
    found["short with a word of all, ms"] = _median(lambda turn: collection.search(f"picture {turn}"))
    if block.index is not None:
        points = np.vstack(list(embedded.values()))
        near, _ = collection.nearest(points, 10, exact=False)
        truth, _ = collection.nearest(points, 10, exact=True)
        found["recall@10"] = float(np.mean([len({*a} & {*b}) / 10 for a, b in zip(near, truth, strict=True)]))
        found["threads"] = float(faiss.omp_get_max_threads())
    words = [f"word{2 * number + 5} word{number + 300}" for number in range(30)]
    found["words of the engine, best 1,000, ms"] = _median(
        lambda turn: collection._state.store.words.any_of(words[turn], 1000)
    )
    found["hybrid, ms"] = _median(lambda turn: collection.search(words[turn], hybrid=True))
    found["new filter and search, ms"] = _median(
        lambda turn: collection.search("x", filter=f'year>={1960 + turn} and camera:"camera {turn % 20}"')
    )
    found["new filter on paths, ms"] = _median(lambda turn: collection.search("x", filter=f"path:{turn}/*"))
    found["facets, ms"] = 1000 * timed(collection.facets)
    found["facets of a filter, ms"] = _median(lambda turn: collection.facets(f"year={1950 + turn}"), 10)
    found["item by id, ms"] = _median(lambda turn: collection[hashlib.sha256(str(turn).encode()).hexdigest()[:16]])
    found["private memory, MB"] = private_megabytes()
    found["items"] = len(collection)
    if "bare index, ms" in found:
        bare = found["bare index, ms"]
        found["plain to bare index"] = found["plain, ms"] / bare
        words_too = bare + found["words of the engine, best 1,000, ms"]
        found["short to bare index and words"] = found["short, ms"] / words_too
        found["hybrid to bare index and words"] = found["hybrid, ms"] / words_too
    return found


def _bare_search(block: PointBlock, query: np.ndarray) -> np.ndarray:
    """Return the ten nearest rows by the index alone; what rounded lists find is scored again, for the same recall."""
    index = block.index
    _, rows = index.engine.search(query, index.wanted(10))
    if index.is_coarse:
        rows = rows[:, np.argsort(block.vectors[rows[0]] @ -query[0])[:10]]
    return rows


def ask_in_little_memory(folder: Path) -> dict[str, float]:
    """Search with less memory than the files in use take: the system lets go of pages, and reads them again."""
    for file in (path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            # What others have read is in memory on their account.
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not _limit_memory(_LITTLE_MEGABYTES << 20):
        return {}
    with opened(folder) as collection:
        collection.search("first", k=10, hybrid=False)
        name = f"in {_LITTLE_MEGABYTES} MB, "
        return {
            f"{name}plain, ms": _median(lambda turn: collection.search(f"plain {turn}", hybrid=False)),
            f"{name}short, ms": _median(lambda turn: collection.search(f"query {turn}"), 5),
            f"{name}private memory, MB": private_megabytes(),
        }


def _limit_memory(n_bytes: int) -> bool:
    """Put this process into a control group of so much memory, what it reads of files included; root alone can."""
    for base, limit in _CONTROL_GROUPS.items():
        group = Path(base, f"{_GROUP}{os.getpid()}")
        try:
            group.mkdir()
            (group / limit).write_text(str(n_bytes))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            continue
        return True
    return False


def _remove_memory_limits() -> None:
    """Remove the groups of processes that have ended."""
    for group in (group for base in _CONTROL_GROUPS for group in Path(base).glob(f"{_GROUP}*")):
        with suppress(OSError):
            group.rmdir()


def change(folder: Path) -> dict[str, float]:
    """Add one item at a time, and look at once for it by points, by a filter and by words."""
    with opened(folder) as collection:
        collection.search("first")
        collection.search("first", hybrid=True)
        steps: dict[str, list[float]] = {name: [] for name in ("add", "plain", "filter", "words")}
        for turn in range(12):
            name = f"zebra{turn}{time.time_ns()}"
            record = Record(captions=[name], id=name, metadata={"year": 3000 + turn, "code": name})
            steps["add"].append(timed(lambda record=record: collection.add([record])))
            looks = {
                "plain": {"target": "texts"},
                "filter": {"target": "texts", "filter": f"code={name}"},
                "words": {"target": "texts", "hybrid": 1.0},
            }
            for kind, options in looks.items():
                started = time.perf_counter()
                answers = collection.search(name, k=1, **options)
                steps[kind].append(time.perf_counter() - started)
                assert answers[0].id == name, (kind, answers)
        took = {f"{kind} after one addition, ms": 1000 * statistics.median(times) for kind, times in steps.items()}
        took["seen by all, ms"] = sum(took.values())
    return took


def change_often(folder: Path) -> dict[str, float]:
    """Add 120 items one at a time, so that small files have to be joined, and look for every tenth by words."""
    with opened(folder) as collection:
        collection.search("first", hybrid=True)
        added, found = [], []
        for turn in range(120):
            name = f"okapi{turn}{time.time_ns()}"
            added.append(timed(lambda name=name: collection.add([Record(captions=[name], id=name)])))
            if turn % 10 == 9:
                found.append(timed(lambda name=name: collection.search(name, k=1, target="texts")))
    return {
        "one of 120 additions, mean, ms": 1000 * statistics.mean(added),
        "one of 120 additions, slowest, ms": 1000 * max(added),
        "found after each tenth, slowest, ms": 1000 * max(found),
    }


def fold(folder: Path) -> dict[str, float]:
    """Make the search files of the items anew, and put those that were there back."""
    index, aside = folder / "index", folder / "index-aside"
    index.rename(aside)
    try:
        with Peak() as peak, opened(folder) as collection:
            seconds = timed(lambda: len(collection))
    finally:
        shutil.rmtree(index, ignore_errors=True)
        aside.rename(index)
    return {"search files of the items, s": seconds, "search files, most private memory, MB": peak.megabytes}


class NumberedPoints(PointRetriever):
    """The points of texts that begin with the number of their row."""

    def __init__(self, matrix: np.ndarray) -> None:
        super().__init__()
        self._matrix = matrix

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows that the texts name."""
        return self._matrix[[int(text.partition(" ")[0]) for text in texts]]


def load(folder: Path, n_items: int) -> dict[str, float]:
    """Load columns with points; beside it, the bare engine writes the same.

    It makes the same rows of the same tables from the same columns or Python objects, and ends with the same indexes.
    What is ours alone is in our time: names and values are checked, and the search files are made.
    """
    records, matrix = _records(n_items)
    batches = list(_batches(records, matrix))
    del records
    return _beside_the_engine(
        "bulk load",
        folder,
        NumberedPoints(matrix),
        lambda collection: collection.load(batches),
        lambda: _bare_load(folder / "bare", batches, ["points"]),
    )


def add_records(folder: Path, n_items: int) -> dict[str, float]:
    """Add records that cost no encoding; beside it, the bare engine writes the same."""
    records, matrix = _records(n_items)
    return _beside_the_engine(
        "records",
        folder,
        NumberedPoints(matrix),
        lambda collection: collection.add(records),
        lambda: _bare_load(folder / "bare", _batches(records, matrix), ["features", "points"]),
    )


def _records(n_items: int) -> tuple[list[Record], np.ndarray]:
    matrix = PointRetriever().points(np.random.default_rng(2), n_items)
    captions = (f"{row} word{row % 1000} word{row % 77}" for row in range(n_items))
    rows = enumerate(captions)
    return [Record(captions=[text], id=f"{row:016x}", metadata=facts(row)) for row, text in rows], matrix


def _beside_the_engine(
    name: str,
    folder: Path,
    retriever: NumberedPoints,
    ours: Callable[[Collection], Any],
    theirs: Callable[[], Any],
) -> dict[str, float]:
    with Collection.create(folder / "ours", retriever, load_retriever=lambda _: retriever) as collection:
        mine = _on_both_clocks(lambda: ours(collection))
    bare = _on_both_clocks(theirs)
    found = {f"{name}, s": mine[0], f"{name}, s of processors": mine[1]}
    found |= {f"{name} of the bare engine, s": bare[0], f"{name} of the bare engine, s of processors": bare[1]}
    found[f"{name}: ours to the engine's own"] = bare[0] / mine[0]
    found[f"{name}: the same of processors"] = bare[1] / mine[1]
    return found


def _on_both_clocks(work: Callable[[], Any]) -> list[float]:
    started, busy = time.perf_counter(), time.process_time()
    work()
    return [time.perf_counter() - started, time.process_time() - busy]


def _batches(records: Sequence[Record], matrix: np.ndarray) -> Iterator[Any]:
    """Yield records with points of their captions as columns."""
    import pyarrow as pa

    for start in range(0, len(records), _BATCH):
        some = records[start : start + _BATCH]
        yield pa.table(
            {
                "id": [record.id for record in some],
                "caption": [record.captions[0] for record in some],
                "metadata": [json.dumps(record.metadata) for record in some],
                "text_point": pa.FixedSizeListArray.from_arrays(matrix[start : start + _BATCH].ravel(), WIDTH),
            }
        )


def _bare_load(folder: Path, batches: Iterable[Any], vector_tables: Sequence[str]) -> None:
    import lancedb
    import pyarrow as pa
    import pyarrow.compute as pc
    from lancedb.index import BTree

    database, tables, start = lancedb.connect(folder), {}, 0
    for batch in batches:
        ids, texts = batch["id"].combine_chunks(), batch["caption"].combine_chunks()
        caption_ids = pc.binary_join_element_wise(ids, "0", "-")
        times = 10**18 + 1000 * np.arange(start, start + len(batch))
        start += len(batch)
        vectors = {
            "key": [hashlib.sha256(text.encode()).hexdigest() for text in texts.to_pylist()],
            "vector": batch["text_point"],
        }
        items = {
            "id": ids,
            "path": pa.nulls(len(batch), "string"),
            "content_hash": pa.nulls(len(batch), "string"),
            **{name: np.zeros(len(batch), dtype=np.int64) for name in ("size", "mtime_ns", "width", "height")},
            "labels": pa.array([[]] * len(batch), pa.list_(pa.string())),
            "metadata": batch["metadata"],
            "caption_ids": pa.ListArray.from_arrays(np.arange(len(batch) + 1, dtype=np.int32), caption_ids),
            "added_ns": times,
            "updated_ns": times,
        }
        captions = {"id": caption_ids, "item_id": ids, "text": texts}
        for name, columns in {
            **dict.fromkeys(vector_tables, vectors),
            "captions": captions,
            "items": items,
        }.items():
            rows = pa.table(columns)
            if name in tables:
                tables[name].add(rows)
            else:
                tables[name] = database.create_table(name, rows)
    WordIndex(Path(folder), tables.get, lambda name: None).prepare()
    for name, column in (
        *((name, "key") for name in vector_tables),
        ("captions", "item_id"),
        ("items", "added_ns"),
        ("items", "updated_ns"),
    ):
        tables[name].create_index(column, config=BTree())


def _judged(name: str, value: float) -> str:
    """Return the bar of a number and whether it is met."""
    if name not in BARS:
        return ""
    bar = BARS[name]
    is_met = value >= bar if name in _AT_LEAST else value <= bar
    return f"bar {'>=' if name in _AT_LEAST else '<='} {bar:g}: {'met' if is_met else 'MISSED'}"


def _in_process(folder: Path, step: str, n_items: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "bench.million_items",
        "--folder",
        str(folder),
        "--step",
        step,
        "--items",
        str(n_items),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


STEPS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "ask": lambda folder, _: ask(folder),
    "little memory": lambda folder, _: ask_in_little_memory(folder),
    "change": lambda folder, _: change(folder),
    "change often": lambda folder, _: change_often(folder),
    "fold": lambda folder, _: fold(folder),
    "load": load,
    "records": add_records,
}


def main() -> None:
    """Run all steps, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the collection is kept and found again")
    parser.add_argument("--step", choices=tuple(STEPS))
    arguments = parser.parse_args()
    if arguments.step is not None:
        print(json.dumps(STEPS[arguments.step](arguments.folder, arguments.items)))
        return
    base = arguments.folder or Path(tempfile.mkdtemp())
    collection = base / f"collection-{arguments.items}"
    try:
        if not (collection / "collection.json").exists():
            for name, seconds in fill(collection, arguments.items, PointRetriever()).items():
                print(f"{name:50s} {seconds:10.1f} s", flush=True)
        for step in STEPS:
            with tempfile.TemporaryDirectory(dir=base) as scratch:
                at = Path(scratch) if step in ("load", "records") else collection
                for name, value in _in_process(at, step, arguments.items).items():
                    print(f"{name:50s} {value:10.2f}  {_judged(name, value)}", flush=True)
    finally:
        _remove_memory_limits()
        if arguments.folder is None:
            shutil.rmtree(base)


if __name__ == "__main__":
    main()
