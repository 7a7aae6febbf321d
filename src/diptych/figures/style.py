"""What all figures share: colours, type, the two directions, and files that come out the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from diptych.errors import DiptychError, InvalidInputError
from diptych.metrics import AP, Curve, CurvePoints, Evaluation
from diptych.space import DIRECTION_NAMES, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Two of the colours that Okabe and Ito chose to be told apart with any colour vision; both print as different greys.
COLOURS: dict[Direction, str] = {"image_query": "#0072B2", "text_query": "#D55E00"}
MARKERS: dict[Direction, str] = {"image_query": "o", "text_query": "s"}

# Okabe and Ito's colours without yellow, which is too faint for a line. There are fewer than methods, so that markers
# tell lines of one colour apart.
SERIES_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SERIES_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
DASHES: Any = (0, (4, 2))
CHANCE = "#6B6B6B"
INK = "#222222"
FAINT = "#E3E3E3"

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    # Without a fixed salt the identifiers inside an SVG are new in every file.
    "svg.hashsalt": "diptych",
    "svg.fonttype": "path",
}

_FORMATS = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}


def require_matplotlib() -> None:
    """Raise an error that names the extra when matplotlib is not installed; call it before a long computation.

    >>> from diptych.figures import require_matplotlib
    >>> require_matplotlib()
    """
    if find_spec("matplotlib") is None:
        raise DiptychError("figures need matplotlib: pip install 'diptych[plots]'")


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside, whatever the user has configured, and leave that alone outside."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained") -> Figure:
    """Return an empty figure of this size in inches; it belongs to no window and no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


@contextmanager
def one_panel(width: float = 6.4, height: float = 4.6) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of one panel, to be drawn in the house style."""
    with house_style():
        figure = new_figure(width, height)
        yield figure, figure.add_subplot()


def series_style(number: int) -> dict[str, Any]:
    """Return colour and marker of one of many lines."""
    return {
        "color": SERIES_COLOURS[number % len(SERIES_COLOURS)],
        "marker": SERIES_MARKERS[number % len(SERIES_MARKERS)],
    }


def check_number_of_methods(number: int, most: int) -> None:
    """Raise unless so many methods can be told apart in a figure that has room for ``most``."""
    if not 0 < number <= most:
        raise InvalidInputError(f"draw one to {most} methods, got {number}; more cannot be told apart")


def light_grid(axes: Axes, axis: Any = "both") -> None:
    """Draw the grid lines that help to read values."""
    axes.grid(True, axis=axis)
    axes.tick_params(length=0)


def save_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure as PNG or SVG, by the ending of ``path``; equal figures give equal bytes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.figures import category_bars, save_figure
    >>> figure = category_bars({"image_query": {"art": 0.2}, "text_query": {"art": 0.3}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(figure, Path(folder) / "bars.svg")
    ...     (Path(folder) / "bars.svg").stat().st_size > 1000
    True
    """
    ending = Path(path).suffix.lower()
    if ending not in _FORMATS:
        raise InvalidInputError(f"figures are written as .png or .svg, got {Path(path).name!r}")
    with house_style():
        figure.savefig(path, metadata=_FORMATS[ending])


class EvaluationByDirection(Protocol):
    """Anything that gives the evaluation of a direction: a ``TwoWayEvaluation``, or a dictionary."""

    def __getitem__(self, direction: Direction, /) -> Evaluation:
        """Return the evaluation of queries from one side."""
        ...


def curve_of(evaluation: Evaluation, kind: type[Curve]) -> CurvePoints:
    """Return the measured curve of a kind, whatever its parameters."""
    for curve, points in evaluation.curves.items():
        if isinstance(curve, kind):
            return points
    raise InvalidInputError(f"no {kind.__name__} was measured; add {kind.__name__}() to the measures of the evaluation")


def legend_entry(evaluation: Evaluation, direction: Direction) -> str:
    """Return the direction's name, with MAP where it was measured."""
    name = DIRECTION_NAMES[direction]
    return f"{name}, MAP {evaluation.mean[AP()]:.3f}" if AP() in evaluation.mean else name
