"""``diptych serve``: the web page and the REST API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.choices import LogFormat


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders that were indexed, or collections; by default the one here, or the last.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="What addresses call a collection; once for each FOLDER, by default the folder's own name."),
    ] = None,
    index: Annotated[bool, typer.Option("--index", help="First index the folders, or bring them up to date.")] = False,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 lets others in, which needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="How many processes search; with more than one, another one writes.")
    ] = 1,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change of the collections.")] = False,
    no_click_log: Annotated[
        bool, typer.Option("--no-click-log", help="Do not remember what was asked and clicked.")
    ] = False,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token, at least 16 characters; or set DIPTYCH_TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name of the service, for others, so it needs a token.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="The address of a proxy that forwards others, and is believed who they are."),
    ] = None,
    rate_limit: Annotated[
        float | None,
        typer.Option(min=0, help="Requests per second and client; 0: no limit. By default 1000, for others 50."),
    ] = None,
    max_upload: Annotated[int, typer.Option(min=1, max=1024, help="The largest upload, in MiB.")] = 20,
    log_format: Annotated[
        LogFormat, typer.Option(help="One line per request; auto: text on a terminal, JSON elsewhere.")
    ] = LogFormat.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")] = False,
) -> None:
    """Serve collections as a web page and a REST API, for this machine alone unless told otherwise.

    Programs write with the token (see the documentation), the page with its own session. Ctrl+C finishes what is
    running and ends.
    """
    from diptych.cli.serve_address import listen, page_address, refuse_strangers
    from diptych.cli.serve_browser import open_when_ready
    from diptych.cli.serve_packages import check_packages
    from diptych.cli.serve_places import served_collections

    check_packages()
    from diptych.service.limits import Limits
    from diptych.service.operations.launch import launch
    from diptych.service.security.token_file import given_token, own_token, session_secret
    from diptych.service.settings import Settings

    token = given_token(token_file)
    is_public = refuse_strangers(host, token, is_forwarded=bool(allow_host or proxy))
    collections = served_collections(folders or [], name or [], index=index, quiet=quiet)
    rate = rate_limit if rate_limit is not None else (50.0 if is_public else 1000.0)
    settings = Settings(
        collections=collections,
        token=token or own_token(),
        public=is_public,
        allowed_hosts=tuple(allow_host or ()),
        read_only=read_only,
        log_clicks=not no_click_log,
        limits=Limits(upload_bytes=max_upload * 2**20, requests_per_second=rate, burst=max(int(4 * rate), 1)),
        trusted_proxies=tuple(proxy or ()),
        workers=workers,
        session_secret=session_secret(),
    )
    with listen(host, port) as listening:
        address = page_address(host, listening.getsockname()[1])
        typer.echo(f"{', '.join(collections)}: {address}")
        if open_page:
            open_when_ready(address)
        launch(settings, listening, log_format=log_format.value, quiet=quiet)
