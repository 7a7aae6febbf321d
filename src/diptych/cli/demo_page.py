"""The demonstration as a web page."""

from __future__ import annotations

from pathlib import Path

import typer

from diptych.cli.serve_address import listen, page_address
from diptych.cli.serve_browser import open_when_ready
from diptych.errors import InvalidInputError

_HOST = "127.0.0.1"
_PORT = 8765


def serve_page(name: str, collection: Path, *, open_page: bool, quiet: bool) -> None:
    """Serve one collection to this machine until it is told to end, on the usual port or any that is free."""
    from diptych.service.operations.launch import launch
    from diptych.service.security.token_file import given_token, own_token, session_secret
    from diptych.service.settings import Settings

    settings = Settings(
        collections={name: collection}, token=given_token(None) or own_token(), session_secret=session_secret()
    )
    try:
        listening = listen(_HOST, _PORT)
    except InvalidInputError:
        listening = listen(_HOST, 0)
    with listening:
        address = page_address(_HOST, listening.getsockname()[1])
        if not quiet:
            typer.echo(f"\nThe page is at {address} (Ctrl+C ends it)")
        if open_page:
            open_when_ready(address)
        launch(settings, listening, quiet=True)
