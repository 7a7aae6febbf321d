"""Whether this process is one of Diptych's programs, which need not leave room for what else somebody may do in it."""

from __future__ import annotations

import gc
import os

# Imports make a hundred thousand objects that stay; looking through them for what could go is a tenth of a start.
_NEW_OBJECTS = 100_000
_claimed = False


def claim() -> None:
    """Say at the start of a program that the process is its own."""
    global _claimed
    _claimed = True
    gc.set_threshold(_NEW_OBJECTS)
    # Pydantic would read what every installed package says of itself; Typer does without for arguments, too.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def is_ours() -> bool:
    """Tell whether a program has claimed the process; one that imports the library has not."""
    return _claimed
