"""The commands of ``diptych bench``, each with its tables and figures."""

from __future__ import annotations

from typing import Any

import typer

from diptych.cli.bench import run, studies, trec
from diptych.cli.options import Group


class BenchGroup(Group):
    """Takes what is not a command for a task: ``bench wikipedia`` runs ``bench task wikipedia``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``task`` first where it was left out."""
        is_complete = args[0] in (*self.commands, "-h", "--help") if args else ctx.resilient_parsing
        return super().parse_args(ctx, args if is_complete else ["task", *args])


bench = typer.Typer(
    cls=BenchGroup,
    help="Run benchmarks: one by its name, or methods on many tasks.",
)
bench.command("task")(studies.bench)
bench.command("run")(run.bench_run)
bench.command("diff")(run.bench_diff)
bench.command("pack")(run.bench_pack)
bench.command("report")(run.bench_report)
bench.command("reproduction")(run.bench_reproduction)
bench.command("hashing")(studies.bench_hashing)
bench.command("neural")(studies.bench_neural)
bench.command("clicks")(studies.bench_clicks)
bench.command("costa-pereira")(studies.bench_costa_pereira)

_trec = typer.Typer(
    cls=Group, help="Rankings as run and qrels files, which trec_eval, ranx and ir_measures read and write."
)
_trec.command("export")(trec.trec_export)
_trec.command("score")(trec.trec_score)
bench.add_typer(_trec, name="trec")
