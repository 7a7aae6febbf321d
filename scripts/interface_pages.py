"""Fills the reference of the command line and of the REST API: every command, option, request and parameter.

MkDocs loads this as a hook. Commands come from the program itself, requests from the recorded OpenAPI document, which
the golden tests compare with the service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from diptych.cli import app

OPENAPI = Path(__file__).parents[1] / "tests" / "golden" / "openapi.json"
COMMANDS_MARK = "<!-- commands -->"
REQUESTS_MARK = "<!-- requests -->"


def commands() -> str:
    """Return a section for each command, with its arguments and options in a table."""
    program: Any = typer.main.get_command(app)
    return "\n\n".join(_sections(program, program.make_context("diptych", [], resilient_parsing=True)))


def _sections(command: Any, context: Any) -> Iterator[str]:
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    if context.parent:
        yield f"## {context.command_path}" if not context.parent.parent else f"### {context.command_path}"
        yield command.help.strip()
        if rows := [_row(each) for each in command.get_params(context) if each.name != "help"]:
            yield "\n".join(["| argument or option | what it does | default |", "|---|---|---|", *rows])
    for name in names:
        inner = command.get_command(context, name)
        yield from _sections(inner, inner.make_context(name, [], parent=context, resilient_parsing=True))


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    spelling = ", ".join(parameter.opts + parameter.secondary_opts) if is_option else parameter.name.upper()
    has_default = parameter.default is not None and parameter.default is not False
    default = f"`{parameter.default}`" if has_default else ""
    return f"| `{spelling}` | {_cell(parameter.help or '')} | {_cell(default)} |"


def requests() -> str:
    """Return a table of requests for each group of the OpenAPI document."""
    document = json.loads(OPENAPI.read_text(encoding="utf-8"))
    rows: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "summary" in operation:
                where, members = _parameters(operation), _body(document, operation)
                told = "; ".join(filter(None, (where, members and f"body: {members}")))
                row = f"| `{method.upper()} {path}` | {_cell(operation['summary'])} | {told} |"
                rows[operation["tags"][0]].append(row)
    head = ["| request | what it does | parameters |", "|---|---|---|"]
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    return "\n\n".join("\n".join([f"### {tag.capitalize()}", "", about[tag], "", *head, *rows[tag]]) for tag in rows)


def _parameters(operation: dict[str, Any]) -> str:
    given = [each["name"] for each in operation.get("parameters", []) if each["in"] != "path"]
    return ", ".join(f"`{name}`" for name in given)


def _body(document: dict[str, Any], operation: dict[str, Any]) -> str:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return ", ".join(f"`{name}`" for name in schema.get("properties", {}))
    return ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the marks of a page (an MkDocs event)."""
    for mark, fill in ((COMMANDS_MARK, commands), (REQUESTS_MARK, requests)):
        if mark in markdown:
            markdown = markdown.replace(mark, fill())
    return markdown
