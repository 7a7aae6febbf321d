from __future__ import annotations

import json

import pytest

from diptych.collection import plan_collection
from tests.cli.command_line import Run


def test_the_table_says_what_to_provide(run: Run) -> None:
    shown = run("plan", "--items", "1e8", "--qps", "500").stdout
    for word in ("40,000 lists of bytes", "8 bits a number", "replicas", "memory of a machine", "bucket"):
        assert word in shown
    assert "128 bits a point" in run("plan", "--items", "1e8", "--qps", "500", "--bits", "128").stdout


def test_parts_of_pictures_are_planned_with(run: Run) -> None:
    shown = run("plan", "--items", "1e6", "--qps", "50", "--regions").stdout
    assert "13,000,000 points" in shown
    assert "index of parts" not in run("plan", "--items", "1e6", "--qps", "50").stdout
    printed = json.loads(run("plan", "--items", "1e6", "--qps", "50", "--regions", "--json").stdout)
    assert printed["memory"] == plan_collection(10**6, 50, regions=True).memory


def test_json_has_what_the_library_plans(run: Run) -> None:
    words = ("--items", "2.5e6", "--qps", "40", "--dims", "64", "--captions", "0.5", "--cores", "4", "--search-ms", "9")
    printed = json.loads(run("plan", *words, "--json").stdout)
    plan = plan_collection(2_500_000, 40, dims=64, captions=0.5, cores=4, search_seconds=0.009)
    assert printed["memory"] == plan.memory
    assert (printed["items"], printed["replicas"], printed["index"]) == (2_500_000, plan.replicas, plan.index)


@pytest.mark.parametrize(("typed", "size"), [("64GB", 64e9), ("64 gib", 64 * 2**30), ("64e9", 64e9), ("64000M", 64e9)])
def test_sizes_are_typed_as_people_write_them(run: Run, typed: str, size: float) -> None:
    printed = json.loads(run("plan", "--items", "1e7", "--qps", "1", "--memory-per-machine", typed, "--json").stdout)
    assert printed["memory"] == plan_collection(10**7, 1, memory_per_machine=size).memory


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--items", "many", "--qps", "1"), "--items takes a whole number"),
        (("--items", "1.5", "--qps", "1"), "--items takes a whole number"),
        (("--items", "inf", "--qps", "1"), "--items takes a whole number"),
        (("--items", "-5", "--qps", "1"), "items must be a number above 0"),
        (("--items", "1e12", "--qps", "1"), "a collection holds up to"),
        (("--items", "1e6", "--qps", "nan"), "qps must be a number above 0"),
        (("--items", "1e6", "--qps", "1", "--bits", "100"), "bits are whole bytes"),
        (("--items", "1e6", "--qps", "1", "--bits", "128", "--regions"), "parts of pictures have no codes"),
        (("--items", "1e9", "--qps", "1", "--regions"), "plan without regions"),
        (("--items", "1e8", "--qps", "1", "--regions", "--memory-per-machine", "64GB"), "as vectors need"),
        (("--items", "1e6", "--qps", "1", "--memory-per-machine", "much"), "takes a size such as 64GB"),
        (("--items", "1e9", "--qps", "1", "--memory-per-machine", "8GB"), "divide the collection"),
    ],
)
def test_impossible_values_get_one_clear_error(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("plan", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
