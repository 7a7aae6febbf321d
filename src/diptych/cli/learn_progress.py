"""What the terminal shows while a collection learns from clicks."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from diptych.cli.stages import Advance, Stages


class LearnProgress:
    """Shows each thing that is being done as a stage of its own."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._open = ExitStack()
        self._doing = ""
        self._advance: Advance | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A stage that failed has not ended, so its time is not told.
        self._open.__exit__(kind, error, trace)

    def __call__(self, doing: str, done: int, total: int) -> None:
        """Go on with a stage, or begin the next one."""
        if doing != self._doing:
            self._open.close()
            self._advance = self._open.enter_context(self._stages.count(doing, doing))
            self._doing = doing
        if self._advance is not None:
            self._advance(done, total)
