"""Answers, those of both engines, the OpenAPI document and outputs of commands are as recorded.

A failure prints what differs. A wanted change is recorded by the command that it prints, in a commit with the reason.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.collection.store.conftest import postgres_server
from tests.doubles.postgres_server import PostgresServer
from tests.golden import commands, files, library
from tests.golden.comparing import differences
from tests.golden.questions import questions

__all__ = ["postgres_server"]
SHOWN_LINES = 100


def fail_on(lines: list[str], name: str) -> None:
    """Fail with what differs, and with the command that records it."""
    if lines:
        more = [f"… and {len(lines) - SHOWN_LINES} lines more"] if len(lines) > SHOWN_LINES else []
        advice = f"if that is wanted: python -m tests.golden.record {name}"
        pytest.fail("\n".join([*lines[:SHOWN_LINES], *more, advice]), pytrace=False)


def _schema_of_its_own(server: PostgresServer, name: str) -> str:
    """Return an address on a server that several workers, and a second set-up in one of them, may share."""
    return server.address(f"{name}_{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def photographs(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[library.Photographs]:
    is_sqlite = request.param == "sqlite"
    place_of = None if is_sqlite else partial(_schema_of_its_own, request.getfixturevalue("postgres_server"))
    made = library.make_photographs(tmp_path_factory.mktemp("golden"), place_of)
    if is_sqlite and "searches" in request.config.stash.get(files.RECORDED, ()):
        files.write_searches(
            {kind: [(question, made.ask(*question)) for question in asked] for kind, asked in questions().items()}
        )
    yield made
    made.close()


@pytest.mark.data("flickr8k")
@pytest.mark.parametrize("kind", questions())
def test_searches(kind: str, photographs: library.Photographs) -> None:
    recorded = files.read_searches(kind)
    assert [question for question, _ in recorded] == questions()[kind], (
        "other questions than recorded; run: python -m tests.golden.record searches"
    )
    lines = []
    for question, reply in recorded:
        found = differences(reply, photographs.ask(*question))
        if found:
            lines += [f"{question[1]!r} {question[2] or ''} in {question[0]}:", *(f"    {line}" for line in found)]
    fail_on(lines, "searches")


def test_openapi(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> None:
    document = library.openapi(tmp_path_factory.mktemp("golden"))
    if "openapi" in request.config.stash.get(files.RECORDED, ()):
        files.write_document("openapi", document)
    recorded = files.path_of("openapi").read_text().splitlines()
    fail_on([*unified_diff(recorded, files.text_of(document).splitlines(), "recorded", "now", lineterm="")], "openapi")


@pytest.mark.data("wikipedia")
def test_commands(request: pytest.FixtureRequest) -> None:
    # A short path: lines that show one are not broken.
    with TemporaryDirectory(prefix="golden-") as folder:
        outputs = commands.command_outputs(Path(folder))
    if "cli" in request.config.stash.get(files.RECORDED, ()):
        files.write_document("cli", outputs)
    recorded = json.loads(files.path_of("cli").read_text())
    lines = []
    for command in sorted(outputs.keys() | recorded.keys()):
        if command not in outputs or command not in recorded:
            lines.append(f"$ {command}: only {'recorded' if command in recorded else 'run now'}")
        elif found := commands.output_differences(recorded[command], outputs[command]):
            lines += [f"$ {command}", *found]
    fail_on(lines, "cli")
