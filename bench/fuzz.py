"""Give broken input to everything that reads files or texts of others, and see that it is refused in one sentence.

    python -m bench.fuzz [filter query captions clicks model words facts features ...] [--minutes 30]

Each kind of input starts from a few good ones. They are cut, doubled, mixed and garbled, and those that bring about an
answer which none brought about before are garbled further; they are kept for the next time. The reader works in a
process of its own with limited memory. It may return, or raise an error of Diptych; any other error, a process that
dies and one that takes longer than ten seconds of a processor are findings. Their inputs are kept in ``bench/corpus``.

Minutes are those of a processor, so that a busy machine makes them last longer and not count for less. The kinds take
turns of two minutes; each turn is a round of the record, and prints a line of JSON. ``--once`` reads the good inputs,
some garbled ones and those of the corpus once, in this process. Exits with 1 where there was a finding.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.campaign import add_round, arguments, next_seed
from bench.fuzz_kinds import KINDS, Input, Kind
from diptych.errors import DiptychError

CORPUS = Path(__file__).parent / "corpus"
KEPT_INPUTS = Path(__file__).parents[1] / "build" / "fuzz"
TURN_MINUTES = 2.0
LONGEST_SECONDS = 10
LONGEST_WAIT = 300.0
MOST_MEMORY = 6 << 30
MOST_INPUTS = 400
LONGEST_INPUT = 1 << 16
N_AT_ONCE = 60

_NASTY_TEXTS = (
    *("", "\x00", "\ufeff", "\ud800", "1e999", "-1", "NaN", "Infinity", "9" * 400, "true", "null", "../../etc/passwd"),
    *(
        '"',
        "'",
        "(",
        ")" * 50,
        "(" * 2000,
        "[" * 2000,
        '{"a":' * 500,
        "not " * 500,
        "\t",
        "\r\n",
        "\n\n",
        ",",
        ";",
        ":",
    ),
    *("=", ">=", "$", "%s", "&amp;", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "\u202e", "🐕", "a" * 5000, "1" * 40, "-0", "٣"),
)
_NASTY_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1 << 70, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", "x" * 5000, [], {}),
    *([[[[[]]]]], {"$model": {}}, {"$array": "x"}, {"$strings": [1 << 40]}, [None] * 1000, "../x"),
)


def garbled(rng: random.Random, inputs: list[Input]) -> Input:
    """Return one of the inputs, changed in one to four ways."""
    ending, content = rng.choice(inputs)
    if ending in (".json", ".jsonl") and rng.random() < 0.5:
        return ending, _garbled_json(rng, content)
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        _garble(rng, changed, rng.choice(inputs)[1])
    return ending, bytes(changed[:LONGEST_INPUT])


def _garble(rng: random.Random, content: bytearray, other: bytes) -> None:
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((1, 1, 2, 4, 8, 30)))
    way = rng.randrange(6)
    if way == 0:
        content[start:end] = rng.randbytes(end - start)
    elif way == 1:
        del content[start:end]
    elif way == 2:
        content[start:start] = rng.choice(_NASTY_TEXTS).encode("utf-8", "surrogatepass")
    elif way == 3:
        content[start:start] = content[start:end] * rng.choice((1, 2, 50))
    elif way == 4:
        place = rng.randrange(len(other) + 1)
        content[start:end] = other[place : place + rng.choice((4, 20, 200))]
    else:
        content[start:end] = rng.choice((0, 1, 127, 255, 2**31 - 1, 2**63)).to_bytes(8, rng.choice(("little", "big")))


def _garbled_json(rng: random.Random, content: bytes) -> bytes:
    try:
        documents = [json.loads(line) for line in content.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return content[: rng.randrange(len(content) + 1)]
    for _ in range(rng.randint(1, 3)):
        holder: Any = documents
        while holder:
            key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if not isinstance(holder[key], dict | list) or rng.random() < 0.2:
                holder[key] = deepcopy(rng.choice(_NASTY_VALUES))
                break
            holder = holder[key]
    return "\n".join(json.dumps(document) for document in documents).encode("utf-8", "surrogatepass")[:LONGEST_INPUT]


def finding(kind: Kind, folder: Path, given: Input) -> tuple[str, str]:
    """Read an input; return what came of it in a few words, and the error that should not have been, if any."""
    try:
        kind.read(folder, given)
    except DiptychError as error:
        return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "…", f"{type(error).__name__} {error}")[:80], ""
    except Exception:
        return "", traceback.format_exc()
    return "read", ""


def _work(name: str, seed: int, kept: Path, connection: Connection) -> None:
    """Read garbled inputs in a process of its own, telling of each before it is read and what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind, rng = KINDS[name], random.Random(seed)
    inputs, known = kind.seeds(), set[str]()
    again = [(file.suffix, file.read_bytes()) for file in sorted(kept.glob("*"))]
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for given in chain(again, iter(lambda: garbled(rng, inputs), None)):
            longest = int(time.process_time()) + 1 + LONGEST_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (longest, resource.RLIM_INFINITY))
            connection.send((given, 0.0, ""))
            outcome, error = finding(kind, Path(folder), given)
            connection.send((None, time.process_time() - begun, error))
            if outcome and outcome not in known and len(inputs) < MOST_INPUTS:
                known.add(outcome)
                inputs.append(given)
                keep(kept, given)


