"""How fast something goes, and how long it still takes."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task, TaskID
from rich.text import Text


class Pace(ProgressColumn):
    """Shows the things done per second, and the time left at that pace.

    What was done before the first look, because it was there already, does not count: it says nothing about the pace.

    >>> from diptych.cli.pace import Pace
    >>> Pace.words(done=50, left=100, seconds=10.0)
    '5.0/s, 0:20 left'
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[TaskID, tuple[float, float]] = {}

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        if task.total is None:
            return Text()
        elapsed = task.finished_time or task.elapsed or 0.0
        there, since = self._starts.setdefault(task.id, (task.completed, elapsed))
        words = self.words(task.completed - there, task.total - task.completed, elapsed - since)
        return Text(words, style="progress.remaining")

    @staticmethod
    def words(done: float, left: float, seconds: float) -> str:
        """Return pace and remaining time; nothing before the first thing is done."""
        if done <= 0 or seconds <= 0:
            return ""
        pace = done / seconds
        rate = f"{pace:.1f}/s" if pace < 10 else f"{pace:,.0f}/s"
        if left <= 0:
            return rate
        minutes, rest = divmod(round(left / pace), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{rate}, {f'{hours}:{minutes:02d}' if hours else minutes}:{rest:02d} left"
