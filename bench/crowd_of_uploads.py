"""Let a crowd send pictures that are costly to read, while somebody else goes on searching.

    python -m bench.crowd_of_uploads [--turns 3] [--senders 44]

A real service with a small collection gets as many uploads at once as there are senders, each sent again when it is
answered: pictures that only boast of their size, pictures as large as uploads may be, pictures just small enough to be
decoded in the service itself, and drawings that never finish. A client searches meanwhile. Kinds take turns with quiet
ones, in which nobody sends: how busy the machine is with other things shows in those. Adds a round for each kind to the
record: how uploads were answered, the middle and the longest wait of the client beside those of the quiet turns, the
most memory that a process took, and the load of the machine. An answer 5xx other than 503 and 507, a process beyond
1 GB, and a search that takes two seconds more than the longest quiet one are findings, after which it exits with 1.
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from bench.campaign import add_round, arguments, next_seed
from bench.hostile_pictures import png, whole_png
from bench.hostile_requests import LONGEST_WAIT, MOST_BYTES, TOKEN, make_collection, most_memory, start_service

FAULT = "a crowd of uploads"
TURN_SECONDS = 8.0
_BOUNDARY = "a-line-between-parts"
_CLOUDS = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><filter id="f"><feTurbulence numOctaves="99999999"/>'
    b'</filter><rect width="9" height="9" filter="url(#f)"/></svg>'
)
KINDS: dict[str, Callable[[], bytes]] = {
    "boasts": lambda: png(40_000, 40_000, bytes(40_000_000)),
    "as large as may be": lambda: whole_png(9_900),
    "decoded here": lambda: whole_png(4_900),
    "never finishes": lambda: _CLOUDS,
}


def send_on(port: int, picture: bytes, n_senders: int, line: Connection) -> None:
    """Send a picture by so many threads until told to end, in a process that leaves the processor to the others."""
    os.nice(10)
    answers: Counter[str] = Counter()
    is_ending = threading.Event()
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\n'.encode()
    body = head + picture + f"\r\n--{_BOUNDARY}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}", "Authorization": f"Bearer {TOKEN}"}

    def send() -> None:
        while not is_ending.wait(0.1):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("POST", "/v1/uploads", body, kind)
                answers[str(connection.getresponse().status)] += 1
            except (OSError, http.client.HTTPException) as error:
                answers[type(error).__name__] += 1
            connection.close()

    for _ in range(n_senders):
        threading.Thread(target=send, daemon=True).start()
    line.recv()
    is_ending.set()
    line.send(answers)


def searches(port: int, seconds: float) -> list[float]:
    """Search for some time; return how long each answer took, and infinity for what was no answer."""
    ends, taken = time.monotonic() + seconds, []
    while time.monotonic() < ends or not taken:
        time.sleep(0.1)
        started = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/v1/collections/scenes/search?q=a+red+house")
        is_answered = connection.getresponse().status == 200
        taken.append(time.perf_counter() - started if is_answered else float("inf"))
        connection.close()
    return taken


def turn(port: int, picture: bytes, n_senders: int) -> tuple[list[float], Counter[str]]:
    """Search beside those who send; return how long each search took and what senders were told."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    crowd = context.Process(target=send_on, args=(port, picture, n_senders, theirs), daemon=True)
    crowd.start()
    # They are there when the first is being answered.
    time.sleep(2)
    taken = searches(port, TURN_SECONDS)
    ours.send("enough")
    answers = ours.recv()
    crowd.kill()
    crowd.join()
    return taken, answers


def main() -> None:
    """Take turns, tell and judge."""
    parser = arguments(__doc__, minutes=float("inf"))
    parser.add_argument("--turns", type=int, default=3, help="of each kind of picture")
    parser.add_argument("--senders", type=int, default=44)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="by default all")
    options = parser.parse_args()
    findings = 0
    with tempfile.TemporaryDirectory() as name:
        make_collection(Path(name))
        service, url = start_service(Path(name))
        port = urlsplit(url).port
        assert port is not None
        for kind in options.kinds or KINDS:
            picture, quiet, busy, answers = KINDS[kind](), [], [], Counter[str]()
            for _ in range(options.turns):
                quiet += searches(port, TURN_SECONDS)
                taken, told = turn(port, picture, options.senders)
                busy, answers = busy + taken, answers + told
            most = most_memory(service)
            wrong = sum(n for status, n in answers.items() if status[0] == "5" and status not in ("503", "507"))
            wrong += (max(busy) > max(quiet) + LONGEST_WAIT) + (most > MOST_BYTES) + (service.poll() is not None)
            findings += wrong
            fault = f"{FAULT}: {kind}"
            waits = {
                "p50": _middle(busy),
                "longest": max(busy),
                "quiet_p50": _middle(quiet),
                "quiet_longest": max(quiet),
            }
            found = {"searches": len(busy), **{what: round(seconds, 3) for what, seconds in waits.items()}}
            found |= {"answers": dict(answers), "most_bytes": most, "load": os.getloadavg()[0]}
            seed = next_seed(options.record, fault)
            add_round(options.record, fault, seed, trials=sum(answers.values()), findings=wrong, **found)
        service.terminate()
        service.wait(timeout=30)
    sys.exit(1 if findings else 0)


def _middle(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


if __name__ == "__main__":
    main()
