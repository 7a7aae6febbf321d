"""Record anew what the golden tests compare: ``python -m tests.golden.record [searches] [openapi] [cli]``.

The tests themselves write the files, in the same surroundings in which they compare them.
"""

from __future__ import annotations

import sys

import pytest

from tests.golden.files import FOLDER, NAMES, RECORDED

TESTS = {"searches": "test_searches", "openapi": "test_openapi", "cli": "test_commands"}


class Recording:
    """A plugin of pytest that tells the tests which files to write."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def pytest_configure(self, config: pytest.Config) -> None:
        """Be found by name."""
        config.stash[RECORDED] = self.names


def main(names: tuple[str, ...]) -> int:
    """Record the files of these names, or all of them; return the exit status of the tests."""
    unknown = set(names) - set(NAMES)
    if unknown:
        raise SystemExit(f"unknown: {' '.join(unknown)}; choose from {' '.join(NAMES)}")
    chosen = names or NAMES
    wanted = [f"{FOLDER / 'test_golden.py'}::{TESTS[name]}" for name in chosen]
    arguments = ["-q", "-p", "no:cacheprovider", "-n", "0", *wanted]
    return int(pytest.main(arguments, plugins=[Recording(chosen)]))


if __name__ == "__main__":
    raise SystemExit(main(tuple(sys.argv[1:])))
