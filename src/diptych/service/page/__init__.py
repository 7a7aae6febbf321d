"""The web page: one HTML document, its styles and its modules, and the routes that send them."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# The tables of an operating system may call a module text/plain, which browsers refuse to run.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("image/svg+xml", ".svg")

FOLDER = Path(__file__).parent / "static"
VIEWS = ("/", "/compare", "/map", "/log", "/jobs", "/item/{item:path}")
_VERSIONED = re.compile(r"(v-[0-9a-f]{16})/(.+)")
_FOR_A_YEAR = "max-age=31536000, immutable"
# For the icon browsers look at every change of the address, so at every query; an old one does no harm for a day.
_FOR_A_DAY = "max-age=86400"


@cache
def page_version() -> str:
    """Return a name that changes with any file of the page."""
    digest = hashlib.sha256()
    for file in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(FOLDER)}\n".encode() + file.read_bytes())
    return f"v-{digest.hexdigest()[:16]}"


@cache
def page_document() -> str:
    """Return the HTML document, which names the files of this version."""
    return (FOLDER / "index.html").read_text(encoding="utf-8").replace("/static/", f"/static/{page_version()}/")


class PageFiles(StaticFiles):
    """The files of the page, under their names or under the version of the page and their names.

    The document names the version, so that a browser keeps some forty modules and asks for none of them again. A page
    of another version that is still open gets what there is now, and asks again the next time.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file with how long it may be kept."""
        versioned = _VERSIONED.fullmatch(path)
        try:
            response = await super().get_response(versioned[2] if versioned else path, scope)
        except ValueError:
            # No file has such a name.
            raise HTTPException(404) from None
        is_current = versioned is not None and versioned[1] == page_version()
        caching = _FOR_A_YEAR if is_current else _FOR_A_DAY if path == "icon.svg" else "no-cache"
        response.headers["Cache-Control"] = caching
        return response


router = APIRouter(include_in_schema=False)
router.routes.append(Mount("/static", app=GZipMiddleware(PageFiles(directory=FOLDER))))


async def show_page() -> HTMLResponse:
    """Send the document; its script reads the address and shows the view."""
    return HTMLResponse(page_document(), headers={"Cache-Control": "no-cache"})


for _view in VIEWS:
    router.add_api_route(_view, show_page, methods=["GET", "HEAD"])


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
async def show_icon() -> FileResponse:
    """Send the icon to browsers that ask for it by the old name."""
    return FileResponse(FOLDER / "icon.svg", headers={"Cache-Control": _FOR_A_DAY})
