"""What may be typed where a command offers a choice."""

from __future__ import annotations

from enum import StrEnum


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


class Thumbnails(StrEnum):
    """When small pictures are drawn in the terminal."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


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


class DemoData(StrEnum):
    """What the demonstration shows."""

    AUTO = "auto"
    FLICKR8K = "flickr8k"
    PASCAL = "pascal"
    PHOTOGRAPHS = "photographs"
    SCENES = "scenes"


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
