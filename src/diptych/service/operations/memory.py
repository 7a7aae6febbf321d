"""The memory of a process that serves: kept in few heaps, and given back to the system while it runs."""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress

from diptych.encoders.networks.mapped_weights import let_go_of_tables
from diptych.service.security.limits import usable_cores

# What mallopt of glibc calls the greatest number of heaps, from which size on a block has pages of its own, and how
# much of a heap may lie free at its end.
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
_OWN_PAGES_BYTES, _FREE_BYTES = 128 << 10, 1 << 20
_RETURN_SECONDS = 10.0


def keep_heaps_small() -> None:
    """Let threads share a heap for each core, and large blocks go back to the system when they are freed.

    glibc makes eight heaps for a core, and what dozens of threads free lies about in them; and whenever a larger block
    is freed, it takes all of that size from the heaps from then on, between what is kept. The memory of a busy service
    grew for an hour by that. The number of heaps counts where threads have not begun yet. PyArrow has heaps of its own,
    one for each thread, which kept 10 to 25 MB of which nothing was in use; it takes from these instead, if it has not
    been imported yet.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError, TypeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_ARENA_MAX, max(2, usable_cores()))
        set_option(_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
        set_option(_TRIM_THRESHOLD, _FREE_BYTES)


def return_memory() -> None:
    """Give the system what lies free in the heaps, again and again: glibc keeps as much as was ever in use at once.

    Networks' tables of words are let go of, too, or a service would have the pages of every word that it ever met.
    """
    while True:
        time.sleep(_RETURN_SECONDS)
        let_go_of_tables()
        with suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
