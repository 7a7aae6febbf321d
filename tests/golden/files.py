"""The recorded files, as short as they can be while a change of one search or command is a change of a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from tests.golden.library import Found, Reply
from tests.golden.questions import Question

FOLDER = Path(__file__).parent
NAMES = ("searches", "openapi", "cli")
# Which of them the tests write anew.
RECORDED = pytest.StashKey[tuple[str, ...]]()


def path_of(name: str) -> Path:
    """Return the file that holds one of ``NAMES``."""
    return FOLDER / f"{name}.json"


def write_searches(replies: Mapping[str, list[tuple[Question, Reply]]]) -> None:
    """Write the replies of each kind, one line a search."""
    kinds = [
        f"{json.dumps(kind)}: [\n" + ",\n".join(_line(*each) for each in pairs) + "\n]"
        for kind, pairs in replies.items()
    ]
    path_of("searches").write_text("{\n" + ",\n".join(kinds) + "\n}\n")


def read_searches(kind: str) -> list[tuple[Question, Reply]]:
    """Return the recorded searches of a kind."""
    recorded = json.loads(path_of("searches").read_text())[kind]
    return [(tuple(question), _reply(**document)) for question, document in recorded]


def _line(question: Question, reply: Reply) -> str:
    document = {name: value for name, value in vars(reply).items() if value}
    if reply.answers:
        document["answers"] = [[value for value in astuple(answer) if value != ""] for answer in reply.answers]
    return json.dumps([question, document], ensure_ascii=False, separators=(",", ":"))


def _reply(answers: list[list[Any]] | None = None, **others: Any) -> Reply:
    return Reply(answers=[Found(*each) for each in answers or ()], **others)


def write_document(name: str, document: Any) -> None:
    """Write a document sorted and indented."""
    path_of(name).write_text(text_of(document))


def text_of(document: Any) -> str:
    """Return a document as it is written."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
