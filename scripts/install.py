"""Install Diptych for work on it, one group of packages after the other, and say how far it is.

Called by the Makefile with the interpreter of the environment: ``python scripts/install.py search serve``. pip itself
only reports errors: its notices about package mirrors and newer versions of pip are not ours. Packages after
``--no-deps`` come without what they ask for. ``--lock requirements/test.txt`` installs the versions and the files that
the lock names, whose hashes pip checks, and leaves pip to choose only what the lock leaves out on purpose.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_DOT_SECONDS = 5


def groups_of(extras: list[str]) -> dict[str, list[str]]:
    """Return the requirements of the package itself and of each extra, and of the extras these ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"base": project["dependencies"]}

    def add(extra: str) -> None:
        own = []
        for requirement in project["optional-dependencies"][extra]:
            if inner := re.fullmatch(r"diptych\[(.*)\]", requirement):
                for name in inner[1].split(","):
                    add(name)
            else:
                own.append(requirement)
        found[extra] = own

    for extra in extras:
        add(extra)
    return {name: requirements for name, requirements in found.items() if requirements}


def free_steps(extras: list[str], alone: list[str]) -> list[tuple[str, list[str]]]:
    """Return the steps where pip chooses: the groups in turn, what comes without dependencies, the package in place."""
    steps = list(groups_of(extras).items())
    if alone:
        steps.append(("alone", ["--no-deps", *alone]))
    return [*steps, ("diptych", ["--editable", f"{ROOT}[{','.join(extras)}]"])]


def locked_steps(lock: Path, extras: list[str]) -> list[tuple[str, list[str]]]:
    """Return the steps from a lock: what builds, which pip would fetch unchecked, the lock, and what is not in it."""
    checked = ["--no-deps", "--require-hashes", "--no-build-isolation"]
    names = set(re.findall(r"^([a-z0-9-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    wanted = [requirement for requirements in groups_of(extras).values() for requirement in requirements]
    missing = [each for each in dict.fromkeys(wanted) if name_of(each) not in names]
    return [
        ("build", [*checked, "--requirement", str(lock.with_name("build.txt"))]),
        ("locked", [*checked, "--requirement", str(lock)]),
        *([("not locked", missing)] if missing else []),
        ("diptych", ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]),
    ]


def name_of(requirement: str) -> str:
    """Return the name of a requirement as locks and indexes spell it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[=<>;\[ ]", requirement)[0]).lower()


def run_pip(title: str, words: list[str]) -> None:
    """Install something: a line that grows by a dot while pip works and ends with the seconds it took."""
    start = time.monotonic()
    print(f"{title} ", end="", flush=True)
    with subprocess.Popen([sys.executable, "-m", "pip", "install", "--quiet", "--quiet", *words]) as pip:
        while True:
            try:
                code = pip.wait(_DOT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(".", end="", flush=True)
    print(f" {time.monotonic() - start:.0f} s", flush=True)
    if code:
        sys.exit(f"pip could not install {title.split(':')[0]}; its message is above")


def main() -> None:
    """Install one step after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="+")
    parser.add_argument("--no-deps", nargs="+", default=[])
    parser.add_argument("--lock", type=Path)
    given = parser.parse_args()
    steps = locked_steps(given.lock, given.extras) if given.lock else free_steps(given.extras, given.no_deps)
    start = time.monotonic()
    for place, (name, words) in enumerate(steps, start=1):
        packages = [re.split(r"[=<>;\[]", word)[0].strip() for word in words if not word.startswith("-")]
        shown = ", ".join(packages) if name != "diptych" else "itself"
        run_pip(f"[{place}/{len(steps)}] {name}: {shown}", words)
    print(f"Installed in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
