"""One documentation page per public name.

Run as a script it writes the pages that are missing and leaves the others alone. MkDocs loads it as a hook, which puts
every page of ``docs/reference`` into the navigation, so that no list of names has to be kept by hand.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

# Package and its title in the navigation, in reading order.
PACKAGES = {
    "diptych.retriever": "Retriever",
    "diptych.collection": "Collection",
    "diptych.collection.learning": "Collection: learning",
    "diptych.models": "Models",
    "diptych.metrics": "Measures",
    "diptych.protocols": "Protocols",
    "diptych.data": "Data",
    "diptych.data.clicks": "Data: clicks",
    "diptych.encoders": "Encoders",
    "diptych.codes": "Codes",
    "diptych.benchmark": "Benchmark",
    "diptych.benchmark.running": "Benchmark: running",
    "diptych.benchmark.results": "Benchmark: results",
    "diptych.benchmark.reporting": "Benchmark: reporting",
    "diptych.benchmark.exchange": "Benchmark: exchange",
    "diptych.benchmark.hashing": "Benchmark: hashing",
    "diptych.benchmark.web": "Benchmark: clicks",
    "diptych.benchmark.neural": "Benchmark: networks",
    "diptych.figures": "Figures",
    "diptych": "Spaces",
}


def public_names(package: str) -> list[str]:
    """Return what ``package`` exports, without names such as ``__version__``."""
    return [name for name in importlib.import_module(package).__all__ if not name.startswith("__")]


def page_of(package: str, name: str) -> Path:
    """Return where the page of a public name is kept."""
    return REFERENCE / package.rpartition(".")[2] / f"{name.lower()}.md"


def write_missing() -> list[Path]:
    """Write a page for every public name that has none and return the new pages."""
    wanted = {page_of(package, name): (package, name) for package in PACKAGES for name in public_names(package)}
    missing = {page: names for page, names in wanted.items() if not page.exists()}
    for page, (package, name) in missing.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(
            f"# {name}\n\nImport it with `from {package} import {name}`.\n\n::: {package}.{name}\n", encoding="utf-8"
        )
    return list(missing)


def navigation() -> list[Any]:
    """Return MkDocs' navigation entries for ``docs/reference``: the overview, then one section per package."""
    docs = REFERENCE.parent
    entries: list[Any] = ["reference/index.md"]
    for package, title in PACKAGES.items():
        pages = sorted(page_of(package, "").parent.glob("*.md"))
        if pages:
            entries.append({title: [page.relative_to(docs).as_posix() for page in pages]})
    return entries


def on_config(config: Any) -> Any:
    """Fill the navigation's Reference section (an MkDocs event)."""
    config.nav = [{"Reference": navigation()} if "Reference" in entry else entry for entry in config.nav]
    return config


if __name__ == "__main__":
    for new_page in write_missing():
        print(new_page.relative_to(REFERENCE.parents[1]))
