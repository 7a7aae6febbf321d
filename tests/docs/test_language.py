"""The documents stay short, plain and findable: words by hand, sentences, banned phrases, and paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"reproduction.md", "papers.md", "performance.md", "model-card.md"}
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if path.name not in GENERATED]
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
MAX_WORDS = 45_000
MAX_README_LINES = 120
MAX_MEAN_SENTENCE = 20

MADE_BLOCK = re.compile(r"<!-- (table: [^\n]+|measured|results|load|hostile) -->.*?<!-- end[^\n]*-->", re.DOTALL)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
BANNED = re.compile(
    r"\b(whoever|nobody|of before|let go of|to be had|left behind|none of its business|as one wishes|"
    r"no longer|used to be|formerly|in earlier versions)\b",
    re.IGNORECASE,
)
MODULE = re.compile(r"`([a-z_0-9/]+\.(?:py|sql|csv))`")


def by_hand(path: Path) -> str:
    """Return a page without the tables that programs write."""
    return MADE_BLOCK.sub("", path.read_text(encoding="utf-8"))


def sentences(text: str) -> list[str]:
    """Return the sentences of the prose of a page: no code, tables or headings."""
    prose = CODE_BLOCK.sub("", text)
    lines = (line for line in prose.splitlines() if not line.startswith(("|", "#", "<!--", "--8<--", "    ")))
    plain = re.sub(r"`[^`]*`", "x", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines)))
    parts = re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.)\s", plain, flags=re.MULTILINE)
    found = [each for part in parts for each in re.split(r"(?<=[.!?:])\s+", " ".join(part.split()))]
    return [each for each in found if len(each.split()) > 2]


def test_the_documents_are_short() -> None:
    assert sum(len(by_hand(path).split()) for path in PAGES) <= MAX_WORDS
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_is_plain(path: Path) -> None:
    text = by_hand(path)
    assert BANNED.findall(CODE_BLOCK.sub("", text)) == []
    lengths = [len(each.split()) for each in sentences(text)]
    assert sum(lengths) <= MAX_MEAN_SENTENCE * max(1, len(lengths))


def test_every_page_is_in_the_navigation_once() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:.+: )?([\w/-]+\.md)$", settings, re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", ["architecture", "questions", "where-to-change"])
def test_modules_that_are_named_exist(name: str) -> None:
    folders = [ROOT, *(ROOT / "src" / "diptych" / inner for inner in ("", "collection", "collection/store"))]
    named = MODULE.findall((DOCS / "explanation" / f"{name}.md").read_text(encoding="utf-8"))
    assert [each for each in named if not any((folder / each).exists() for folder in folders)] == []


def test_every_question_leads_to_a_module() -> None:
    rows = re.findall(r"^\| .*\? \| `.+` \|$", (DOCS / "explanation" / "questions.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 20
    assert "(questions.md)" in (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_sentences_are_counted_without_code_tables_and_links() -> None:
    page = "# Title\n\nOne two [three](four.md). Five `six seven` eight nine:\n\n- ten eleven twelve\n\n| no | no |\n"
    assert [len(each.split()) for each in sentences(page)] == [3, 4, 3]
