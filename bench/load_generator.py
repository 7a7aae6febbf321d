"""Clients that search, click, write and upload over HTTP, each in a thread, all in a process of their own; prints JSON.

Started by ``servers.py``. A client keeps one connection, asks, and clicks one of the answers
where clicks are wanted, then asks again. With ``--writes`` that share of its turns adds a text, changes one of its own
or removes it, and it never has more than two, so that the collection does not grow; with ``--uploads`` it searches with
a picture that it sends. Standard library alone, because a richer client would cost more than the service.
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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

_MOST_OWN = 2


class Client(threading.Thread):
    """One person: searches, and clicks if told to, until the end."""

    def __init__(self, options: argparse.Namespace, number: int, queries: list[str], end: float) -> None:
        super().__init__(daemon=True)
        address = urlsplit(options.url)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        self._base = f"/v1/collections/{options.collection}"
        self._is_clicking = options.clicks
        self._writes, self._uploads = options.writes, options.uploads
        self._number = number
        # What an earlier run wrote is in the cache of features, and would not be encoded.
        self._run = f"begun at {time.time():.0f}"
        self._written = 0
        # What is in the collection on this client's account: by id, the labels that were acknowledged.
        self.own: dict[str, list[str]] = {}
        self.removed: list[str] = []
        self.turns: list[tuple[str, float, float, int]] = []
        self._random = random.Random(number)
        self._queries = queries
        self._end = end
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['DIPTYCH_TOKEN']}"}
        self.errors: list[str] = []

    def run(self) -> None:
        """Go on until the end."""
        while time.monotonic() < self._end:
            try:
                self._turn()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.errors.append(repr(error))
                self._connection.close()

    @contextmanager
    def _timed(self, kind: str) -> Iterator[list[int]]:
        """Note when something was asked, how long it took and with which status it was answered."""
        wall, started, status = time.time(), time.perf_counter(), [0]
        try:
            yield status
        finally:
            self.turns.append((kind, wall, time.perf_counter() - started, status[0]))

    def _turn(self) -> None:
        drawn = self._random.random()
        if drawn < self._writes:
            self._write()
        elif drawn < self._writes + self._uploads:
            self._search_with_picture()
        else:
            self._search(self._random.choice(self._queries))

    def _write(self) -> None:
        kinds = ("add", "change", "remove")
        # Left to chance, more would be added than removed for a long time.
        kind = "add" if not self.own else self._random.choice(kinds[len(self.own) // _MOST_OWN :])
        item = self._random.choice(list(self.own)) if kind != "add" else ""
        self._written += 1
        name = f"{self._written} of client {self._number}, {self._run}"
        with self._timed(kind) as status:
            if kind == "add":
                status[0], body = self._send("POST", f"{self._base}/items", {"captions": [f"note {name}"]})
            elif kind == "change":
                status[0], body = self._send("PATCH", f"{self._base}/items/{item}", {"labels": [name]})
            else:
                status[0], body = self._send("DELETE", f"{self._base}/items/{item}")
        if status[0] not in (200, 201, 204):
            self.errors.append(f"{kind}: {status[0]} {body[:200]!r}")
        elif kind == "remove":
            del self.own[item]
            self.removed.append(item)
        else:
            document = json.loads(body)
            self.own[document["id"]] = document["labels"]

    def _search_with_picture(self) -> None:
        # A picture of one colour, as a file that every reader of pictures takes.
        header = b"P6 96 96 255\n" + bytes(self._random.randrange(256) for _ in range(3)) * (96 * 96)
        form = b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a.ppm"\r\n\r\n' + header
        with self._timed("upload") as status:
            headers = {**self._headers, "Content-Type": "multipart/form-data; boundary=x"}
            self._connection.request("POST", "/v1/uploads", form + b"\r\n--x--\r\n", headers)
            answer = self._connection.getresponse()
            status[0], body = answer.status, answer.read()
        if status[0] != 201:
            self.errors.append(f"upload: {status[0]} {body[:200]!r}")

    def _search(self, query: str) -> None:
        with self._timed("search") as noted:
            status, body = self._send("POST", f"{self._base}/search", {"query": query, "limit": 30})
            noted[0] = status
        if status != 200:
            self.errors.append(f"search: {status} {body[:200]!r}")
            return
        if self._is_clicking:
            self._click(json.loads(body))

    def _click(self, found: dict[str, Any]) -> None:
        answer = self._random.choice(found["answers"])
        click = {"search_id": found["search_id"], "item": answer["id"], "position": answer["rank"], "kind": "open"}
        with self._timed("click") as noted:
            status, body = self._send("POST", f"{self._base}/clicks", click)
            noted[0] = status
        if status != 201:
            self.errors.append(f"click: {status} {body[:200]!r}")

    def _send(self, method: str, address: str, document: dict[str, Any] | None = None) -> tuple[int, bytes]:
        self._connection.request(method, address, None if document is None else json.dumps(document), self._headers)
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
    parser.add_argument("--writes", type=float, default=0.0)
    parser.add_argument("--uploads", type=float, default=0.0)
    options = parser.parse_args()
    queries = json.load(sys.stdin)
    end = time.monotonic() + options.seconds
    clients = [Client(options, number, queries, end) for number in range(options.clients)]
    started = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    elapsed = time.monotonic() - started
    report = {
        "seconds": elapsed,
        "errors": [error for client in clients for error in client.errors],
        "turns": [turn for client in clients for turn in client.turns],
        "own": {item: labels for client in clients for item, labels in client.own.items()},
        "removed": [item for client in clients for item in client.removed],
    }
    json.dump(report, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
