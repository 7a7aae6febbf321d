"""A query and what methods answered, to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Shown:
    """One thing to look at: a small JPEG, or a text, and its class."""

    picture: bytes | None
    text: str
    label: str


@dataclass(frozen=True)
class Sample:
    """A query and the first answers of each method, with whether each is of the query's class."""

    direction: Literal["image_query", "text_query"]
    query: Shown
    answers: dict[str, tuple[tuple[Shown, bool], ...]]


@dataclass(frozen=True)
class SampleSheet:
    """The samples of one task, or the reason why there are none."""

    task: str
    samples: tuple[Sample, ...]
    note: str
