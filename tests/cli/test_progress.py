"""Stages of a long command, and Ctrl-C within them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from diptych.cli.console.progress import Advance, Stages


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Listen to Ctrl-C, which whoever starts the tests in the background has switched off for them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _InterruptedFinaliser:
    """Is interrupted in the one place from which Python lets no exception out."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_stops_at_the_next_step() -> None:
    before = signal.getsignal(signal.SIGINT)
    steps = []

    def work(advance: Advance) -> None:
        for step in range(5):
            advance(step, 5)
            steps.append(step)
            if step == 2:
                _InterruptedFinaliser()

    with pytest.raises(KeyboardInterrupt), Stages(quiet=True).run("a", "a stage") as advance:
        work(advance)
    assert steps == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_waits_for_the_step_and_a_second_one_does_not() -> None:
    stages, steps = Stages(quiet=True), []

    def work(advance: Advance, interrupts: int) -> None:
        for step in range(5):
            advance(step, 5)
            if step == 2:
                for _ in range(interrupts):
                    signal.raise_signal(signal.SIGINT)
            steps.append(step)

    for interrupts, done in ((1, [0, 1, 2]), (2, [0, 1])):
        steps.clear()
        with pytest.raises(KeyboardInterrupt), stages.run("a", "a stage") as advance:
            work(advance, interrupts)
        assert steps == done
    # One that comes with the last step is not lost either.
    with pytest.raises(KeyboardInterrupt), stages.run("a", "a stage"):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_inner_and_outer_stage() -> None:
    stages = Stages(quiet=True)
    with pytest.raises(KeyboardInterrupt), stages.run("outer", "outer"), stages.run("inner", "inner"):
        signal.raise_signal(signal.SIGINT)
    assert stages.seconds == {}


def test_a_pipe_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr("diptych.cli.console.progress.time.monotonic", lambda: float(next(clock)))
    for quiet in (False, True):
        with Stages(quiet=quiet).run("a", "indexing") as advance:
            for done in range(2, 9):
                advance(done, 8, ", reading")
    said = capsys.readouterr()
    assert said.out == ""
    *lines, last = said.err.splitlines()
    assert [line.partition(", 0:")[0] for line in lines] == ["indexing, reading: 4 of 8", "indexing, reading: 7 of 8"]
    assert last.startswith("indexing: ")


def test_stages_run_in_threads() -> None:
    stages = Stages(quiet=True)

    def work() -> None:
        with stages.run("a", "a stage") as advance:
            advance(1, 1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert list(stages.seconds) == ["a"]


def test_who_ignores_interrupts_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stages(quiet=True).run("a", "a stage") as advance:
            signal.raise_signal(signal.SIGINT)
            advance(1, 1)
    finally:
        signal.signal(signal.SIGINT, before)
