"""The locks under ``requirements/`` hold everything that they are for, in versions that the project allows."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {
    "test": ("dev", "docs"),
    "container": ("search", "serve"),
}
MACHINES = [
    {"python_version": python, "python_full_version": f"{python}.7", "platform_machine": machine, "extra": ""}
    for python, machine in itertools.product(("3.11", "3.12", "3.13"), ("x86_64", "aarch64"))
]
# There are several builds of it, with hashes of their own: `make lock` leaves it out.
NOT_LOCKED = {"torch", "torchvision"}


def pins(name: str) -> Iterator[tuple[Requirement, set[str]]]:
    """Yield every requirement of a lock with its hashes."""
    text = re.sub(r"\\\n", "", (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8"))
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            words, *hashes = re.split(r"\s+--hash=", line)
            yield Requirement(words), set(hashes)


def locked(name: str, machine: dict[str, str]) -> dict[str, str]:
    """Return the versions that a lock installs on a machine, each package once."""
    found: dict[str, str] = {}
    for requirement, _ in pins(name):
        if requirement.marker is None or requirement.marker.evaluate(machine):
            assert requirement.name not in found
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            found[requirement.name] = specifier.version
    return found


def wanted(extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Yield what the package and its extras ask for, and the extras that these name."""
    declared = PROJECT["project"]["optional-dependencies"]
    for text in itertools.chain(PROJECT["project"]["dependencies"], *(declared[extra] for extra in extras)):
        requirement = Requirement(text)
        if requirement.name == "diptych":
            yield from wanted(tuple(requirement.extras))
        else:
            yield requirement


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: f"{one['python_version']} {one['platform_machine']}")
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_its_extras_ask_for(name: str, machine: dict[str, str]) -> None:
    versions = locked(name, machine)
    for requirement in wanted(LOCKS[name]):
        called = canonicalize_name(requirement.name)
        if called not in NOT_LOCKED and (requirement.marker is None or requirement.marker.evaluate(machine)):
            assert requirement.specifier.contains(versions[called]), requirement


def test_the_checks_have_a_version_of_pytorch_that_the_extras_allow() -> None:
    lines = (ROOT / "requirements" / "torch.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert versions.keys() == NOT_LOCKED
    for requirement in wanted(("deep", "joint")):
        assert requirement.name not in versions or requirement.specifier.contains(versions[requirement.name])


@pytest.mark.parametrize("name", ["test", "container", "build", "tools"])
def test_every_file_of_a_lock_has_a_hash_and_none_is_for_graphics_cards(name: str) -> None:
    for requirement, hashes in pins(name):
        assert hashes, requirement
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes), requirement
        assert not re.match("torch|nvidia-|cuda-|triton", requirement.name)


@pytest.mark.parametrize("group", ["build", "tools"])
def test_groups_of_tools_are_locked(group: str) -> None:
    asked = [*PROJECT["dependency-groups"][group], *(PROJECT["build-system"]["requires"] if group == "build" else [])]
    for machine in MACHINES:
        versions = locked(group, machine)
        for requirement in map(Requirement, asked):
            assert requirement.specifier.contains(versions[requirement.name]), requirement


@pytest.mark.parametrize("name", ["container", "build"])
def test_the_checks_run_with_the_files_that_are_shipped(name: str) -> None:
    tested = {(pin.name, str(pin.specifier)): hashes for pin, hashes in pins("test")}
    for machine in MACHINES:
        own, checked = locked(name, machine), locked("test", machine)
        assert {package: checked.get(package, version) for package, version in own.items()} == own
    for pin, hashes in pins(name):
        assert tested.get((pin.name, str(pin.specifier)), hashes) == hashes


def test_nothing_is_missing_that_a_locked_package_asks_for() -> None:
    """pip installs the lock as it is and does not ask what packages need: their metadata here must agree with it."""
    here = {"extra": ""}
    versions = locked("test", here)
    installed = {canonicalize_name(each.name): each for each in distributions()}
    # See requirements/overrides.txt: it has no ready package for every machine.
    optional = NOT_LOCKED | {"pytrec-eval-terrier"}
    checked = 0
    for package, version in versions.items():
        if package in installed and installed[package].version == version:
            for requirement in map(Requirement, installed[package].requires or []):
                called = canonicalize_name(requirement.name)
                if called not in optional and (requirement.marker is None or requirement.marker.evaluate(here)):
                    checked += 1
                    assert called in versions, f"{package} asks for {requirement}: make lock"
                    assert requirement.specifier.contains(versions[called]), f"{package} asks for {requirement}"
    assert checked > 100
