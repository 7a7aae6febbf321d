"""Confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from diptych.arrays import FloatArray

_LETTER = 5.8
_DARK = 55
_LONGEST_NAME = 16


def heat_map(title: str, names: Sequence[str], counts: FloatArray) -> str:
    """Draw each row in per cent of its sum; dark cells are many, and every cell of half a per cent says how many.

    >>> import numpy as np
    >>> from diptych.benchmark.reporting.charts import heat_map
    >>> ">75</text>" in heat_map("SM", ["art", "war"], np.array([[3.0, 1.0], [0.0, 2.0]]))
    True
    """
    rates = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    short = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    margin = 10 + _LETTER * max(map(len, short))
    cell = max(18.0, (380 - margin - 4) / len(names))
    side = margin + cell * len(names) + 4
    drawn = [f'<text class="title" x="4" y="14">{escape(title)}</text>']
    for row, name in enumerate(short):
        middle = margin + (row + 0.5) * cell
        drawn.append(f'<text class="tick end" x="{margin - 4:.1f}" y="{middle + 4:.1f}">{escape(name)}</text>')
        drawn.append(
            f'<text class="tick" transform="translate({middle + 4:.1f} {margin - 4:.1f}) rotate(-90)">'
            f"{escape(name)}</text>"
        )
        drawn += [
            _cell(rates[row, column], margin + column * cell, margin + row * cell, cell) for column in range(len(names))
        ]
    summary = escape(f"{title}: {np.trace(counts) / max(counts.sum(), 1):.0%} on the diagonal")
    return (
        f'<svg class="chart" viewBox="0 0 {side:.0f} {side:.0f}" role="img" aria-label="{summary}">'
        f"{''.join(drawn)}</svg>"
    )


def _cell(rate: float, left: float, top: float, side: float) -> str:
    box = f'<rect class="cell" x="{left:.1f}" y="{top:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
    drawn = f'{box} fill-opacity="{rate / 100:.2f}"/>'
    if rate < 0.5:
        return drawn
    kind = "value middle on-dark" if rate > _DARK else "value middle"
    return f'{drawn}<text class="{kind}" x="{left + side / 2:.1f}" y="{top + side / 2 + 4:.1f}">{rate:.0f}</text>'
