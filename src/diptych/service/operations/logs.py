"""Where the log goes, and how it looks."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO

from diptych.service.operations.json_lines import JsonLines
from diptych.service.operations.text_lines import TextLines

LogFormat = Literal["text", "json"]


def set_up_logs(format: LogFormat, *, quiet: bool = False, stream: TextIO | None = None) -> None:
    """Send the log of the service to stderr; ``quiet`` keeps warnings and errors."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    level = logging.WARNING if quiet else logging.INFO
    for name, least in (("diptych", level), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False
    # Anyone can cause this message as often as they like, and nobody here can mend what it says.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "Invalid HTTP request" not in record.getMessage())
