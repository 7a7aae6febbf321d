from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = script("reference_pages")
PUBLIC = [(package, name) for package in reference.PACKAGES for name in reference.public_names(package)]
PAGES = sorted(page for page in reference.REFERENCE.glob("*/*.md"))


def shown_names(page: Path) -> list[str]:
    return re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def flat(entries: list[Any]) -> list[str]:
    return [
        page
        for entry in entries
        for page in ([entry] if isinstance(entry, str) else [name for names in entry.values() for name in flat(names)])
    ]


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_name_has_its_page(package: str, name: str) -> None:
    page = reference.page_of(package, name)
    assert page.exists(), f"{package}.{name} has no page: run `make docs` and commit {page.relative_to(ROOT)}"
    assert f"{package}.{name}" in shown_names(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_page_shows_public_names_that_exist(page: Path) -> None:
    shown = shown_names(page)
    assert shown, "the page shows nothing: add a line `::: package.Name`"
    for dotted in shown:
        package, _, name = dotted.rpartition(".")
        assert (package, name) in PUBLIC, f"{dotted} is not a public name any more: remove its page"
        assert hasattr(importlib.import_module(package), name)


def test_the_navigation_holds_every_page_once() -> None:
    listed = flat(reference.navigation())
    assert sorted(listed) == sorted(
        page.relative_to(ROOT / "docs").as_posix() for page in reference.REFERENCE.rglob("*.md")
    )


def test_no_two_names_share_a_page() -> None:
    pages = [reference.page_of(package, name) for package, name in PUBLIC]
    assert len(set(pages)) == len(pages)


def test_missing_pages_are_written_once_and_others_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "REFERENCE", tmp_path)
    kept = reference.page_of("diptych", "Space")
    kept.parent.mkdir()
    kept.write_text("written by hand")
    assert len(reference.write_missing()) == len(PUBLIC) - 1
    assert kept.read_text() == "written by hand"
    assert reference.write_missing() == []


DOCSTRING = """One line with :meth:`fit`.

======= ==========
``a``   the first
``bc``  the second
======= ==========

>>> 1 + 1
2

After.
"""

MARKDOWN = """One line with `fit`.

|  |  |
| --- | --- |
| ``a`` | the first |
| ``bc`` | the second |

```pycon
>>> 1 + 1
2
```

After.
"""


def test_docstrings_become_markdown() -> None:
    assert script("docstring_markdown").to_markdown(DOCSTRING) == MARKDOWN


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings
    assert "http" not in settings
