"""What may be typed: choices, and options that several commands share, so that they are called and explained alike."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Durability(StrEnum):
    """What an acknowledged change survives."""

    POWER = "power"
    PROCESS = "process"


class Relevance(StrEnum):
    """What counts as a right answer."""

    AUTO = "auto"
    LABEL = "label"
    INSTANCE = "instance"


class TieBreaking(StrEnum):
    """What happens to items of equal score."""

    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class Scaling(StrEnum):
    """How rows of features are scaled."""

    NONE = "none"
    L1 = "l1"
    L2 = "l2"
    HELLINGER = "hellinger"


class PictureFormat(StrEnum):
    """What kind of file a figure becomes."""

    PNG = "png"
    SVG = "svg"


class Target(StrEnum):
    """What a search looks through."""

    IMAGES = "images"
    TEXTS = "texts"


class SearchMode(StrEnum):
    """What the words of a query are compared with."""

    AUTO = "auto"
    SIMILARITY = "similarity"
    WORDS = "words"
    BOTH = "both"


class RerankBy(StrEnum):
    """What the nearest binary codes are scored again by."""

    CODES = "codes"
    FEATURES = "features"


class AnswerFormat(StrEnum):
    """How answers are printed."""

    AUTO = "auto"
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    PATHS = "paths"
    PATHS0 = "paths0"


class ExportFormat(StrEnum):
    """What kind of file a collection is exported to."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    NPZ = "npz"
    SAFETENSORS = "safetensors"
    FAISS = "faiss"
    TREC = "trec"
    FOLDER = "folder"
    ZIP = "zip"
    GALLERY = "gallery"


class KeptFacts(StrEnum):
    """What a collection keeps of what photographs say of themselves."""

    ALL = "all"
    NO_PLACES = "no-places"
    NONE = "none"


class Precision(StrEnum):
    """The numbers that image networks compute with."""

    AUTO = "auto"
    FLOAT32 = "float32"
    INT8 = "int8"


class Device(StrEnum):
    """Where networks run."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    COREML = "coreml"
    DIRECTML = "directml"
    OPENVINO = "openvino"


class DemoData(StrEnum):
    """What the demonstration shows."""

    AUTO = "auto"
    FLICKR8K = "flickr8k"
    PASCAL = "pascal"
    PHOTOGRAPHS = "photographs"


class LogFormat(StrEnum):
    """How the log of a service looks."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class ClickTable(StrEnum):
    """Which table the click log becomes."""

    TRIADS = "triads"
    EVENTS = "events"
    IMPRESSIONS = "impressions"


class ClickTableFormat(StrEnum):
    """What kind of file the click log becomes."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class WordLayerChoice(StrEnum):
    """Which vectors of a network stand for its words."""

    MEMORY = "memory"
    EMBEDDING = "embedding"


class RunTieBreaking(StrEnum):
    """What happens to items of equal score in a run file."""

    TREC = "trec"
    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class WrittenScores(StrEnum):
    """What the column of scores holds."""

    RANK = "rank"
    MODEL = "model"


def complete_retriever(incomplete: str) -> list[str]:
    """Return the retrievers that come with Diptych whose names begin so."""
    shipped = Path(__file__).parents[1] / "retriever" / "shipped"
    return sorted(folder.name for folder in shipped.iterdir() if folder.name.startswith(incomplete))


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose names begin so."""
    from diptych.models import model_classes

    return [name for name in model_classes() if name.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Return the data sets whose names begin so."""
    from diptych.data import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]


def _set_durability(chosen: Durability) -> Durability:
    # Processes that this one starts write as it does.
    os.environ["DIPTYCH_DURABILITY"] = chosen.value
    return chosen


def _set_device(chosen: Device) -> Device:
    # Processes that this one starts encode where it does.
    os.environ["DIPTYCH_DEVICE"] = chosen.value
    return chosen


CollectionOption = Annotated[
    Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
NoRemarksOption = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DurabilityOption = Annotated[
    Durability,
    typer.Option(
        envvar="DIPTYCH_DURABILITY",
        callback=_set_durability,
        help="What an acknowledged change survives: a power cut, or only the end of the process.",
    ),
]
DeviceOption = Annotated[
    Device,
    typer.Option(
        envvar="DIPTYCH_DEVICE",
        callback=_set_device,
        help="Where networks and large fits run: auto takes an NVIDIA card where ONNX Runtime can use it.",
    ),
]
SchedulerOption = Annotated[
    str | None, typer.Option("--scheduler", "--cluster", help="Address of a Dask scheduler, such as tcp://host:8786.")
]

# Of benchmarks.
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write all numbers to this JSON file.")]
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
DatasetOption = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set an option of the data set.")]
TextEncoderOption = Annotated[
    str | None, typer.Option(metavar="NAME[:KEY=VALUE,...]", help="What turns texts into features.")
]
