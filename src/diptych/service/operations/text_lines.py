"""Log records for people."""

from __future__ import annotations

import logging
import time


class TextLines(logging.Formatter):
    """Writes each record as one line to read; only the trace of an error takes more."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = getattr(record, "fields", None)
        text = record.getMessage() if fields is None else _request(fields)
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{clock} {level}{text}{trace}"


def _request(fields: dict[str, object]) -> str:
    template = "{method} {route} {status} {milliseconds} ms {bytes} bytes {client} {request_id}"
    return template.format_map(fields)
