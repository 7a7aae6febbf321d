"""What this process is: one of Diptych's programs, which leaves no room for others, and how it keeps its memory."""

from __future__ import annotations

import atexit
import gc
import os
from contextlib import suppress

# A search makes a hundred thousand objects that stay, most of them by imports; looking through them for what could go
# is a tenth of its time.
_NEW_OBJECTS, _SOON = 200_000, 10_000
# What mallopt of glibc calls the greatest number of heaps, from which size on a block has pages of its own, and how
# much of a heap may lie free at its end.
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
_OWN_PAGES_BYTES, _FREE_BYTES = 128 << 10, 1 << 20
# The most that glibc takes.
_LARGEST_KEPT, _MOST_KEPT = 32 << 20, 2**31 - 1
_claimed = False


def claim() -> None:
    """Say at the start of a program that the process is its own."""
    global _claimed
    _claimed = True
    gc.set_threshold(_NEW_OBJECTS)
    # Nor are they looked through three more times when the program ends; what is registered first comes last then.
    atexit.register(gc.freeze)
    # Pydantic would read what every installed package says of itself; Typer does without for arguments, too.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def settle() -> None:
    """Say that a program that runs for long has started: what is there stays, and what comes is looked through soon."""
    gc.freeze()
    gc.set_threshold(_SOON)


def is_ours() -> bool:
    """Tell whether a program has claimed the process; one that imports the library has not."""
    return _claimed


def keep_heaps_small(n_cores: int) -> None:
    """Let threads share a heap for each core, and large blocks go back to the system when they are freed.

    glibc makes eight heaps for a core, and what dozens of threads free lies about in them; and whenever a larger block
    is freed, it takes all of that size from the heaps from then on, between what is kept. The memory of a busy service
    grew for an hour by that. The number of heaps counts where threads have not begun yet. PyArrow has heaps of its own,
    one for each thread, which keep what nothing uses any more; it takes from these instead, if it has not been imported
    yet.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _set_options({_ARENA_MAX: max(2, n_cores), _MMAP_THRESHOLD: _OWN_PAGES_BYTES, _TRIM_THRESHOLD: _FREE_BYTES})


def keep_freed_memory() -> None:
    """Keep what is freed, where large blocks come and go: getting their pages again takes longer than filling them."""
    _set_options({_MMAP_THRESHOLD: _LARGEST_KEPT, _TRIM_THRESHOLD: _MOST_KEPT})


def _set_options(options: dict[int, int]) -> None:
    # Every program imports this module, and few of them set anything.
    import ctypes

    # Only glibc has them.
    with suppress(OSError, AttributeError, TypeError):
        set_option = ctypes.CDLL(None).mallopt
        for option, value in options.items():
            set_option(option, value)
