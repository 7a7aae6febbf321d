"""``diptych clicks``: what the service remembers of searches and clicks."""

from __future__ import annotations

import typer

from diptych.cli.clicks_export import export
from diptych.cli.clicks_forget import forget
from diptych.cli.clicks_interleave import interleave
from diptych.cli.clicks_status import status

clicks_app = typer.Typer(
    help="What `diptych serve` remembers of searches and clicks: how much, as a table, for a comparison, or no more.",
    no_args_is_help=True,
)
for command in (status, export, interleave, forget):
    clicks_app.command()(command)
