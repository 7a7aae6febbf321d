"""A few threads that stay, for work that leaves Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import TypeVar

from diptych.errors import InvalidInputError

Task = TypeVar("Task")
Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: those asked for, or one for each processor this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise InvalidInputError(f"threads must be at least 1, got {threads}; None uses every processor")
    return threads


def in_parallel(work: Callable[[Task], Result], tasks: Sequence[Task], threads: int) -> list[Result]:
    """Return ``work`` of every task, in order.

    The calling thread works too and takes whatever is left, so that on a busy machine nothing waits for a helper that
    has not been given a processor yet.
    """
    helpers = min(threads, len(tasks)) - 1
    if helpers < 1:
        return [work(task) for task in tasks]
    results: dict[int, Result] = {}
    left: SimpleQueue[int] = SimpleQueue()
    for number in range(len(tasks)):
        left.put(number)

    def take_what_is_left() -> None:
        with suppress(Empty):
            while True:
                number = left.get_nowait()
                results[number] = work(tasks[number])

    waiting = [_pool(threads).submit(take_what_is_left) for _ in range(helpers)]
    take_what_is_left()
    for helper in waiting:
        if not helper.cancel():
            helper.result()
    return [results[number] for number in range(len(tasks))]


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    # Starting threads takes as long as searching a hundred thousand codes, so they are kept.
    return ThreadPoolExecutor(threads, thread_name_prefix="diptych-codes")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but none of its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
