"""``diptych doctor``: what is installed on this machine, and whether what Diptych keeps here can be used."""

from __future__ import annotations

import platform
from importlib.util import find_spec

import typer

from diptych._version import __version__
from diptych.cli.console.output import facts_table, print_json, results
from diptych.cli.console.paths import find_collection, printable, shown_path
from diptych.cli.options import DeviceOption, JsonOption
from diptych.errors import DiptychError

EXTRAS = {
    "search": ("onnxruntime", "searching your own pictures"),
    "serve": ("fastapi", "the page and the REST API"),
    "formats": ("av", "photos of phones and cameras (HEIC, RAW), SVG and videos"),
    "ocr": ("rapidocr", "the text in pictures"),
    "places": ("reverse_geocoder", "names of places"),
    "hub": ("huggingface_hub", "joint models from the hub"),
    "postgres": ("psycopg", "collections in PostgreSQL"),
    "parquet": ("pyarrow", "Parquet and Arrow files"),
    "plots": ("matplotlib", "figures"),
    "deep": ("torch", "methods that are trained by PyTorch"),
    "cluster": ("distributed", "work on several machines"),
}
"""The extras: a package that each of them brings, and what it is for."""


def doctor(device: DeviceOption = "auto", as_json: JsonOption = False) -> None:
    """Say what is installed here, and what is wrong.

    The exit status is 1 if the collection here or a joint model cannot be used.
    """
    from diptych.data import cache_folder, data_folder
    from diptych.devices import idle_card_note, network_device
    from diptych.hub.place import models_folder

    problems = _problems()
    installed = {extra: find_spec(package) is not None for extra, (package, _) in EXTRAS.items()}
    facts = {
        "diptych": f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "networks run on": idle_card_note() or network_device(),
        "collection": _collection(),
        "data sets": str(data_folder()),
        "cache": str(cache_folder()),
        "joint models": str(models_folder()),
    }
    if as_json:
        print_json({**facts, "extras": installed, "problems": problems})
    else:
        for extra, (_, purpose) in EXTRAS.items():
            state = "installed" if installed[extra] else f"missing: pip install 'diptych[{extra}]'"
            facts[extra] = f"{purpose}: {state}"
        results().print(facts_table(facts))
        results().print("\n".join(["", *problems]) if problems else "\nNothing is wrong.", soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def _collection() -> str:
    try:
        return printable(shown_path(find_collection(None).place))
    except DiptychError:
        return "none; make one with: diptych index FOLDER"


def _problems() -> list[str]:
    """Return what is wrong with the collection that commands mean and with the joint models."""
    from diptych.cli.commands.models import joint_folders, joint_report
    from diptych.collection import Collection

    problems: list[str] = []
    try:
        place = find_collection(None).place
    except DiptychError:
        place = None
    if place is not None:
        try:
            with Collection.open(place) as collection:
                problems += collection.status().warnings
        except DiptychError as error:
            problems.append(str(error))
    reports = [joint_report(folder, fast=False) for folder in joint_folders(None)]
    return problems + [f"{report['folder']}: {report['problem']}" for report in reports if report["problem"]]
