"""Lets the site render docstrings as they are written for the terminal.

MkDocs reads docstrings as Markdown, where an interactive example is a quotation, a role such as ``:meth:`` is noise and
a table ruled with equals signs is a paragraph. This Griffe extension turns these three into their Markdown forms.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?([^`]+)`")
_RULE = r"^=+(?: +=+)+\n"
_TABLE = re.compile(rf"({_RULE})(.+?)\n=+(?: +=+)+$", re.MULTILINE | re.DOTALL)


def to_markdown(docstring: str) -> str:
    """Return ``docstring`` with examples fenced, roles as code and ruled tables as Markdown tables."""
    with_tables = _TABLE.sub(_markdown_table, _ROLE.sub(r"`\1`", docstring))
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", with_tables)


def _markdown_table(match: re.Match[str]) -> str:
    starts = [column.start() for column in re.finditer("=+", match[1])]
    ends = [*starts[1:], None]
    rows = [[line[start:end].strip() for start, end in zip(starts, ends, strict=True)] for line in match[2].split("\n")]
    head = [[""] * len(starts), ["---"] * len(starts)]
    return "\n".join(f"| {' | '.join(row)} |" for row in head + rows)


class DocstringMarkdown(griffe.Extension):
    """Rewrites every docstring before mkdocstrings parses it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Let names be found in a package whose ``__all__`` is computed, which Griffe takes for an empty one.

        Nor would it find those that are imported when they are asked for, and declared for type checkers.
        """
        if mod.exports == []:
            mod.exports = None
        for member in mod.members.values():
            member.runtime = True
