"""Write NOTICE: the terms of everything that comes with Diptych or is installed with it.

Licences of packages are read from the metadata of this environment, which has the versions of the locks, and the rest
is in `scripts/bundled.toml`. ``make notice`` calls it after ``make lock``.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from textwrap import indent

from bundled import BUNDLED, ELSEWHERE, LICENCE_FILES, STRICTER_WHEELS, WEIGHT_PACKAGES

ROOT = Path(__file__).parents[1]
_HEAD = """\
Diptych
Copyright The Diptych developers

Diptych is under the Apache License, Version 2.0 (LICENSE). What others made is under the terms below. This file is
written by `make notice`; nothing in it is legal advice, and where something is not known, it says so.
"""
_BUNDLED_HEAD = "Inside the package"
_WEIGHTS_HEAD = "Weights and data in packages of their own"
_STRICTER_HEAD = "Packages whose ready-made files ask for more than their name says"
_STRICTER = """\
They come with the extras formats, ocr, sift and words; none is in the container, unless it is marked *.
"""
_PACKAGES_HEAD = "All packages of the locks"
_PACKAGES = """\
As their metadata declares, in the versions of requirements/test.txt, build.txt and container.txt (marked *), and
PyTorch and torchvision. Compiled libraries inside them have licences of their own, which lie beside the metadata of the
installed package, in the container under /opt/diptych/lib. The base image has Debian's packages and Python, whose terms
are under /usr/share/doc there.
"""


def locked_names(lock: str) -> set[str]:
    """Return the names of the packages in a lock, on every system."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


def declared_licence(about: PackageMetadata) -> str | None:
    """Return what metadata says of the licence: an expression, else one line of words, else classifiers."""
    if expression := about["License-Expression"]:
        return str(expression)
    words = (about["License"] or "").strip()
    if words and "\n" not in words and len(words) < 60 and words != "UNKNOWN":
        return words
    classifiers = [each for each in about.get_all("Classifier") or [] if each.startswith("License :: ")]
    return ", ".join(each.rpartition(" :: ")[2] for each in classifiers) or None


def licence_of(package: str) -> str:
    """Return the licence of a package, or that it declares none."""
    if package in ELSEWHERE:
        return ELSEWHERE[package]
    try:
        found = declared_licence(metadata(package))
    except PackageNotFoundError:
        sys.exit(f"{package} is locked but not installed: make .venv/.ready-test, or name it in scripts/bundled.toml")
    if found:
        return found
    if package in LICENCE_FILES:
        return f"{LICENCE_FILES[package]} (its licence file; the metadata declares none)"
    if package in WEIGHT_PACKAGES:
        return "not declared, see above"
    sys.exit(f"{package} declares no licence: look at its files and write what is known into scripts/bundled.toml")


def section(title: str, *parts: str) -> str:
    """Return a section of the file: a title, a line under it, and paragraphs."""
    return "\n".join(["", title, "=" * len(title), "", *parts])


def notice() -> str:
    """Return the whole text."""
    container = locked_names("container")
    everything = sorted(container | locked_names("test") | locked_names("build") | {"torch", "torchvision"})
    star = {name: " *" if name in container else "" for name in everything}
    bundled = [
        f"{one.name}: {one.licence}\n"
        + indent("\n".join(f"src/diptych/{pattern}" for pattern in one.patterns), "  ")
        + "\n"
        + indent(one.story, "  ")
        + "\n"
        for one in BUNDLED
    ]
    # Packages of which the same is known stand together.
    stories: dict[str, list[str]] = {}
    for name, story in WEIGHT_PACKAGES.items():
        stories.setdefault(story, []).append(name + star[name])
    weights = [f"{', '.join(names)}\n{indent(story, '  ')}\n" for story, names in stories.items()]
    stricter = [f"{name}{star[name]}\n{indent(words, '  ')}\n" for name, words in STRICTER_WHEELS.items()]
    width = max(len(name) for name in everything) + 4
    packages = [f"{name + star[name]:{width}}{licence_of(name)}" for name in everything]
    return "\n".join(
        [
            _HEAD,
            section(_BUNDLED_HEAD, *bundled),
            section(_WEIGHTS_HEAD, *weights),
            section(_STRICTER_HEAD, _STRICTER, *stricter),
            section(_PACKAGES_HEAD, _PACKAGES, *packages, ""),
        ]
    )


if __name__ == "__main__":
    (ROOT / "NOTICE").write_text(notice(), encoding="utf-8")
    print("Wrote NOTICE.")
