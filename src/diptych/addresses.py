"""Addresses of collections in object storage, told from folders."""

from __future__ import annotations

import os
import re

# pathlib joins slashes, so that both forms of an address are met.
_ADDRESS = re.compile(r"(s3|gs|az|azure|abfss?):/+(?P<rest>.*)", re.DOTALL)


def storage_address(location: str | os.PathLike[str]) -> str | None:
    """Return the address of a collection in object storage, or None for a folder.

    >>> from pathlib import Path
    >>> storage_address("s3://bucket/photos"), storage_address(Path("s3://bucket/photos/")), storage_address("photos")
    ('s3://bucket/photos', 's3://bucket/photos', None)
    """
    found = _ADDRESS.fullmatch(os.fspath(location))
    return None if found is None else f"{found[1]}://{found['rest'].strip('/')}"
