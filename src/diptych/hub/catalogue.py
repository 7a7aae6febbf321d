"""The catalogue: joint models by a short name, where they are, their licence, and how good they are said to be."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from diptych.errors import InvalidInputError, UnknownNameError

HUB_PREFIX = "hub:"

# Encoding a photograph by CLIP ViT-B/32 takes so many times as long as by the default search model, both in float32
# (docs/results/performance.md: 1,000 photographs in 70.4 s, and 30.3 a second).
_COST_OF_CLIP_B32 = 2.1

_ADDRESS = re.compile(r"hub:(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_RESEARCH_ONLY = re.compile(r"(^|-)nc(-|$)|non-?commercial|research|^apple-", re.IGNORECASE)

# The edition, the commit, and files with their size and SHA-256 that are known beforehand.
_PINS: Mapping[str, tuple[str, str, Mapping[str, tuple[int, str]]]] = {
    "siglip2-b16": (
        "fp16",
        "ba1f3b0843f24bc5417d38e19c37b287d719b2f4",
        {
            "onnx/vision_model_fp16.onnx": (
                186_039_516,
                "a1959f7bd3993a607e48839f6d01e25b876fe76afda301b028b78eef68aabd95",
            ),
            "onnx/text_model_fp16.onnx": (
                564_862_230,
                "711da56ada0a4aa11c7dd3320df741081a3cae4f0ae1b5e5c6d5b294738d0eb0",
            ),
        },
    ),
}


@dataclass(frozen=True)
class ModelSource:
    """A model and where it is fetched from.

    ``size`` is about how many MB are fetched, ``cost`` the time for a photograph relative to the default search model,
    and ``upstream`` the repository of the original, which states the licence. ``quality`` quotes published numbers in
    percent: recall is the mean of recall@1, @5 and @10 on XM3600, XTD-10 and Flickr30k, in English and over thirty
    languages; ImageNet is the accuracy without training.
    """

    name: str
    repository: str
    revision: str = "main"
    size: int | None = None
    languages: str = ""
    licence: str = ""
    upstream: str = ""
    cost: float | None = None
    quality: str = ""
    edition: str | None = None
    pins: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def is_pinned(self) -> bool:
        """Return True if the revision is a commit, which never changes."""
        return is_commit(self.revision)

    @property
    def size_words(self) -> str:
        """The size as messages name it."""
        return "size unknown" if self.size is None else f"{self.size:,} MB"


@cache
def catalogue() -> Mapping[str, ModelSource]:
    """Return the models of the catalogue by their names.

    >>> from diptych.hub.catalogue import catalogue
    >>> catalogue()["siglip2-b16"].size_words
    '785 MB'
    """
    with (Path(__file__).parent / "catalogue.tsv").open(newline="", encoding="utf-8") as table:
        return {row["name"]: _of_row(row) for row in csv.DictReader(table, delimiter="\t")}


def _of_row(row: Mapping[str, str]) -> ModelSource:
    edition, revision, pins = _PINS.get(row["name"], (None, "main", {}))
    return ModelSource(
        name=row["name"],
        repository=row["repository"],
        revision=revision,
        size=int(row["megabytes"]),
        languages=row["languages"],
        licence=row["licence"],
        upstream=row["upstream"],
        cost=round(float(row["cost"]) * _COST_OF_CLIP_B32, 1) if row["cost"] else None,
        quality=row["quality"],
        edition=edition,
        pins=pins,
    )


def find_source(name: str) -> ModelSource:
    """Return where a model is fetched from: one of the catalogue, or ``hub:OWNER/REPOSITORY[@REVISION]``.

    >>> from diptych.hub.catalogue import find_source
    >>> find_source("hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K@main").name
    'laion--CLIP-ViT-B-32-laion2B-s34B-b79K'
    """
    if name in catalogue():
        return catalogue()[name]
    if "/" in name and not name.startswith(HUB_PREFIX):
        raise InvalidInputError(f"{name!r} is no model of the catalogue; for a repository, write {HUB_PREFIX}{name}")
    if not name.startswith(HUB_PREFIX):
        raise UnknownNameError("model", name, catalogue(), besides=f"{HUB_PREFIX}OWNER/REPOSITORY")
    address = _ADDRESS.fullmatch(name)
    if address is None or ".." in name:
        raise InvalidInputError(f"{name!r} is no address; write {HUB_PREFIX}OWNER/REPOSITORY or …@REVISION")
    repository, revision = address.groups(default="main")
    return ModelSource(name=repository.replace("/", "--"), repository=repository, revision=revision)


def is_commit(revision: str) -> bool:
    """Return True if a revision names a commit in full.

    >>> is_commit("main"), is_commit("ba1f3b0843f24bc5417d38e19c37b287d719b2f4")
    (False, True)
    """
    return _COMMIT.fullmatch(revision) is not None


def is_research_only(licence: str) -> bool:
    """Return True if a licence forbids commercial use.

    >>> [is_research_only(licence) for licence in ("apache-2.0", "cc-by-nc-4.0", "apple-amlr")]
    [False, True, True]
    """
    return _RESEARCH_ONLY.search(licence) is not None
