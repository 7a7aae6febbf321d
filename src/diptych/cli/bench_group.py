"""``diptych bench``: a task or study by its name, and the commands that run, compare and report many."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from diptych.cli.bench import bench
from diptych.cli.bench_clicks import bench_clicks
from diptych.cli.bench_costa_pereira import bench_costa_pereira
from diptych.cli.bench_diff import bench_diff
from diptych.cli.bench_hashing import bench_hashing
from diptych.cli.bench_neural import bench_neural
from diptych.cli.bench_pack import bench_pack
from diptych.cli.bench_report_command import bench_report
from diptych.cli.bench_run import bench_run
from diptych.cli.bench_trec import bench_trec

_NAMED = "task"
_HELP = ("-h", "--help")


class BenchGroup(TyperGroup):
    """Takes what is not a command for the name of a task or study.

    ``diptych bench`` and ``diptych bench wikipedia`` run one as if ``task`` had been typed.
    """

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        words = [word for word in arguments if not word.startswith("-")]
        asks_for_help = not words and any(word in _HELP for word in arguments)
        if not asks_for_help and (not arguments or arguments[0] not in self.commands):
            arguments = [_NAMED, *arguments]
        return super().parse_args(context, arguments)


bench_app = typer.Typer(
    cls=BenchGroup,
    help="Run one benchmark by its name (`diptych bench wikipedia`), or methods on many tasks (`diptych bench run`).",
)
bench_app.command(_NAMED)(bench)
bench_app.command("run")(bench_run)
bench_app.command("diff")(bench_diff)
bench_app.command("pack")(bench_pack)
bench_app.command("report")(bench_report)
bench_app.command("hashing")(bench_hashing)
bench_app.command("neural")(bench_neural)
bench_app.command("clicks")(bench_clicks)
bench_app.command("costa-pereira")(bench_costa_pereira)
bench_app.add_typer(bench_trec, name="trec")
