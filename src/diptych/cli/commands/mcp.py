"""``diptych mcp``: the collection as tools for agents."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console.output import notes
from diptych.cli.console.paths import open_collection
from diptych.cli.options import CollectionArgument, DeviceOption
from diptych.errors import MissingPackageError


def mcp(
    collection: CollectionArgument = None,
    http: Annotated[
        bool, typer.Option("--http", help="Listen on this machine, with the token, instead of standard input.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --http: the port; 0 takes any that is free.")
    ] = 8766,
    write: Annotated[bool, typer.Option("--write", help="Let agents put items into albums.")] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(help="With --http: a file with the token; by default DIPTYCH_TOKEN, or your own one."),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Let agents search a collection, by the Model Context Protocol.

    They search with probabilities, look at items and albums, and are told where nothing shows what was asked for. They
    change nothing, but for albums with --write.
    """
    if find_spec("mcp") is None:
        raise MissingPackageError("serving agents", "'diptych[search,mcp]'")
    from diptych.service.agents import agent_server, serve_http
    from diptych.service.security.tokens import configured_token, own_token

    with open_collection(collection, quiet=True) as opened:
        server = agent_server(opened, is_writable=write)
        if not http:
            server.run("stdio")
            return
        token = configured_token(token_file) or own_token()
        serve_http(server, token, port, lambda address: notes().print(f"agents: {address}", soft_wrap=True))
