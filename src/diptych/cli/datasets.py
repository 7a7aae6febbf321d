"""``diptych datasets``: what there is to learn from, and where it is looked for."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.terminal import print_json, results, table

if TYPE_CHECKING:
    from diptych.data import Dataset


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Show this data set in detail.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the data sets: what they are, and whether they are on this machine."""
    from diptych.data import describe_datasets, find_dataset

    if name is not None:
        dataset = find_dataset(name)
        print_json(_as_json(_detail(dataset))) if as_json else _show(dataset)
        return
    known = describe_datasets()
    print_json(_as_json([_outline(dataset) for dataset in known])) if as_json else _list(known)


def _as_json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def _list(known: tuple[Dataset, ...]) -> None:
    from diptych.data import data_folder

    listing = table()
    listing.add_column("data set", no_wrap=True, style="bold")
    listing.add_column("here", no_wrap=True)
    listing.add_column("what it is")
    for dataset in known:
        listing.add_row(dataset.name, _state(dataset), dataset.summary)
    console = results()
    console.print(listing)
    console.print(f"\nLooked for in {data_folder()}; set DIPTYCH_DATA to look elsewhere.", soft_wrap=True)
    console.print("`diptych datasets DATASET` says where to get one of them; `diptych datasets get DATASET` gets it.")


def _show(dataset: Dataset) -> None:
    console = results()
    console.print(dataset.name, style="bold")
    facts = table()
    facts.show_header = False
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for fact, value in {
        "what it is": dataset.summary,
        "parts": dataset.splits,
        "get it from": dataset.homepage,
        "licence": dataset.licence,
        "cite": dataset.citation,
        "here": _state(dataset),
        "looked for in": _place(dataset),
        "files": ", ".join(dataset.files) or "none",
        "how to get it": _how(dataset),
    }.items():
        facts.add_row(fact, value)
    console.print(facts)
    console.print()
    options = table()
    for heading in ("option", "default", "meaning"):
        options.add_column(heading)
    for option, default in dataset.defaults.items():
        options.add_row(option, repr(default), dataset.options.get(option, ""))
    console.print(options)


def _state(dataset: Dataset) -> str:
    if not dataset.files:
        return "built in"
    return "found" if dataset.is_available else "missing"


def _place(dataset: Dataset) -> str:
    return str(dataset.expected_folder) if dataset.files else "nowhere: it is generated"


def _how(dataset: Dataset) -> str:
    if dataset.downloads:
        return f"diptych datasets get {dataset.name}"
    return dataset.steps or "nothing to do"


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
