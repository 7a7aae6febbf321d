"""``diptych datasets get``: a data set that is public by address, on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.terminal import notes, results
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.data import Dataset, Download

_NOT_HERE = 1


def get(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set; `diptych datasets` lists them.")],
    folder: Annotated[
        Path | None, typer.Option(help="The folder that holds one folder per data set; by default DIPTYCH_DATA.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before downloading.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Longest silence of the other side, in seconds.")] = 30.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Download a data set, check and unpack it, and print its folder; where there is a form, print the steps."""
    from diptych.data import data_folder, fetch_downloads, find_dataset

    dataset = find_dataset(name)
    place = (data_folder() if folder is None else folder.expanduser()) / dataset.name
    if _is_here(dataset, place):
        notes().print(f"{dataset.name} is here already.")
        typer.echo(place if dataset.files else "built in")
        return
    if not dataset.downloads:
        _print_steps(dataset, place)
        raise typer.Exit(_NOT_HERE)
    _ask(dataset, place, yes=yes, quiet=quiet)

    from diptych.cli.download_progress import DownloadProgress

    with DownloadProgress(quiet=quiet) as progress:
        fetch_downloads(dataset.downloads, place, report=progress, timeout=timeout)
    missing = [file for file in dataset.files if not (place / file).exists()]
    if missing:
        raise InvalidInputError(f"the archives of {name} did not hold {', '.join(missing)}; see {dataset.homepage}")
    if folder is not None and place.resolve() != dataset.expected_folder.resolve():
        notes().print(f"Set DIPTYCH_DATA={folder} to use it.", soft_wrap=True)
    typer.echo(place)


def _is_here(dataset: Dataset, place: Path) -> bool:
    return all((place / file).exists() for file in dataset.files)


def _print_steps(dataset: Dataset, place: Path) -> None:
    console = results()
    console.print(f"{dataset.name} cannot be downloaded by a program. How to get it:", soft_wrap=True)
    console.print(dataset.steps or f"Get it from {dataset.homepage}.", soft_wrap=True)
    console.print(f"It is complete when {place} holds: {', '.join(dataset.files)}", soft_wrap=True)
    console.print(f"Licence: {dataset.licence}", soft_wrap=True)


def _ask(dataset: Dataset, place: Path, *, yes: bool, quiet: bool) -> None:
    if not (yes and quiet):
        console = notes()
        for download in dataset.downloads:
            console.print(f"{download.url} ({_size(download)})", soft_wrap=True)
            if download.note:
                console.print(f"note: {download.note}", soft_wrap=True)
        console.print(f"licence: {dataset.licence}\nfolder: {place}", soft_wrap=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(f"nobody is here to agree to the download of {dataset.name}; add --yes")
    typer.confirm("Download it?", abort=True, err=True)


def _size(download: Download) -> str:
    return "size unknown" if download.size is None else f"{download.size / 1e6:,.0f} MB"
