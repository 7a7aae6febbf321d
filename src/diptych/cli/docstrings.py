"""Reading docstrings in the house style: a summary, then underlined sections."""

from __future__ import annotations

import inspect
import re

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\S[^:\n]*?)(?: ?:[^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


def sections(docstring: str) -> dict[str, str]:
    """Split a docstring at its underlined headings; what comes before the first is called ""."""
    parts = _HEADING.split(docstring)
    return dict(zip(["", *parts[1::2]], [part.strip("\n") for part in parts[0::2]], strict=True))


def meanings(described: type) -> dict[str, str]:
    """Return what each parameter means.

    An entry for many names at once ("as in the other method") gives way to what a base class says of fewer.
    """
    found: dict[str, tuple[int, str]] = {}
    for cls in reversed(described.__mro__):
        section = sections(inspect.cleandoc(cls.__doc__ or "")).get("Parameters", "")
        for entry in _ENTRY.finditer(section + "\n"):
            names = [name.strip() for name in entry["names"].split(",")]
            for name in names:
                if name not in found or len(names) <= found[name][0]:
                    found[name] = len(names), one_line(entry["text"])
    return {name: meaning for name, (_, meaning) in found.items()}


def one_line(text: str) -> str:
    """Return text without line breaks and code marks."""
    return " ".join(text.replace("``", "").replace("`", "").split())
