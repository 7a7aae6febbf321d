"""The click log that a request means, and what a client is told when it fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends

from diptych.service.clicks import ClickLog, ClickLogError, UnknownSearchError
from diptych.service.context import Context, Hosted
from diptych.service.problem import Problem

_log = logging.getLogger("diptych.service")


async def click_log(context: Context, hosted: Hosted) -> ClickLog:
    """Return the click log of the collection that an address names."""
    log = context.click_logs.get(hosted.name)
    if log is None:
        raise Problem(404, "click-log-off", "This service remembers no clicks; start it without --no-click-log.")
    return log


Logged = Annotated[ClickLog, Depends(click_log)]


@contextmanager
def log_problems() -> Iterator[None]:
    """Turn what the log refuses into problem documents."""
    try:
        yield
    except UnknownSearchError as error:
        raise Problem(404, "no-such-search", _sentence(error)) from None
    except ClickLogError as error:
        raise _problem(error) from None


def _problem(error: ClickLogError) -> Problem:
    if error.cause == "full":
        return Problem(507, "click-log-full", _sentence(error))
    if error.cause == "busy":
        return Problem(503, "busy", _sentence(error), headers={"Retry-After": "1"})
    # The message names a folder of this machine, which is none of the client's business.
    _log.error("%s", error)
    return Problem(503, "click-log-unusable", "The click log cannot be used; the log of the service says why.")


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
