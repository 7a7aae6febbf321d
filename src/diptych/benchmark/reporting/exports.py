"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from diptych.benchmark.reporting.leaderboard import Table, published_beside
from diptych.benchmark.reporting.task_results import TaskResults
from diptych.space import DIRECTIONS, Direction

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "–": "--",
        "−": "$-$",
        "<": "$<$",
        ">": "$>$",
        "τ": r"$\tau$",
        "ℓ": r"$\ell$",
        "×": r"$\times$",
        "’": "'",
        "“": "``",
        "”": "''",
    }
)
_FIELDS = (
    *("task", "dataset", "setting", "method", "title", "family", "bits", "measure"),
    *("direction", "mean", "deviation", "chance", "folds", "group", "published", "paper"),
)


def as_markdown(table: Table) -> str:
    """Return a pipe table, with its notes below.

    >>> from diptych.benchmark.reporting import Table, as_markdown
    >>> print(as_markdown(Table("t", ("method", "MAP"), (("CCA", "0.24"),))))
    | method | MAP |
    |---|---:|
    | CCA | 0.24 |
    """
    rule = ["---" if column < table.n_names else "---:" for column in range(len(table.headings))]
    lines = [_piped(table.headings), f"|{'|'.join(rule)}|", *map(_piped, table.rows)]
    return "\n".join([*lines, *(["", " ".join(table.notes)] if table.notes else [])])


def as_latex(table: Table) -> str:
    r"""Return a ``table`` environment for the package booktabs.

    >>> from diptych.benchmark.reporting import Table, as_latex
    >>> print(as_latex(Table("A & B", ("method", "MAP"), (("CCA", "0.24 ± 0.01"),))))
    \begin{table}
    \centering
    \caption{A \& B}
    \begin{tabular}{lr}
    \toprule
    method & MAP \\
    \midrule
    CCA & 0.24 $\pm$ 0.01 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    columns = "".join("l" if column < table.n_names else "r" for column in range(len(table.headings)))
    caption = " ".join([table.caption, *table.notes])
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row(table.headings),
            r"\midrule",
            *map(_latex_row, table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def as_csv(tasks: Iterable[TaskResults]) -> str:
    """Return every measure of every method as one long table, with all digits.

    >>> from diptych.benchmark.reporting import as_csv
    >>> as_csv([])[:19]
    'task,dataset,settin'
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _FIELDS, lineterminator="\n")
    writer.writeheader()
    for task in tasks:
        writer.writerows(_long_rows(task))
    return stream.getvalue()


def latex_text(text: str) -> str:
    """Return text that LaTeX sets as it is."""
    return text.translate(_LATEX)


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(map(latex_text, cells))} \\\\"


def _long_rows(task: TaskResults) -> Iterable[dict[str, object]]:
    ways: tuple[Direction | None, ...] = (*DIRECTIONS, None)
    for method in task.methods:
        printed = published_beside(task, method)
        for measure in method.records[0].measures:
            for way in ways:
                value = None
                if printed is not None and measure == "AP()":
                    value = printed.average if way is None else printed.values.get(way)
                yield {
                    "task": task.name,
                    "dataset": task.dataset,
                    "setting": task.setting,
                    "method": method.name,
                    "title": method.title,
                    "family": method.group,
                    "bits": method.n_bits,
                    "measure": measure,
                    "direction": way or "average",
                    "mean": method.mean(measure, way),
                    "deviation": method.deviation(measure, way),
                    "chance": method.chance(measure, way),
                    "folds": len(method.folds),
                    "group": task.letters.get(method.name),
                    "published": value,
                    "paper": None if printed is None or value is None else printed.paper,
                }
