from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

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
PACKAGES = reference.packages()
# Their names are the command line, `diptych models` with it, and the REST API, which have pages of their own.
DOCUMENTED_ELSEWHERE = {"cli", "hub", "service"}


def test_every_package_has_a_page() -> None:
    rooms = {folder.parent.name for folder in (ROOT / "src" / "diptych").glob("*/__init__.py")} - DOCUMENTED_ELSEWHERE
    assert {"diptych", *(f"diptych.{room}" for room in rooms)} <= set(PACKAGES)
    assert len(set(PACKAGES.values())) == len(PACKAGES), "one package, one page"


@pytest.mark.parametrize(("package", "page"), PACKAGES.items(), ids=list(PACKAGES))
def test_a_page_shows_every_public_name_of_its_package(package: str, page: Path) -> None:
    shown = re.findall(r"^::: ([\w.]+)$", reference.with_names(page.read_text(encoding="utf-8")), re.MULTILINE)
    assert shown == [f"{package}.{name}" for name in reference.public_names(package)]
    assert shown, "the package exports nothing"
    assert f"reference/{page.name}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"({page.name})" in (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_class_and_function_is_documented(package: str) -> None:
    for name in reference.public_names(package):
        value = getattr(importlib.import_module(package), name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert (value.__doc__ or "").strip(), f"{package}.{name} has no docstring"


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
