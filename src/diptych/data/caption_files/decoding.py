"""Text files in whatever encoding they come."""

from __future__ import annotations

import codecs
from pathlib import Path

from diptych.errors import InvalidInputError

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode_file(path: Path) -> tuple[str, str]:
    """Return the text of a file and a note about its encoding, which is empty for Unicode.

    A byte order mark decides; without one the text is UTF-8, then UTF-16 if its zero bytes say so, then Windows-1252
    and Latin-1, which read anything and so are only guessed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        ) from error
    encoding = _unicode_encoding(content)
    try:
        return content.decode(encoding), ""
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise InvalidInputError(
                f"{path} is broken {encoding} text at byte {error.start}; save it as UTF-8"
            ) from error
    return _decode_western(content, path)


def _unicode_encoding(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    start = content[:4096]
    # Western text in UTF-16 has a zero in every other byte; which one tells the byte order.
    for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(start) >= 2 and start[offset::2].count(0) > len(start) // 3:
            return encoding
    return "utf-8"


def _decode_western(content: bytes, path: Path) -> tuple[str, str]:
    try:
        text, name = content.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        text, name = content.decode("latin-1"), "Latin-1"
    return text, f"{path.name} is not UTF-8 and was read as {name}; save it as UTF-8 if accents look wrong"
