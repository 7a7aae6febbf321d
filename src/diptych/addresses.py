"""Addresses of collections in a PostgreSQL database; a folder of this machine has a path instead."""

from __future__ import annotations

import os
import re

from diptych.errors import InvalidInputError

_POSTGRES = ("postgresql://", "postgres://")
_PASSWORDS = ("password=", "sslpassword=")
# pathlib joins slashes, so that both forms of an address are met.
_OBJECT_STORAGE = re.compile(r"(s3|gs|az|azure|abfss?):/+(?P<rest>.*)", re.DOTALL)


def is_address(place: str | os.PathLike[str]) -> bool:
    """Return True if a place is a database server's, not a folder; one in object storage is refused.

    >>> is_address("postgresql://ann@host/photos"), is_address("photos/.diptych")
    (True, False)
    """
    name = os.fspath(place)
    if found := _OBJECT_STORAGE.fullmatch(name):
        raise InvalidInputError(
            f"{found[1]}://{found['rest']}: collections in object storage are not supported; give a folder or an "
            "address of PostgreSQL, postgresql://user@host/database?schema=name"
        )
    return name.startswith(_POSTGRES)


def without_password(place: str | os.PathLike[str]) -> str:
    """Return a place as it may be printed and remembered.

    >>> without_password("postgresql://ann:secret@host/photos?schema=summer&password=secret")
    'postgresql://ann@host/photos?schema=summer'
    """
    name = os.fspath(place)
    if not name.startswith(_POSTGRES):
        return name
    server, mark, query = name.partition("?")
    scheme, _, rest = server.partition("://")
    authority, slash, database = rest.partition("/")
    user, at, host = authority.rpartition("@")
    kept = "&".join(one for one in query.split("&") if not one.startswith(_PASSWORDS))
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{database}{mark if kept else ''}{kept}"
