"""Which code a number was computed by."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@cache
def code_digest(*sources: str) -> str:
    """Return a digest of files and folders of the package, so that a mended method does not show its old numbers.

    >>> from diptych.protocols.code_digest import code_digest
    >>> code_digest("space.py") == code_digest("space.py", "metrics")
    False
    """
    digest = hashlib.sha256()
    for source in sources:
        place = _PACKAGE / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()
