"""Clients that search and click over HTTP, each in a thread, all in a process of their own; prints JSON.

Started by ``service_load.py``. A client keeps one connection, asks, and clicks one of the answers where clicks are
wanted, then asks again. Standard library alone, because a richer client would cost more than the service.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit


class Client(threading.Thread):
    """One person: searches, and clicks if told to, until the end."""

    def __init__(self, options: argparse.Namespace, number: int, queries: list[str], end: float) -> None:
        super().__init__(daemon=True)
        address = urlsplit(options.url)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        self._base = f"/v1/collections/{options.collection}"
        self._is_clicking = options.clicks
        self._random = random.Random(number)
        self._queries = queries
        self._end = end
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['DIPTYCH_TOKEN']}"}
        self.search_seconds: list[float] = []
        self.click_seconds: list[float] = []
        self.errors: list[str] = []

    def run(self) -> None:
        """Go on until the end."""
        while time.monotonic() < self._end:
            try:
                self._turn()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.errors.append(repr(error))
                self._connection.close()

    def _turn(self) -> None:
        query = self._random.choice(self._queries)
        started = time.perf_counter()
        status, body = self._post(f"{self._base}/search", {"query": query, "limit": 30})
        self.search_seconds.append(time.perf_counter() - started)
        if status != 200:
            self.errors.append(f"search: {status} {body[:200]!r}")
            return
        if self._is_clicking:
            self._click(json.loads(body))

    def _click(self, found: dict[str, Any]) -> None:
        answer = self._random.choice(found["answers"])
        click = {"search_id": found["search_id"], "item": answer["id"], "position": answer["rank"], "kind": "open"}
        started = time.perf_counter()
        status, body = self._post(f"{self._base}/clicks", click)
        if status == 201:
            self.click_seconds.append(time.perf_counter() - started)
        else:
            self.errors.append(f"click: {status} {body[:200]!r}")

    def _post(self, address: str, document: dict[str, Any]) -> tuple[int, bytes]:
        self._connection.request("POST", address, json.dumps(document), self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def main() -> int:
    """Run the clients and print what they met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("collection")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clicks", action="store_true")
    options = parser.parse_args()
    queries = json.load(sys.stdin)
    end = time.monotonic() + options.seconds
    clients = [Client(options, number, queries, end) for number in range(options.clients)]
    started, cpu = time.monotonic(), time.process_time()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    elapsed = time.monotonic() - started
    report = {
        "seconds": elapsed,
        "busy": (time.process_time() - cpu) / elapsed,
        "search_seconds": [value for client in clients for value in client.search_seconds],
        "click_seconds": [value for client in clients for value in client.click_seconds],
        "errors": [error for client in clients for error in client.errors],
    }
    json.dump(report, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
