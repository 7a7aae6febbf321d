"""The commands of ``diptych bench``, each with its tables and figures."""

from __future__ import annotations

import typer

from diptych.cli.bench import align, run, studies, trec
from diptych.cli.options import Group

bench = typer.Typer(cls=Group, help="Run methods on tasks, compare results, and make reports and pages of them.")
bench.command("run")(run.bench_run)
bench.command("diff")(run.bench_diff)
bench.command("pack")(run.bench_pack)
bench.command("export-splits")(run.bench_export_splits)
bench.command("report")(run.bench_report)
bench.command("pages")(run.bench_pages)
bench.command("align")(align.bench_align)
bench.command("clicks")(studies.bench_clicks)
bench.command("costa-pereira")(studies.bench_costa_pereira)

_trec = typer.Typer(
    cls=Group, help="Rankings as run and qrels files, which trec_eval, ranx and ir_measures read and write."
)
_trec.command("export")(trec.trec_export)
_trec.command("score")(trec.trec_score)
bench.add_typer(_trec, name="trec")
