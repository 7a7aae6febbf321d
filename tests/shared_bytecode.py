"""Workers of one run share the work on source files that all of them import; each would do all of it otherwise."""

from __future__ import annotations

import py_compile
import warnings
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def compile_own_share(config: pytest.Config) -> None:
    """Compile every n-th module that no earlier run has compiled, where n workers begin together."""
    worker = config.workerinput  # type: ignore[attr-defined]
    share = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for module in sorted((ROOT / "src").rglob("*.py"))[share]:
        if not Path(cache_from_source(str(module))).exists():
            py_compile.compile(str(module))
            _look_for_constants(module)
    for test in sorted((ROOT / "tests").rglob("test_*.py"))[share]:
        # pytest puts words into the assertions of tests, and has no public name for that. Whatever fails here it does
        # again where it imports the test.
        with suppress(Exception):
            _compile_test(test, config)


def _compile_test(test: Path, config: pytest.Config) -> None:
    from _pytest.assertion import rewrite

    folder = rewrite.get_cache_dir(test)
    compiled = folder / (test.stem + rewrite.PYC_TAIL)
    if not compiled.exists() and rewrite.try_makedirs(folder):
        source, code = rewrite._rewrite_test(test, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)
        _look_for_constants(test)


def _look_for_constants(file: Path) -> None:
    """Let Hypothesis read the values that a module names, and keep them where all workers find them."""
    # It warns of whoever asks for them as early as this.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from hypothesis.internal.constants_ast import constants_from_module

        module = ModuleType(file.stem)
        module.__file__ = str(file)
        constants_from_module(module)
