"""A checksum over the columns of a row: it finds flipped bits that the engines do not notice."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any


def row_crc(values: Iterable[Any]) -> int:
    """Return the CRC-32 of the values of a row, the same for what is written and what either engine reads back.

    The values are all columns of the table in the order of the schema, without ``id``, ``crc`` and ``until_ns``: so a
    row that is copied to ``former_item`` keeps its checksum.

    >>> row_crc(("a.jpg", 3, None)) == row_crc(("a.jpg", 3.0, None))
    True
    >>> row_crc(("ab", "c")) == row_crc(("a", "bc"))
    False
    """
    code = 0
    for value in values:
        body: bytes | bytearray | memoryview
        if isinstance(value, str):
            kind, body = b"t", value.encode()
        elif isinstance(value, bytes | bytearray | memoryview):
            kind, body = b"b", value
        elif value is None:
            kind, body = b"n", b""
        elif isinstance(value, float) and not value.is_integer():
            kind, body = b"f", struct.pack("<d", value)
        else:
            # A whole number in a column of doubles is read back as one: 3 as 3.0.
            kind, body = b"i", b"%d" % int(value)
        code = zlib.crc32(body, zlib.crc32(b"%s%d:" % (kind, len(body)), code))
    return code
