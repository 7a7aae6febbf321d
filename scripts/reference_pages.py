"""Fills the reference: on a page of ``docs/reference`` the line ``::: package`` becomes every public name of it.

MkDocs loads this as a hook. Names come from ``__all__`` at build, so that no list of them has to be kept by hand.
"""

from __future__ import annotations

import gc
import importlib
import re
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

_PACKAGE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def packages() -> dict[str, Path]:
    """Return the packages that have a page, and their pages."""
    pages = sorted(REFERENCE.glob("*.md"))
    return {name: page for page in pages for name in _PACKAGE.findall(page.read_text(encoding="utf-8"))}


def public_names(package: str) -> list[str]:
    """Return what a package exports, but for names such as ``__version__``, or what a module defines."""
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    defined = {name: getattr(value, "__module__", None) for name, value in vars(module).items()}
    return [name for name, place in defined.items() if place == package and not name.startswith("_")]


def with_names(markdown: str) -> str:
    """Return a page with a directive for every public name where it names a package."""
    return _PACKAGE.sub(
        lambda found: "\n\n".join(f"::: {found[1]}.{name}" for name in public_names(found[1])), markdown
    )


def on_startup(command: str, **_: Any) -> None:
    """Look for no garbage while pages are made, a sixth of the time (an MkDocs event): little of it is garbage."""
    if command == "build":
        gc.disable()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill a page of the reference (an MkDocs event)."""
    return with_names(markdown) if page.file.src_uri.startswith("reference/") else markdown
