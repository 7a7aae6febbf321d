"""What every test shares: one numerical thread per process, repeatable examples, a fresh cache, the ``data`` marker."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from tests import tiers

# Until the tests are collected all that is made is kept, a million objects: a search for garbage among them finds none.
gc.disable()

# Before NumPy is imported: parallel workers that each start a thread per core only wait for one another.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Programs that the tests start share what one of them has compiled, and so does the next run of the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A commit passes or fails, whatever the machine's load and luck; `--hypothesis-profile explore` looks further.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("repeatable")

# A run writes up to three gigabytes; where memory can take them it waits for no disk. The tests of full disks and of
# power cuts bring disks of their own.
MEMORY, ENOUGH_MEMORY = Path("/dev/shm"), 8 << 30
FOLDER_IN_MEMORY = pytest.StashKey[tuple[Path, int]]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files into memory, unless somebody said where they go; workers and programs find them there."""
    is_chosen = config.option.basetemp or {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys()
    if is_chosen or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ENOUGH_MEMORY:
        return
    for folder in MEMORY.glob("tests-of-diptych-*"):
        _remove_unless_in_use(folder)
    folder = Path(tempfile.mkdtemp(prefix="tests-of-diptych-", dir=MEMORY))
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    config.stash[FOLDER_IN_MEMORY] = (folder, lock)
    os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(folder)


def _remove_unless_in_use(folder: Path) -> None:
    """Free the memory of a run that was killed."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Free the memory, by whoever took it."""
    if FOLDER_IN_MEMORY in config.stash:
        folder, lock = config.stash[FOLDER_IN_MEMORY]
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the package alone: tests have none, and each worker would read all their docstrings."""
    collectors = yield
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules of the other tier and of other shards: importing them takes as long as many tests."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    tier, shard = config.getoption("--tier"), config.getoption("--shard")
    if shard and tiers.shard_of(collection_path) != shard:
        return True
    if tier == "quick" and tiers.is_full(collection_path) and not tiers.has_end_to_end(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier that is asked for; examples of docstrings belong to the full one."""
    tier = config.getoption("--tier")
    if tier == "all":
        return
    kept, left = [], []
    for item in items:
        is_test = item.path.is_relative_to(Path(__file__).parent)
        is_quick = is_test and tiers.is_quick(item)
        (kept if is_quick == (tier == "quick") else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a quick test that would be slow on any machine: processor time, with room for busy ones and for imports."""
    start = time.process_time()
    result = yield
    took = time.process_time() - start
    if item.config.getoption("--tier") == "quick" and not tiers.is_end_to_end(item) and took > tiers.QUICK_LIMIT_S:
        pytest.fail(
            f"{took:.1f} s of processor time, far more than a quick test may take: "
            "make it smaller, or give it to the full tier in tests/tiers.py",
            pytrace=False,
        )
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage again, among what the tests make; seldom, for it takes two of a hundred seconds otherwise."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def cache_of_worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each worker has a cache, but what one prepares, which is named after its content, need not be prepared again."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        for name in ("codebooks", "features", "matrices", "networks", "words"):
            shared, own = base.parent / "prepared" / name, base / "cache" / "diptych" / name
            shared.mkdir(parents=True, exist_ok=True)
            own.parent.mkdir(parents=True, exist_ok=True)
            own.symlink_to(shared)
    return base / "cache"


@pytest.fixture(scope="session", autouse=True)
def surroundings(cache_of_worker: Path) -> Iterator[None]:
    """Let every test find the same environment, once: for thousands of tests each variable would take seconds.

    The whole run has a cache of its own: features of another day would hide what changed since. Tables are as wide as
    they are: test runners tell the width of a terminal that is not there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache_of_worker))
        patch.setenv("XDG_STATE_HOME", str(cache_of_worker.with_name("state")))
        patch.delenv("COLUMNS", raising=False)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Choose tests by tier and shard."""
    parser.addoption("--tier", choices=tiers.TIERS, default="all", help="quick tests, the full run's others, or all")
    parser.addoption("--shard", choices=tuple(tiers.SHARD_FOLDERS), help="one part of the full run")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose data is not here, or fail it where DIPTYCH_REQUIRE_DATA says that it must be."""
    for marker in item.iter_markers("data"):
        problem = missing_data(os.environ.get("DIPTYCH_DATA", ""), *marker.args)
        if problem and os.environ.get("DIPTYCH_REQUIRE_DATA", "0") not in ("", "0"):
            pytest.fail(f"{problem}, and DIPTYCH_REQUIRE_DATA is set", pytrace=False)
        elif problem:
            pytest.skip(problem)


def missing_data(root: str, *folders: str) -> str | None:
    """Say what is missing under ``root``; ``@pytest.mark.data("wikipedia")`` asks for that folder in it."""
    if not root:
        return "DIPTYCH_DATA is not set"
    for folder in (Path(root), *(Path(root) / name for name in folders)):
        if not folder.is_dir():
            return f"no data folder {folder}"
    return None