def _read_once(name: str, given: Input) -> None:
    """Read one input within the limits of time and memory, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    KINDS[name].seeds()
    longest = int(time.process_time()) + 1 + LONGEST_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (longest, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder:
        finding(KINDS[name], Path(folder), given)


def is_slow_again(name: str, given: Input) -> bool:
    """Say whether a process that reads nothing else takes too long, too; a busy machine may stop one at any place."""
    worker = multiprocessing.get_context("spawn").Process(target=_read_once, args=(name, given), daemon=True)
    worker.start()
    worker.join(LONGEST_WAIT)
    worker.kill()
    worker.join()
    return worker.exitcode != 0


def fuzz(name: str, seconds: float, seed: int, kept: Path) -> Iterator[tuple[Input, float, str]]:
    """Yield each input that was read, with the processor time since the one before and what was wrong."""
    left, context = seconds, multiprocessing.get_context("spawn")
    while left > 0:
        ours, theirs = context.Pipe()
        worker = context.Process(target=_work, args=(name, seed, kept, theirs), daemon=True)
        worker.start()
        theirs.close()
        given: Input | None = None
        used, wrong, is_slow = 0.0, "", False
        while left > 0 and not wrong:
            if not ours.poll(LONGEST_WAIT):
                wrong, is_slow = f"it waits for longer than {LONGEST_WAIT:g} seconds", True
                break
            try:
                news, used_by_now, error = ours.recv()
            except EOFError:
                worker.join()
                is_slow = worker.exitcode == -signal.SIGXCPU
                ended = f"it takes longer than {LONGEST_SECONDS} seconds of a processor"
                wrong = ended if is_slow else f"the process ended with {worker.exitcode}"
                break
            if news is not None:
                given = news
            elif given is not None:
                yield given, used_by_now - used, error
                left, used = left - (used_by_now - used), used_by_now
        worker.kill()
        worker.join()
        if wrong and given is None:
            raise RuntimeError(f"No input of {name} was read: {wrong}.")
        if wrong and given is not None and (not is_slow or is_slow_again(name, given)):
            yield given, 0.0, wrong
        seed += 1


def keep(folder: Path, given: Input) -> Path:
    """Write an input into a folder, named by what it holds."""
    file = folder / f"{hashlib.sha256(given[1]).hexdigest()[:16]}{given[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(given[1])
    return file


def _cause(wrong: str) -> str:
    """Return the kind of an error and the last place of ours on the way to it, by which findings are told apart."""
    ours = re.findall(r'File ".*?(diptych/[^"]*", line \d+)', wrong)
    return f"{wrong.splitlines()[-1].split(':')[0]} {ours[-1]}" if ours else wrong


def _take_turn(name: str, minutes: float, options: Namespace, seen: set[str]) -> None:
    """Fuzz a kind for some minutes, and record what was found that has not been seen."""
    fault = f"garbled {name}"
    seed = next_seed(options.record, fault)
    trials, seconds, n_seen = 0, 0.0, len(seen)
    # Each process that was ended has had a seed of its own.
    for given, used, wrong in fuzz(name, 60 * minutes, 1000 * seed, options.inputs / name):
        trials, seconds = trials + 1, seconds + used
        place = _cause(wrong)
        if place and place not in seen:
            seen.add(place)
            print(f"{wrong}\n{keep(options.findings / name, given)}\n", file=sys.stderr, flush=True)
    found = len(seen) - n_seen
    add_round(options.record, fault, seed, trials=trials, processor_minutes=round(seconds / 60, 2), findings=found)


def findings_at_once(kinds: Sequence[str]) -> list[str]:
    """Read the good inputs, some garbled ones and those of the corpus, which are refused, in this process."""
    wrong = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in kinds:
            kind, rng = KINDS[name], random.Random(7)
            seeds = kind.seeds()
            for given in chain(seeds, (garbled(rng, seeds) for _ in range(N_AT_ONCE))):
                if error := finding(kind, Path(folder), given)[1]:
                    wrong.append(f"{name} {given}: {error}")
            for file in sorted((CORPUS / name).glob("*")):
                outcome, error = finding(kind, Path(folder), (file.suffix, file.read_bytes()))
                if error or outcome == "read":
                    wrong.append(f"{file}: {error or 'it is not refused'}")
    return wrong


def main() -> None:
    """Fuzz the chosen kinds in turns."""
    parser = arguments(__doc__, minutes=30.0)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="by default all, so many minutes each")
    parser.add_argument("--inputs", type=Path, default=KEPT_INPUTS, help="where inputs to garble further are kept")
    parser.add_argument("--findings", type=Path, default=CORPUS, help="where inputs that are findings are kept")
    parser.add_argument("--once", action="store_true", help="read a few inputs of each kind and those of the corpus")
    options = parser.parse_args()
    if options.once:
        sys.exit("\n".join(findings_at_once(options.kinds or list(KINDS))) or 0)
    left = dict.fromkeys(options.kinds or KINDS, options.minutes)
    seen = {name: set[str]() for name in left}
    while waiting := [name for name in left if left[name] > 0.01]:
        for name in waiting:
            _take_turn(name, min(TURN_MINUTES, left[name]), options, seen[name])
            left[name] -= TURN_MINUTES
    sys.exit(1 if any(seen.values()) else 0)


if __name__ == "__main__":
    main()
