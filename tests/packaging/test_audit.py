"""`scripts/audit.py` on advisories that are written here, in the form of OSV; none of them is a real one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
(PILLOW,) = re.findall(r"^pillow==(\S+)", (ROOT / "requirements" / "container.txt").read_text(), re.MULTILINE)


def advisory(name: str, package: str = "Pillow", **affected: Any) -> dict[str, Any]:
    about = {"package": {"ecosystem": "PyPI", "name": package}, **affected}
    return {"id": name, "modified": "2026-01-02T03:04:05Z", "summary": "made for a test", "affected": [about]}


def between(*events: dict[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}


def audit(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "audit.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A folder with advisories of which TEST-listed, -open, -again and -torch are on locked versions."""
    records = [
        advisory("TEST-listed", versions=["0.1", PILLOW, "not a version"]),
        advisory("TEST-open", **between({"introduced": "0"})),
        advisory("TEST-fixed", **between({"introduced": "0"}, {"fixed": PILLOW})),
        advisory("TEST-past", **between({"introduced": "0"}, {"last_affected": "1.0"})),
        advisory("TEST-again", **between({"introduced": "0"}, {"fixed": "1.0"}, {"introduced": "2.0"})),
        advisory("TEST-later", **between({"introduced": f"{PILLOW}.1"})),
        advisory("TEST-commits", ranges=[{"type": "GIT", "events": [{"introduced": "0"}]}]),
        advisory("TEST-other", "nobody-has-this", **between({"introduced": "0"})),
        advisory("TEST-torch", "torch", **between({"introduced": "0"})),
        advisory("TEST-withdrawn", **between({"introduced": "0"})) | {"withdrawn": "2026-01-03T00:00:00Z"},
    ]
    for record in records:
        (tmp_path / f"{record['id']}.json").write_text(json.dumps(record))
    return tmp_path


def found(run: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"TEST-\w+", run.stdout))


def test_versions_are_compared_as_osv_says(database: Path) -> None:
    run = audit(database)
    assert (run.returncode, found(run)) == (1, {"TEST-listed", "TEST-open", "TEST-again", "TEST-torch"})
    assert "10 advisories, 8 of them on these, the newest of 2026-01-02" in run.stdout
    assert f"pillow {PILLOW}: TEST-open: made for a test" in run.stdout
    ignoring = audit(database, "--ignore", "TEST-listed", "TEST-open", "TEST-again", "TEST-torch")
    assert (ignoring.returncode, found(ignoring)) == (0, set())


def test_what_is_kept_answers_as_the_whole_does(database: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.zip"
    first, again = audit(database, "--keep", kept), audit(kept)
    assert (again.returncode, found(again)) == (1, found(first))
    with ZipFile(kept) as archive:
        assert "TEST-other.json" not in archive.namelist()


def test_no_advisories_are_no_good_news(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing.zip"):
        run = audit(place)
        assert run.returncode == 2
        assert str(place) in run.stderr
