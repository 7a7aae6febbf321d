"""``diptych serve``: the web page and the REST API."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.addresses import is_address, without_password
from diptych.cli.console.output import print_json
from diptych.cli.console.paths import find_collection, is_collection, new_collection, place_of, shown_path
from diptych.cli.options import DeviceOption, JsonOption, LogFormat, folder_or_address
from diptych.data.remote_files import full_path, is_remote
from diptych.errors import InvalidInputError, MissingPackageError

if TYPE_CHECKING:
    from diptych.service.settings import Settings

PACKAGES = ("fastapi", "httpx", "prometheus_client", "pydantic_settings", "python_multipart", "structlog", "uvicorn")
ADDRESS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SIGN_IN_PAGE_S = 60.0


def serve(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders that were indexed, or collections, also by their postgresql:// addresses; by default the one "
            "here, or the last.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="What addresses call a collection; once for each FOLDER, by default the folder's own name."),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            help="The folder of the pictures of a collection that was copied, moved or restored; once for each FOLDER.",
            parser=folder_or_address,
            metavar="<dir>",
        ),
    ] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DIPTYCH_REPLICA",
            help="The postgresql:// address of the same schema on a replica, which answers searches; once for each "
            "collection.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow the folders of pictures and bring in what changes.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 lets others in, which needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser, signed in.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many processes answer.")] = 1,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change of the collections.")] = False,
    no_click_log: Annotated[bool, typer.Option("--no-click-log", help="Do not log searches and clicks.")] = False,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token, at least 16 characters; or set DIPTYCH_TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another host name of the service; others may use it, so it needs a token.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="The address of a reverse proxy whose forwarded client addresses are trusted."),
    ] = None,
    rate_limit: Annotated[
        float | None,
        typer.Option(min=0, help="Requests per second and client; 0: no limit. By default 1000, for others 50."),
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option(help="One line per request; auto: text on a terminal, JSON elsewhere.")
    ] = "auto",
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")] = False,
) -> None:
    """Serve collections as a web page and a REST API.

    It listens to this machine alone unless told otherwise. Everyone on this machine may search. Writing needs the
    token, or a page that is signed in: --open signs it in, and so does the address printed for it, once.
    Ctrl+C finishes what is running and ends.
    """
    if any(find_spec(package) is None for package in PACKAGES):
        raise MissingPackageError("serving", "'diptych[serve]'")
    if watch and read_only:
        raise InvalidInputError("--watch changes the collections, which --read-only forbids; leave one of them out")
    from diptych.service.operations.server import launch, listen
    from diptych.service.security.tokens import configured_token, own_token, session_folder, session_secret
    from diptych.service.settings import Settings

    token = configured_token(token_file)
    is_public = require_token_beyond_localhost(host, token, is_forwarded=bool(allow_host or proxy))
    collections = served_collections(folders or [], name or [])
    roots = named_roots(folders or [], collections, root or [])
    replicas = named_replicas(collections, replica or [])
    for called, place in collections.items():
        check_served_root(place, roots.get(called), token_file, watch=watch)
    rate = rate_limit if rate_limit is not None else (50.0 if is_public else 1000.0)
    settings = Settings(
        collections=collections,
        roots=roots,
        replicas=replicas,
        token=token or own_token(),
        public=is_public,
        allowed_hosts=tuple(allow_host or ()),
        read_only=read_only,
        watch=watch,
        log_clicks=not no_click_log,
        limits={"requests_per_second": rate, "burst": max(int(4 * rate), 1)},  # type: ignore[arg-type]
        trusted_proxies=tuple(proxy or ()),
        workers=workers,
        session_secret=session_secret(token),
        session_folder=session_folder(),
    )
    with listen(host, port) as listening:
        address = page_address(host, listening.getsockname()[1])
        if as_json:
            # One line, so that whoever reads it need not wait for the end of the service.
            print_json(
                {
                    "address": address,
                    "sign_in": sign_in_address(address, settings),
                    "collections": {called: without_password(place) for called, place in collections.items()},
                },
                indent=None,
            )
        else:
            typer.echo(f"{', '.join(collections)}: {address}")
            tell_sign_in(address, settings)
        if open_page:
            threading.Thread(target=_open, args=(sign_in_address(address, settings),), daemon=True).start()
        launch(settings, listening, log_format=log_format, quiet=quiet)


def served_collections(folders: Sequence[Path | str], names: Sequence[str]) -> dict[str, Path | str]:
    """Return the place of each collection by the name that addresses use."""
    from diptych.collection.state import recorded_root

    places = [_served_collection(place_of(folder)) for folder in folders] or [find_collection(None).place]
    if names:
        _check_given_for_each("--name", names, places)
    for name in names:
        if not ADDRESS_NAME.fullmatch(name):
            raise InvalidInputError(f"--name {name!r} is no name for an address; use letters, digits, '.', '_' and '-'")
    if len(set(names)) < len(names):
        raise InvalidInputError("--name is given twice with the same name; give each collection its own")
    chosen = list(names) or unique_names(recorded_root(place).folder.name for place in places)
    return dict(zip(chosen, (place if isinstance(place, str) else place.absolute() for place in places), strict=True))


def named_roots(
    folders: Sequence[Path | str], collections: Mapping[str, Path | str], roots: Sequence[Path]
) -> dict[str, Path]:
    """Return the folders of pictures that the command names: by --root, or as the FOLDER that holds its collection."""
    from diptych.collection.state import recorded_root

    if roots:
        _check_given_for_each("--root", roots, collections)
        return dict(zip(collections, map(full_path, roots), strict=True))
    given = dict(zip(collections, map(full_path, folders), strict=False))
    return {name: folder for name, folder in given.items() if recorded_root(collections[name]).folder == folder}


def named_replicas(collections: Mapping[str, Path | str], replicas: Sequence[str]) -> dict[str, str]:
    """Return the addresses of the replicas that answer searches."""
    if replicas:
        _check_given_for_each("--replica", replicas, collections)
        for place in (*collections.values(), *replicas):
            if not is_address(place):
                raise InvalidInputError(f"{place} is a folder; --replica needs postgresql:// addresses")
    return dict(zip(collections, replicas, strict=False))


def _check_given_for_each(option: str, given: Sequence[object], collections: Collection[object]) -> None:
    if len(given) != len(collections):
        many = f"{len(given)} times for {len(collections)} collections"
        raise InvalidInputError(f"{option} is given {many}; give it for each")


def check_served_root(collection: Path | str, named: Path | None, token_file: Path | None, *, watch: bool) -> None:
    """Raise where a root is refused, holds the file with the token, or is to be watched without being trusted."""
    from diptych.collection.root import check_root, is_below, is_trusted_root, untrusted_root
    from diptych.collection.state import recorded_root

    recorded, kept = recorded_root(collection)
    root = recorded if named is None else named
    is_trusted = named is not None or is_trusted_root(kept, root)
    if watch and not is_trusted:
        raise untrusted_root(without_password(collection))
    if is_trusted:
        check_root(kept, root)
        if watch and is_remote(root):
            raise InvalidInputError(f"{root} tells of no changes, so it cannot be watched; leave --watch out")
        if token_file is not None and is_below(token_file, root):
            raise InvalidInputError(f"{token_file} lies in the folder of pictures {root}; keep the token elsewhere")


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names for addresses: plain letters, and no two alike.

    >>> unique_names(["Été 2010", "photos", "photos", "写真"])
    ['Ete-2010', 'photos', 'photos-2', 'collection']
    """
    taken: list[str] = []
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:48] or "collection"
        candidates = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
        taken.append(next(candidate for candidate in candidates if candidate not in taken))
    return taken


