"""``diptych scenes``: a folder of pictures to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.stages import Stages


def scenes(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    n: Annotated[int, typer.Option("--n", help="How many pictures.")] = 200,
    seed: Annotated[int, typer.Option(help="Another seed is another world.")] = 0,
    size: Annotated[int, typer.Option(help="Width and height in pixels.")] = 128,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Write generated pictures with their captions, and print the folder."""
    from diptych.cli.files import writing
    from diptych.data.datasets.scenes import write_folder

    with Stages(quiet=quiet).run("write", f"painting {n:,} scenes") as advance, writing(folder):
        write_folder(folder, n, seed=seed, size=size, progress=advance)
    typer.echo(folder)
