"""A table of text, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOTHING = "–"
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


@dataclass(frozen=True)
class Table:
    """Headings and rows of text; the first ``n_names`` columns are names, the others numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_names: int = 1
    notes: tuple[str, ...] = ()


def as_markdown(table: Table) -> str:
    """Return a pipe table, with its notes below.

    >>> from diptych.benchmark.tables import Table, as_markdown
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

    >>> from diptych.benchmark.tables import Table, as_latex
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
            rf"\caption{{{caption.translate(_LATEX)}}}",
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


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cell.translate(_LATEX) for cell in cells)} \\\\"