def _served_collection(folder: Path | str) -> Path | str:
    if isinstance(folder, str) or is_collection(folder):
        return folder
    place = new_collection(folder, None).place if folder.is_dir() else folder
    if is_collection(place):
        return place
    if folder.exists():
        raise InvalidInputError(f"{folder} is no collection yet; make it one with: diptych index {shown_path(folder)}")
    raise InvalidInputError(f"{folder} does not exist; name a folder of pictures")


def require_token_beyond_localhost(host: str, token: str | None, *, is_forwarded: bool) -> bool:
    """Return True if others could reach a service, directly or through a proxy here; without a token they may not."""
    from diptych.service.security.tokens import no_token_message

    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host.lower() == "localhost"
    if is_local and not is_forwarded:
        return False
    if token is None:
        raise InvalidInputError(no_token_message(host))
    return True


def page_address(host: str, port: int) -> str:
    """Return the address of the page.

    >>> page_address("127.0.0.1", 8765), page_address("::1", 80), page_address("0.0.0.0", 8765)
    ('http://127.0.0.1:8765/', 'http://[::1]:80/', 'http://127.0.0.1:8765/')
    """
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"


def sign_in_address(address: str, settings: Settings) -> str:
    """Return the address that signs a browser in, once and soon.

    The key stands where browsers send it to nobody, so that no log holds it.
    """
    from diptych.service.security.tokens import PageSessions

    return f"{address}#key={PageSessions(settings.session_secret, settings.token).key()}"


def tell_sign_in(address: str, settings: Settings) -> None:
    """Print the address that signs in, where a person reads it; elsewhere the output may be a log."""
    if sys.stdout.isatty():
        typer.echo(
            f"To add and edit, open this within ten minutes, it works once: {sign_in_address(address, settings)}"
        )


def _open(address: str) -> None:
    """Open the page in the browser, whose connection waits on the listening socket until the service takes it.

    The browser gets a private file that leads to the address: every user of a machine can read its command line.
    """
    import webbrowser

    with tempfile.NamedTemporaryFile("w", prefix="diptych-", suffix=".html", delete=False) as file:
        file.write(f'<meta http-equiv="refresh" content="0; url={escape(address)}">')
    webbrowser.open(Path(file.name).as_uri())
    time.sleep(SIGN_IN_PAGE_S)
    Path(file.name).unlink(missing_ok=True)
