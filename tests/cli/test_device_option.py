"""Commands that run networks say where, in the same words."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from diptych.cli.options import Device
from diptych.devices import DEVICE_VARIABLE, DEVICES, chosen_device
from tests.cli.command_line import Run, World

COMMANDS = (
    ("index",),
    ("add",),
    ("search",),
    ("saved", "run"),
    ("album", "add"),
    ("serve",),
    ("demo",),
    ("train",),
    ("rehearse",),
    ("doctor",),
    ("evaluate",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_that_run_networks_take_a_device(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert re.search(r"--device\s+<auto\|cpu\|", result.stdout)


def test_what_can_be_chosen_is_what_is_known() -> None:
    assert get_args(Device) == DEVICES


def test_a_search_runs_where_it_is_told_to(run: Run, indexed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "auto")
    words = ("search", "a red car", "--collection", indexed.collection, "--all", "--json")
    expected = run(*words)
    result = run(*words, "--device", "cpu")
    assert chosen_device() == "cpu"
    assert json.loads(result.stdout)["answers"] == json.loads(expected.stdout)["answers"]
    assert "abacus" in run(*words, "--device", "abacus").stderr
