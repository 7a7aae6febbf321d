"""Includes files of the repository's root as pages, with links that fit the site. MkDocs loads this as a hook."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

ROOT = Path(__file__).parents[1]

_INCLUDED = re.compile(r'^--8<-- "(\w+\.md)"\s*$')
_LINK = re.compile(r"\]\(docs/([^)]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the included file, or the page as it is (an MkDocs event)."""
    if not (included := _INCLUDED.match(markdown)):
        return markdown
    text = (ROOT / included[1]).read_text(encoding="utf-8")
    folder = dirname(page.file.src_uri)
    return _LINK.sub(lambda link: f"]({relpath(link[1], folder or '.')})", text)
