"""Whether this process is one of Diptych's programs, which need not leave room for what else somebody may do in it."""

from __future__ import annotations

import atexit
import gc
import os

# A search makes a hundred thousand objects that stay, most of them by imports; looking through them for what could go
# is a tenth of its time.
_NEW_OBJECTS, _SOON = 200_000, 10_000
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
