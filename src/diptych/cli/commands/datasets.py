"""``diptych datasets``: what there is to learn from, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    confirm,
    facts_table,
    notes,
    print_json,
    print_listing,
    print_outcome,
    print_table,
    results,
    whole,
)
from diptych.cli.console.progress import Stages, download_progress
from diptych.cli.options import Group, JsonOption, QuietOption, YesOption, complete_dataset
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.data import Dataset

datasets = typer.Typer(cls=Group, invoke_without_command=True)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", autocompletion=complete_dataset, help="Name of a data set; `diptych datasets` lists them."
    ),
]


@datasets.callback()
def list_datasets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the data sets, show or download one."""
    if context.invoked_subcommand is not None:
        return
    from diptych.data import data_folder, describe_datasets

    print_listing(
        [_outline(dataset) for dataset in describe_datasets()],
        [bold("data set"), whole("here"), "what it is"],
        lambda each: (each["name"], each["state"], each["summary"]),
        as_json=as_json,
    )
    if not as_json:
        console = results()
        console.print(f"\nLooked for in {data_folder()}; set DIPTYCH_DATA to look elsewhere.", soft_wrap=True)
        console.print("`diptych datasets show DATASET` says more of one, `diptych datasets get DATASET` gets it.")


def _outline(dataset: Dataset) -> dict[str, Any]:
    state = "built in" if not dataset.files else "found" if dataset.is_available else "missing"
    folder = dataset.expected_folder if dataset.files else None
    return {"name": dataset.name, "summary": dataset.summary, "state": state, "folder": folder}


@datasets.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a data set: its parts, its licence, where to get it, and its options."""
    from diptych.data import find_dataset

    dataset = find_dataset(name)
    outline = _outline(dataset)
    options = {
        option: {"default": default, "meaning": dataset.options.get(option, "")}
        for option, default in dataset.defaults.items()
    }
    if as_json:
        names = ("splits", "homepage", "licence", "citation", "files", "downloads", "steps")
        print_json({**outline, **{name: getattr(dataset, name) for name in names}, "options": options})
        return
    download = f"diptych datasets get {dataset.name}"
    facts = {
        "what it is": dataset.summary,
        "parts": dataset.splits,
        "get it from": dataset.homepage,
        "licence": dataset.licence,
        "cite": dataset.citation,
        "here": outline["state"],
        "looked for in": str(outline["folder"] or "nowhere: it is generated"),
        "files": ", ".join(dataset.files) or "none",
        "how to get it": download if dataset.downloads else dataset.steps or "nothing to do",
    }
    console = results()
    console.print(dataset.name, style="bold")
    console.print(facts_table(facts))
    console.print()
    rows = ((option, repr(about["default"]), about["meaning"]) for option, about in options.items())
    print_table(["option", "default", "meaning"], rows, console)


@datasets.command()
def get(
    name: NameArgument,
    folder: Annotated[
        Path | None, typer.Option(help="The folder that holds one folder per data set; by default DIPTYCH_DATA.")
    ] = None,
    yes: YesOption = False,
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
    if not (yes and quiet):
        for download in dataset.downloads:
            size = "size unknown" if download.size is None else f"{download.size / 1e6:,.0f} MB"
            note = f"\nnote: {download.note}" if download.note else ""
            notes().print(f"{download.url} ({size}){note}", soft_wrap=True)
        notes().print(f"licence: {dataset.licence}\nfolder: {place}", soft_wrap=True)
    confirm("Download it?", yes=yes, told=f"{name} would be downloaded")
    with download_progress(Stages(quiet=quiet)) as progress:
        fetch_downloads(dataset.downloads, place, report=progress, timeout=timeout)
    missing = [file for file in dataset.files if not (place / file).exists()]
    if missing:
        raise InvalidInputError(f"the archives of {name} did not hold {', '.join(missing)}; see {dataset.homepage}")
    if folder is not None and place.resolve() != dataset.expected_folder.resolve():
        notes().print(f"Set DIPTYCH_DATA={folder} to use it.", soft_wrap=True)
    print_outcome(str(place), {"folder": place}, as_json=as_json)


def _print_steps(dataset: Dataset, place: Path, *, as_json: bool) -> None:
    lines = (
        f"{dataset.name} cannot be downloaded by a program. How to get it:",
        dataset.steps or f"Get it from {dataset.homepage}.",
        f"It is complete when {place} holds: {', '.join(dataset.files)}",
        f"Licence: {dataset.licence}",
    )
    names = ("steps", "homepage", "licence")
    facts = {"folder": None, **{name: getattr(dataset, name) for name in names}}
    print_outcome("\n".join(lines), facts, as_json=as_json)
