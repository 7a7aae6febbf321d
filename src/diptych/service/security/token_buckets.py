"""How often each client may ask."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_CLIENTS = 10_000


class TokenBuckets:
    """A bucket of tokens for each client, which fills at a steady rate and is emptied by requests.

    Only the clients seen last are remembered. One that is forgotten starts with a full bucket, as it would after the
    time that this takes.

    >>> from diptych.service.security.token_buckets import TokenBuckets
    >>> buckets = TokenBuckets(rate=1.0, burst=2, clock=lambda: 0.0)
    >>> [buckets.take("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        most_clients: int = _MOST_CLIENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._most_clients = most_clients
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take tokens and return 0, or take none and return the seconds until there are enough."""
        now = self._clock()
        left, then = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        is_enough = left >= cost
        self._buckets[client] = (left - cost if is_enough else left, now)
        if len(self._buckets) > self._most_clients:
            self._buckets.popitem(last=False)
        return 0.0 if is_enough else (cost - left) / self._rate
