"""The web server that runs an application."""

from __future__ import annotations

import uvicorn
from starlette.types import ASGIApp

from diptych.service.operations.bounded_protocol import BoundedProtocol
from diptych.service.settings import Settings

_GRACE_SECONDS = 30
_IDLE_SECONDS = 60
_LONGEST_HEADERS = 32 * 1024


def server_settings(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return how the server runs: one event loop, quiet, patient with running requests, impatient with slow ones."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )
