"""``diptych datasets`` and ``scenes``: what there is to learn from, how to get it, and pictures to play with."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    facts_table,
    notes,
    print_json,
    print_outcome,
    results,
    table,
    whole,
    writing,
)
from diptych.cli.console.progress import Stages, download_progress
from diptych.cli.options import JsonOption, QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.data import Dataset


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Show this data set in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the data sets: what they are, and whether they are on this machine."""
    from diptych.data import describe_datasets, find_dataset

    if name is not None:
        dataset = find_dataset(name)
        print_json(_detail(dataset)) if as_json else _show(dataset)
        return
    known = describe_datasets()
    print_json([_outline(dataset) for dataset in known]) if as_json else _list(known)


def _list(known: tuple[Dataset, ...]) -> None:
    from diptych.data import data_folder

    listing = table(bold("data set"), whole("here"), "what it is")
    for dataset in known:
        listing.add_row(dataset.name, _state(dataset), dataset.summary)
    console = results()
    console.print(listing)
    console.print(f"\nLooked for in {data_folder()}; set DIPTYCH_DATA to look elsewhere.", soft_wrap=True)
    console.print("`diptych datasets DATASET` says where to get one of them; `diptych datasets get DATASET` gets it.")


def _show(dataset: Dataset) -> None:
    console = results()
    download = f"diptych datasets get {dataset.name}"
    console.print(dataset.name, style="bold")
    facts = {
        "what it is": dataset.summary,
        "parts": dataset.splits,
        "get it from": dataset.homepage,
        "licence": dataset.licence,
        "cite": dataset.citation,
        "here": _state(dataset),
        "looked for in": str(dataset.expected_folder) if dataset.files else "nowhere: it is generated",
        "files": ", ".join(dataset.files) or "none",
        "how to get it": download if dataset.downloads else dataset.steps or "nothing to do",
    }
    console.print(facts_table(facts))
    console.print()
    options = table("option", "default", "meaning")
    for option, default in dataset.defaults.items():
        options.add_row(option, repr(default), dataset.options.get(option, ""))
    console.print(options)


def _state(dataset: Dataset) -> str:
    if not dataset.files:
        return "built in"
    return "found" if dataset.is_available else "missing"


def _outline(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "summary": dataset.summary,
        "state": _state(dataset),
        "folder": str(dataset.expected_folder) if dataset.files else None,
    }


def _detail(dataset: Dataset) -> dict[str, Any]:
    return {
        **_outline(dataset),
        "splits": dataset.splits,
        "homepage": dataset.homepage,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "files": list(dataset.files),
        "downloads": [asdict(download) for download in dataset.downloads],
        "steps": dataset.steps,
        "options": {
            name: {"default": default, "meaning": dataset.options.get(name, "")}
            for name, default in dataset.defaults.items()
        },
    }


def get(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set; `diptych datasets` lists them.")],
    folder: Annotated[
        Path | None, typer.Option(help="The folder that holds one folder per data set; by default DIPTYCH_DATA.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before downloading.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Give up after so many seconds without data.")] = 30.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Download a data set, check and unpack it, and print its folder; for one behind a form, print the steps."""
    from diptych.data import data_folder, fetch_downloads, find_dataset

    dataset = find_dataset(name)
    place = (data_folder() if folder is None else folder.expanduser()) / dataset.name
    if all((place / file).exists() for file in dataset.files):
        notes().print(f"{dataset.name} is here already.")
        here = place if dataset.files else "built in"
        print_outcome(str(here), {"folder": here}, as_json=as_json)
        return
    if not dataset.downloads:
        _print_steps(dataset, place, as_json=as_json)
        raise typer.Exit(1)
    _ask(dataset, place, yes=yes, quiet=quiet)
    with download_progress(quiet=quiet) as progress:
        fetch_downloads(dataset.downloads, place, report=progress, timeout=timeout)
    missing = [file for file in dataset.files if not (place / file).exists()]
    if missing:
        raise InvalidInputError(f"the archives of {name} did not hold {', '.join(missing)}; see {dataset.homepage}")
    if folder is not None and place.resolve() != dataset.expected_folder.resolve():
        notes().print(f"Set DIPTYCH_DATA={folder} to use it.", soft_wrap=True)
    print_outcome(str(place), {"folder": place}, as_json=as_json)


def _print_steps(dataset: Dataset, place: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"folder": None, "steps": dataset.steps, "homepage": dataset.homepage, "licence": dataset.licence})
        return
    console = results()
    console.print(f"{dataset.name} cannot be downloaded by a program. How to get it:", soft_wrap=True)
    console.print(dataset.steps or f"Get it from {dataset.homepage}.", soft_wrap=True)
    console.print(f"It is complete when {place} holds: {', '.join(dataset.files)}", soft_wrap=True)
    console.print(f"Licence: {dataset.licence}", soft_wrap=True)


def _ask(dataset: Dataset, place: Path, *, yes: bool, quiet: bool) -> None:
    if not (yes and quiet):
        console = notes()
        for download in dataset.downloads:
            size = "size unknown" if download.size is None else f"{download.size / 1e6:,.0f} MB"
            console.print(f"{download.url} ({size})", soft_wrap=True)
            if download.note:
                console.print(f"note: {download.note}", soft_wrap=True)
        console.print(f"licence: {dataset.licence}\nfolder: {place}", soft_wrap=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(f"nobody is here to agree to the download of {dataset.name}; add --yes")
    typer.confirm("Download it?", abort=True, err=True)


def scenes(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    n: Annotated[int, typer.Option("--n", help="How many pictures.")] = 200,
    seed: Annotated[int, typer.Option(help="Another seed gives other pictures.")] = 0,
    size: Annotated[int, typer.Option(help="Width and height in pixels.")] = 128,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write generated pictures with their captions, and print the folder."""
    from diptych.data.datasets.scenes import write_folder

    with Stages(quiet=quiet).run("write", f"painting {n:,} scenes") as advance, writing(folder):
        write_folder(folder, n, seed=seed, size=size, progress=advance)
    print_outcome(str(folder), {"folder": folder, "pictures": n}, as_json=as_json)
