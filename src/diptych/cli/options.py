"""What several commands share: groups, choices and options, so that they are called and explained alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from diptych.collection.searching.options import SearchOptions

Relevance = Literal["auto", "label", "instance"]
TieBreaking = Literal["expected", "random", "optimistic", "pessimistic"]
Scaling = Literal["none", "l1", "l2", "hellinger"]
PictureFormat = Literal["png", "svg"]
SearchMode = Literal["auto", "similarity", "words", "both"]
AnswerFormat = Literal["auto", "table", "paths", "paths0"]
ExportFormat = Literal["csv", "jsonl", "parquet", "npz", "trec", "folder", "zip", "gallery"]
KeptFacts = Literal["all", "no-places", "none"]
Precision = Literal["auto", "float32", "int8"]
Device = Literal["auto", "cpu", "cuda", "coreml", "directml", "openvino"]
LogFormat = Literal["auto", "text", "json"]
RunTieBreaking = Literal["trec", "expected", "random", "optimistic", "pessimistic"]
RunGains = Literal["grades", "binary"]
RunMissing = Literal["zero", "skip"]
WrittenScores = Literal["rank", "model"]


class Group(TyperGroup):
    """A group of commands; called without one, it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help where nothing is asked for."""
        is_empty = not args and not self.invoke_without_command and not ctx.resilient_parsing
        return super().parse_args(ctx, ["--help"] if is_empty else args)


def folder_or_address(named: str) -> Path:
    """Return the path of a folder that exists, or of an address of pictures."""
    # Imported lazily: most commands need no data.
    from diptych.data.remote_files import full_path, is_remote

    path = full_path(named) if is_remote(named) else Path(named)
    if not is_remote(path) and not path.is_dir():
        raise typer.BadParameter(f"{named!r} is no folder" if path.exists() else f"{named!r} does not exist")
    return path


def complete_retriever(incomplete: str) -> list[str]:
    """Return the retrievers that come with Diptych, and the joint models that are here, whose names begin so."""
    from diptych.hub.place import installed_models

    shipped = Path(__file__).parents[1] / "retriever" / "shipped"
    names = {*(folder.name for folder in shipped.iterdir()), *installed_models()}
    return sorted(name for name in names if name.startswith(incomplete))


def complete_model(incomplete: str) -> list[str]:
    """Return the joint models whose names begin so."""
    from diptych.hub.catalogue import catalogue
    from diptych.hub.place import installed_models

    return sorted(name for name in catalogue().keys() | installed_models().keys() if name.startswith(incomplete))


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose names begin so."""
    from diptych.models import model_classes

    return [name for name in model_classes() if name.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Return the data sets whose names begin so."""
    from diptych.data import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]


def _set_device(chosen: Device) -> Device:
    # Processes that this one starts encode where it does.
    os.environ["DIPTYCH_DEVICE"] = chosen
    return chosen


# Regions are switched off by a flag of their own; the command line searches with the active search model.
_OTHERWISE_GIVEN = ("regions", "retriever")


def takes_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command each option of a search that it does not declare itself, as the field of the option describes it.

    The command gets them by name in the argument ``more``.
    """
    declared = signature(command, eval_str=True).parameters
    types = get_type_hints(SearchOptions)
    added = [one for one in fields(SearchOptions) if one.name not in (*declared, *_OTHERWISE_GIVEN)]
    parameters = {name: parameter for name, parameter in declared.items() if name != "more"}
    for one in added:
        told = one.metadata
        option = typer.Option(one.default, help=told["description"], min=told.get("ge"), max=told.get("le"))
        parameters[one.name] = Parameter(one.name, Parameter.KEYWORD_ONLY, default=option, annotation=types[one.name])

    @wraps(command)
    def run(**given: Any) -> None:
        more = {one.name: given.pop(one.name) for one in added}
        command(**given, more=more)

    run.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return run


# Texts: a path would lose a slash of an address.
CollectionOption = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        metavar="PATH",
        help="The collection, a folder or a postgresql:// address; by default the one here, or the last.",
    ),
]
CollectionArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[COLLECTION]",
        help="A folder or a postgresql:// address; by default the collection here, or the last.",
    ),
]
FilterOption = Annotated[
    str | None, typer.Option("--filter", help="Only items that meet it: 'label:dog and year>=2010'.")
]
SearchModeOption = Annotated[
    SearchMode,
    typer.Option(
        "--mode",
        help="Look for what the query means (similarity), for its words in captions, names, keywords and pictures, "
        "or for both; auto: by meaning, and names, numbers and quoted words by their words.",
    ),
]
AnswersOption = Annotated[int, typer.Option("-k", min=1, help="How many answers.")]
AlphaOption = Annotated[float, typer.Option("--alpha", min=0.0001, max=0.5, help="The largest p-value that counts.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and remarks on stderr.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DeviceOption = Annotated[
    Device,
    typer.Option(
        envvar="DIPTYCH_DEVICE",
        callback=_set_device,
        help="Where networks and large fits run: auto takes an NVIDIA card where ONNX Runtime can use it.",
    ),
]
_MODEL = typer.Option(
    "--retriever",
    "--model",
    metavar="NAME|FOLDER",
    autocompletion=complete_retriever,
    help="The search model (retriever): default or strong, which come with Diptych; a joint model that `diptych models "
    "get` fetched; or the folder of a saved search model or of a joint model.",
)
ModelOption = Annotated[str | None, _MODEL]
RequiredModelOption = Annotated[str, _MODEL]
SchedulerOption = Annotated[
    str | None, typer.Option("--scheduler", "--cluster", help="Address of a Dask scheduler, such as tcp://host:8786.")
]

# Of benchmarks.
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")]
PlotsOption = Annotated[Path | None, typer.Option("--plots", help="Draw figures into this folder.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Fit everything again instead of going on where a run stopped.")
]

# Of one method on one data set.
MethodOption = Annotated[
    str,
    typer.Option(
        "--method", "-m", autocompletion=complete_method, help="Name of a method; `diptych methods` lists them."
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="Set a parameter of the method; outer__inner nests."),
]
PluginOption = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A Python file with methods of your own; may be repeated.")
]
ImageScalingOption = Annotated[Scaling, typer.Option(help="Scaling of each picture's features.")]
TextScalingOption = Annotated[Scaling, typer.Option(help="Scaling of each text's features.")]
DatasetOption = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set an option of the data set.")]
ImageEncoderOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[:KEY=VALUE,...]",
        help="What turns pictures into features, or several joined with +; `diptych encoders` lists them.",
    ),
]
TextEncoderOption = Annotated[
    str | None, typer.Option(metavar="NAME[:KEY=VALUE,...]", help="What turns texts into features.")
]
