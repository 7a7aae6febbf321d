"""Work divided into tasks: done here or by the workers of a Dask cluster, with the same results in the same order."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from diptych.errors import InvalidInputError, MissingPackageError

_PATIENCE_SECONDS = 15

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers(Protocol):
    """Something that does tasks. What functions take and return must be fit to be sent to another machine."""

    @property
    def elsewhere(self) -> bool:
        """Whether they may run on machines that see other files."""

    def map(self, function: Callable[..., Result], tasks: Iterable[Task], *shared: Any) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` in the order of the tasks, which are asked for a few ahead of the results.

        What is shared is sent once to each worker.
        """

    def merged(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Task],
        *shared: Any,
        merge: Callable[[Result, Result], Result],
        done: Callable[[Task], None],
    ) -> Result:
        """Return the results merged in pairs, in an order that their number decides; ``done`` hears of each task."""


@contextmanager
def open_workers(scheduler: str | None = None, n_threads: int = 1, *, ahead: bool = False) -> Iterator[Workers]:
    """Give the workers of the Dask scheduler at an address; without one, threads of this process."""
    if scheduler is None:
        yield ThreadWorkers(n_threads, ahead)
    else:
        with connect(scheduler) as client:
            yield ClusterWorkers(client)


@dataclass(frozen=True)
class ThreadWorkers:
    """Threads of this process; one alone is the caller's, which does each task when its result is asked for.

    With ``ahead`` they are others, which do the next tasks while the caller is busy with a result.
    """

    n_threads: int = 1
    ahead: bool = False
    elsewhere = False

    def map(self, function: Callable[..., Result], tasks: Iterable[Task], *shared: Any) -> Iterator[Result]:
        """Yield the results in the order of the tasks."""
        if self.n_threads == 1 and not self.ahead:
            yield from (function(task, *shared) for task in tasks)
            return
        pool = ThreadPoolExecutor(self.n_threads)
        try:
            starts = (pool.submit(function, task, *shared) for task in tasks)
            n_ahead = self.n_threads if self.ahead else 2 * self.n_threads
            yield from (future.result() for future in begun_early(starts, lambda: n_ahead))
        finally:
            pool.shutdown(cancel_futures=True)

    def merged(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Task],
        *shared: Any,
        merge: Callable[[Result, Result], Result],
        done: Callable[[Task], None],
    ) -> Result:
        """Return the results merged in pairs."""
        listed = list(tasks)

        def counted() -> Iterator[Result]:
            for task, result in zip(listed, self.map(function, listed, *shared), strict=True):
                done(task)
                yield result

        return merge_in_pairs(counted(), merge)


@dataclass(frozen=True)
class ClusterWorkers:
    """Workers of a Dask scheduler; what a worker that dies was doing or holding is done again by others."""

    client: Any
    elsewhere = True

    def map(self, function: Callable[..., Result], tasks: Iterable[Task], *shared: Any) -> Iterator[Result]:
        """Yield the results in the order of the tasks."""
        sent = self._sent(shared)
        starts = (self._submit(function, task, *sent) for task in tasks)
        yield from map(self._result, begun_early(starts, self._tasks_ahead))

    def merged(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Task],
        *shared: Any,
        merge: Callable[[Result, Result], Result],
        done: Callable[[Task], None],
    ) -> Result:
        """Return the results merged in pairs, on the workers."""
        sent = self._sent(shared)
        begun = {self._submit(function, task, *sent): task for task in tasks}
        merged = merge_in_pairs(list(begun), lambda left, right: self._submit(merge, left, right))
        # What has been merged is of no use to anybody, and what is not asked for any more is forgotten.
        for future in dask_distributed().as_completed(list(begun), loop=self.client.loop):
            self._check(future)
            done(begun.pop(future))
        result: Result = self._result(merged)
        return result

    def _sent(self, shared: Iterable[Any]) -> list[Any]:
        # Tasks that only return what they were given: workers hand it to each other, and it is made again where it is
        # lost, which data sent to one worker are not. It may be as large as a network, of which the scheduler warns.
        with import_module("dask").config.set({"distributed.admin.large-graph-warning-threshold": "2GB"}):
            return [self._submit(_itself, value) for value in shared]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        name = f"{function.__name__}-{uuid4().hex}"
        with _while_it_answers():
            return self.client.submit(_with_one_core, function, *arguments, key=name)

    def _tasks_ahead(self) -> int:
        with _while_it_answers():
            threads: dict[str, int] = self.client.nthreads()
        return 2 * sum(threads.values()) + 1

    def _result(self, future: Any) -> Any:
        self._check(future)
        with _while_it_answers():
            return future.result()

    def _check(self, future: Any) -> None:
        with _while_it_answers():
            error = future.exception()
        if isinstance(error, dask_distributed().KilledWorker):
            raise InvalidInputError(f"workers died one after the other, perhaps for want of memory ({error})")
        if error is not None:
            raise error


@contextmanager
def _while_it_answers() -> Iterator[None]:
    try:
        yield
    except (OSError, CancelledError) as problem:
        raise InvalidInputError(
            f"the Dask scheduler has gone ({type(problem).__name__}); start it and its workers again, and go on"
        ) from None


def begun_early(starts: Iterable[Result], ahead: Callable[[], int]) -> Iterator[Result]:
    """Yield what is started in the order of starting, each after so many others have been started."""
    begun: deque[Result] = deque()
    for start in starts:
        begun.append(start)
        while len(begun) > ahead():
            yield begun.popleft()
    while begun:
        yield begun.popleft()


def merge_in_pairs(items: Iterable[Result], merge: Callable[[Result, Result], Result]) -> Result:
    """Merge neighbours, then neighbours of these, and so on: in an order that only their number decides.

    No more than the logarithm of that number waits at once.

    >>> merge_in_pairs("abcdefg", lambda left, right: f"({left}{right})")
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, Result]] = []
    for item in items:
        size = 1
        while waiting and waiting[-1][0] == size:
            item, size = merge(waiting.pop()[1], item), 2 * size
        waiting.append((size, item))
    merged = waiting.pop()[1]
    while waiting:
        merged = merge(waiting.pop()[1], merged)
    return merged


def _itself(value: Result) -> Result:
    return value


# A worker has a task for each of its threads.
_has_one_core: ContextVar[bool] = ContextVar("has_one_core", default=False)


def _with_one_core(function: Callable[..., Result], *arguments: Any) -> Result:
    token = _has_one_core.set(True)
    try:
        return function(*arguments)
    finally:
        _has_one_core.reset(token)


def available_processors() -> int:
    """Return how many processors may be used: one in a task on a cluster, else those of this process."""
    if _has_one_core.get():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def connect(address: str) -> Any:
    """Return a client of the Dask scheduler at ``address``, such as tcp://host:8786; close it, or use it in ``with``.

    Workers need Diptych in the version of the driver and see the same files under the same names.
    """
    distributed = dask_distributed()
    try:
        client = distributed.Client(address, timeout=_PATIENCE_SECONDS, set_as_default=False)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(
            f"no Dask scheduler answers at {address} ({problem}); start one with `dask scheduler`, "
            "and its workers with `dask worker tcp://HOST:8786 --nthreads 1`"
        ) from None
    if not client.nthreads():
        warnings.warn(
            f"{address} has no workers yet; start some with `dask worker {address} --nthreads 1`", stacklevel=2
        )
    return client


def dask_distributed() -> Any:
    """Return the module ``distributed``, or say how to install it."""
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingPackageError("running on a cluster", "'diptych[cluster]'") from None
