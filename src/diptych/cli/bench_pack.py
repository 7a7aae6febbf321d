"""``diptych bench pack``: result files in a form to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_pack(
    source: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder that `bench run` has filled.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where <task>.jsonl.gz go.")],
) -> None:
    """Pack the result files of every task into one compressed file; every command reads both forms."""
    from diptych.benchmark.results import pack_results
    from diptych.cli.files import check_folder
    from diptych.cli.terminal import results

    check_folder(target)
    for path in pack_results(source, target):
        results().print(str(path), markup=False)
