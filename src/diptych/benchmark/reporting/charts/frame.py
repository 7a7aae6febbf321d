"""Axes around a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from diptych.benchmark.reporting.charts.scale import Scale, written

# Narrow, so that letters stay legible when a telephone shows the whole chart.
WIDTH, HEIGHT = 380.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 18.0, 24.0, 40.0


@dataclass(frozen=True)
class Frame:
    """Two axes with their grid, labels and title; ``ticks`` overrides the round values of the horizontal axis."""

    title: str
    x_label: str
    y_label: str
    x: Scale
    y: Scale
    ticks: Sequence[float] = ()

    @classmethod
    def around(
        cls,
        title: str,
        labels: tuple[str, str],
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        *,
        logarithmic: bool = False,
        ticks: Sequence[float] = (),
    ) -> Frame:
        """Return a frame of the usual size for these ranges."""
        across = Scale(*x_range, LEFT, WIDTH - RIGHT, logarithmic)
        upwards = Scale(*y_range, HEIGHT - BOTTOM, TOP)
        return cls(title, *labels, across, upwards, ticks)

    def draw(self, content: str, summary: str) -> str:
        """Return the whole chart; ``summary`` is what a reader hears who cannot see it."""
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(summary)}">'
            f'<text class="title" x="{LEFT:.0f}" y="14">{escape(self.title)}</text>'
            f"{self._grid()}{content}{self._names()}</svg>"
        )

    def _grid(self) -> str:
        drawn = []
        for tick in self.ticks or self.x.ticks():
            x = self.x(tick)
            drawn.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>')
            drawn.append(f'<text class="tick middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}">{written(tick)}</text>')
        for tick in self.y.ticks():
            y = self.y(tick)
            drawn.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            drawn.append(f'<text class="tick end" x="{LEFT - 5}" y="{y + 4:.1f}">{written(tick)}</text>')
        return "".join(drawn)

    def _names(self) -> str:
        middle, height = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        return (
            f'<text class="label middle" x="{middle:.1f}" y="{HEIGHT - 6}">{escape(self.x_label)}</text>'
            f'<text class="label middle" transform="translate(11 {height:.1f}) rotate(-90)">'
            f"{escape(self.y_label)}</text>"
        )
