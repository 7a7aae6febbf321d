"""The web page: one HTML document, its styles and its modules, and the routes that send them."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from diptych.service.api.files import has_current_version
from diptych.service.problems import Problem

# Taken from here alone: the tables of an operating system may call a module text/plain, which browsers refuse to run.
_TYPES = mimetypes.MimeTypes(filenames=())
_TYPES.add_type("text/javascript", ".js")
_TYPES.add_type("image/svg+xml", ".svg")


@dataclass(frozen=True)
class StaticFile:
    """A name and its bytes, with the type and the tag that browsers need.

    >>> from diptych.service.page import StaticFile
    >>> file = StaticFile("js/main.js", b"export {};")
    >>> file.media_type
    'text/javascript; charset=utf-8'
    """

    name: str
    content: bytes

    @cached_property
    def etag(self) -> str:
        """A tag that changes with the content; weak, because it stands for the packed bytes as well."""
        return f'W/"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def packed(self) -> bytes:
        """The bytes for browsers that unpack gzip, about a third of the plain ones."""
        return gzip.compress(self.content, mtime=0)

    @property
    def media_type(self) -> str:
        """The type that the name stands for."""
        kind = _TYPES.guess_type(self.name)[0] or "application/octet-stream"
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


router = APIRouter(include_in_schema=False)
VIEWS = ("/", "/compare", "/map", "/log", "/jobs", "/item/{item:path}")
_VERSIONED = re.compile(r"(v-[0-9a-f]{16})/(.+)")
_FOR_A_YEAR = "max-age=31536000, immutable"


@lru_cache(maxsize=1)
def _contents() -> dict[str, bytes]:
    root = files("diptych.service.page").joinpath("static")
    return {name: part.read_bytes() for name, part in _walk(root, "")}


@lru_cache(maxsize=1)
def page_version() -> str:
    """Return a name that changes with any file of the page."""
    digests = (
        hashlib.sha256(part).digest()
        for name, content in sorted(_contents().items())
        for part in (name.encode(), content)
    )
    return f"v-{hashlib.sha256(b''.join(digests)).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def static_files() -> dict[str, StaticFile]:
    """Return every file of the page by its name; what is not in here cannot be asked for."""
    versioned = f"/static/{page_version()}/".encode()
    document = _contents()["index.html"].replace(b"/static/", versioned)
    return {name: StaticFile(name, content) for name, content in {**_contents(), "index.html": document}.items()}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for part in folder.iterdir():
        if part.is_dir():
            yield from _walk(part, f"{prefix}{part.name}/")
        else:
            yield f"{prefix}{part.name}", part


def _answer(name: str, request: Request, caching: str = "no-cache") -> Response:
    file = static_files().get(name)
    if file is None:
        raise Problem(404, "no-such-file", f"The page has no file {name!r}; its files are named in /.")
    headers = {"ETag": file.etag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
    if has_current_version(request, file.etag):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)


async def show_page(request: Request) -> Response:
    """Send the document; its script reads the address and shows the view."""
    return _answer("index.html", request)


for _view in VIEWS:
    router.add_api_route(_view, show_page, methods=["GET", "HEAD"])


@router.api_route("/static/{name:path}", methods=["GET", "HEAD"])
async def show_file(name: str, request: Request) -> Response:
    """Send a file of the page, under its name or under the version of the page and its name.

    The document names the version, so that a browser keeps some forty modules and asks for none of them again. Whoever
    still shows the page of another version gets what there is now, and asks again the next time.
    """
    versioned = _VERSIONED.fullmatch(name)
    if versioned is None:
        return _answer(name, request, _caching_of(name))
    is_current = versioned[1] == page_version()
    return _answer(versioned[2], request, _FOR_A_YEAR if is_current else "no-cache")


def _caching_of(name: str) -> str:
    # For the icon browsers look at every change of the address, so at every query; an old one does no harm for a day.
    return "max-age=86400" if name == "icon.svg" else "no-cache"


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
async def show_icon(request: Request) -> Response:
    """Send the icon to browsers that ask for it by the old name."""
    return _answer("icon.svg", request, _caching_of("icon.svg"))
